/*
 * Calls routines with arguments of any kind, by a generator: one process, which forks a child for
 * each call, because an error ends it. A child may end with 0, or with 1 and an error of BLACS, and
 * must leave what is behind its arrays as it was.
 *
 *   arguments FIRST LAST      the seeds
 *
 * Prints a line for each seed that ended otherwise, then "arguments: N calls, E errors".
 */
#define _POSIX_C_SOURCE 200809L
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blacs_fmpl.h"

enum { ELEMENTS = 64, BEHIND = 64, SPOILT = 42, SECONDS = 20 };

static uint64_t state;

static unsigned draw(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static blacs_int any_extent(void) {
    static const int values[] = {0, 1, 2, 3, 7, 8, 1, 2, 3, 8, 1, 3, -1, -7, INT_MIN, INT_MIN + 3};
    return values[draw(16)];
}

/* Distances of columns for which eight columns are within the arrays, and some that are too short. */
static blacs_int any_distance(void) {
    static const int values[] = {8, 8, 8, 8, 8, 8, 7, 3, 2, 1, 0, -1, INT_MIN};
    return values[draw(13)];
}

static blacs_int any_place(void) {
    static const int values[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1, -1, INT_MAX, INT_MIN};
    return values[draw(16)];
}

static const char *any_letter(const char *usual) {
    static char letter[2];
    static char letters[4][2];
    static int next;
    char *text = letters[next++ % 4];
    unsigned kind = draw(16);
    letter[0] = usual[draw(2)];
    text[0] = kind == 0 ? (char)(1 + draw(255)) : letter[0];
    text[1] = '\0';
    return text;
}

static int is_untouched(const double *a) {
    for (int k = ELEMENTS; k < ELEMENTS + BEHIND; k++)
        if (a[k] != -55) return 0;
    return 1;
}

static double a[ELEMENTS + BEHIND], b[ELEMENTS + BEHIND];
static blacs_int ra[ELEMENTS + BEHIND], ca[ELEMENTS + BEHIND];

/* At the end of a child. */
static void look_behind(void) {
    int well = is_untouched(a) && is_untouched(b);
    for (int k = ELEMENTS; k < ELEMENTS + BEHIND; k++) well = well && ra[k] == -55 && ca[k] == -55;
    if (!well) _exit(SPOILT);
}

static void call(blacs_int context) {
    blacs_int m = any_extent(), n = any_extent(), lda = any_distance(), ldia = any_distance();
    blacs_int row = any_place(), col = any_place(), one = 1, other = 0;
    const char *scope = any_letter("ar"), *top = any_letter(" i"), *uplo = any_letter("ul");
    const char *diag = any_letter("un");
    if (draw(20) == 0) context = any_extent();
    switch (draw(14)) {
    case 0:
        Cdgesd2d(context, m, n, a, lda, row, col);
        Cdgerv2d(context, m, n, b, any_distance(), row, col);
        break;
    case 1:
        Cdgesd2d(context, 3, 2, a, 3, 0, 0);
        Cdgerv2d(context, m, n, b, lda, row, col);
        break;
    case 2:
        Cdtrsd2d(context, uplo, diag, m, n, a, lda, row, col);
        Cdtrrv2d(context, uplo, any_letter("un"), m, n, b, any_distance(), row, col);
        break;
    case 3: Cdgebs2d(context, scope, top, m, n, a, lda); break;
    case 4: Cdgebr2d(context, scope, top, m, n, b, lda, row, col); break;
    case 5: Cdtrbs2d(context, scope, top, uplo, diag, m, n, a, lda); break;
    case 6: Cdtrbr2d(context, scope, top, uplo, diag, m, n, b, lda, row, col); break;
    case 7: Cdgsum2d(context, scope, top, m, n, a, lda, row, col); break;
    case 8: Cdgamx2d(context, scope, top, m, n, a, lda, ra, ca, ldia, row, col); break;
    case 9: Cdgamn2d(context, scope, top, m, n, a, lda, ra, ca, ldia, row, col); break;
    case 10: Cblacs_barrier(context, scope); break;
    case 11: Cblacs_gridinit(&other, any_letter("rc"), any_extent(), any_extent()); break;
    case 12:
        one = any_place();
        other = draw(3) == 0 ? any_extent() : 0;
        Cblacs_gridmap(&other, &one, any_distance(), any_place() + 1, any_place() + 1);
        break;
    default:
        one = any_extent();
        Cblacs_set(context, (int)draw(20) - 1, &one);
        Cblacs_get(context, (int)draw(20) - 1, ra);
        Cblacs_pnum(context, row, col);
        Cblacs_pcoord(context, any_extent(), &one, &other);
    }
}

static int child(unsigned seed, int to_parent) {
    blacs_int context, me, all;
    dup2(to_parent, STDERR_FILENO);
    close(to_parent);
    alarm(SECONDS);
    state = seed * 2654435761u + 1;
    for (int k = 0; k < ELEMENTS + BEHIND; k++) {
        a[k] = b[k] = k < ELEMENTS ? k : -55;
        ra[k] = ca[k] = -55;
    }
    atexit(look_behind);
    Cblacs_pinfo(&me, &all);
    Cblacs_get(-1, BLACS_SYSTEM, &context);
    Cblacs_gridinit(&context, "r", 1, 1);
    call(context);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    unsigned first = (unsigned)strtoul(argv[1], NULL, 10), last = (unsigned)strtoul(argv[2], NULL, 10);
    unsigned errors = 0;
    for (unsigned seed = first; seed <= last; seed++) {
        char text[4096] = "", *end = text;
        int status, ends[2];
        ssize_t count;
        if (pipe(ends) < 0) return 2;
        pid_t number = fork();
        if (number < 0) return 2;
        if (number == 0) {
            close(ends[0]);
            exit(child(seed, ends[1]));
        }
        close(ends[1]);
        while ((count = read(ends[0], end, (size_t)(text + sizeof text - 1 - end))) > 0) end += count;
        *end = '\0';
        close(ends[0]);
        if (waitpid(number, &status, 0) != number) return 2;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        int told = strstr(text, "BLACS ERROR '") != NULL, defect = strstr(text, "a defect of the library") != NULL;
        if ((code != 0 && code != 1) || told != (code == 1) || defect)
            printf("seed %u: status %#x\n%s", seed, (unsigned)status, text);
        errors += code == 1;
    }
    printf("arguments: %u calls, %u errors\n", last - first + 1, errors);
    return 0;
}
