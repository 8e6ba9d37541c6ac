/* Grids and scopes, the parameters of the case at hand, and counts of checks and failures. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { NAMES = 128, NAME = 32, PRINTED = 40 };

static struct {
    char name[NAME];
    long checks, failures;
} counts[NAMES];
static int names;
static int printed;
static char parameters[256];
static struct grid described; /* the grid opened last, for the texts of failures */

const struct shape shapes[] = {{3, 3}, {0, 0}, {6, 4}, {1, 1}, {4, 6}, {0, 3}, {7, 1}, {1, 5},
                               {3, 0}, {5, 5}, {2, 6}, {7, 5}};
const struct shape large = {200, 150};
const int shape_count = sizeof shapes / sizeof shapes[0];
const char topologies[] = " idsm123456789tfh";

int lda_of(int rows, int k) {
    const int more[LDAS] = {0, 1, 5};
    int lda = rows + more[k % LDAS];
    return lda < 1 ? 1 : lda;
}

int grid_open(struct grid *g, int number, const char *order, int rows, int cols) {
    blacs_int nprow, npcol, myrow, mycol;
    Cblacs_get(-1, BLACS_SYSTEM, &g->context);
    Cblacs_gridinit(&g->context, order, rows, cols);
    Cblacs_gridinfo(g->context, &nprow, &npcol, &myrow, &mycol);
    g->rows = rows;
    g->cols = cols;
    g->row = (int)myrow;
    g->col = (int)mycol;
    g->number = number;
    described = *g;
    describe("gridinit");
    if (g->context < 0) {
        check(nprow == -1 && npcol == -1 && myrow == -1 && mycol == -1, "gridinfo",
              "not a member, yet %d %d %d %d", (int)nprow, (int)npcol, (int)myrow, (int)mycol);
        return 0;
    }
    check(nprow == rows && npcol == cols && myrow >= 0 && myrow < rows && mycol >= 0 &&
              mycol < cols, "gridinfo", "is %d %d %d %d", (int)nprow, (int)npcol, (int)myrow,
          (int)mycol);
    return 1;
}

void grid_close(struct grid *g) {
    Cblacs_gridexit(g->context);
    g->context = -1;
    described.rows = 0;
}

int scope_size(const struct grid *g, char scope) {
    return scope == 'r' ? g->cols : scope == 'c' ? g->rows : g->rows * g->cols;
}

int scope_place(const struct grid *g, char scope) {
    return scope == 'r' ? g->col : scope == 'c' ? g->row : g->row * g->cols + g->col;
}

int scope_row(const struct grid *g, char scope, int k) {
    return scope == 'r' ? g->row : scope == 'c' ? k : k / g->cols;
}

int scope_col(const struct grid *g, char scope, int k) {
    return scope == 'r' ? k : scope == 'c' ? g->col : k % g->cols;
}

const char *spell_scope(char scope, long key) {
    static const char *const row[] = {"Row", "r", "R"};
    static const char *const column[] = {"c", "C", "columns"};
    static const char *const all[] = {"A", "All", "a"};
    return (scope == 'r' ? row : scope == 'c' ? column : all)[key % 3];
}

const char *spell(char letter, long key) {
    static char word[4][2];
    static int next;
    char *text = word[next++ % 4];
    int small = letter >= 'a' && letter <= 'z';
    text[0] = (char)(small && key % 2 == 0 ? letter - 'a' + 'A' : letter);
    text[1] = '\0';
    return text;
}

void describe(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(parameters, sizeof parameters, format, arguments);
    va_end(arguments);
}

static int index_of(const char *name) {
    for (int k = 0; k < names; k++)
        if (strcmp(counts[k].name, name) == 0) return k;
    if (names == NAMES) {
        fprintf(stderr, "too many names of checks\n");
        exit(2);
    }
    snprintf(counts[names].name, NAME, "%s", name);
    return names++;
}

void check(int good, const char *name, const char *format, ...) {
    va_list arguments;
    int k = index_of(name);
    counts[k].checks++;
    if (good) return;
    counts[k].failures++;
    if (printed++ >= PRINTED) return;
    char text[400];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("FAIL %s ", name);
    if (described.rows > 0)
        printf("grid %dx%d at (%d,%d) ", described.rows, described.cols, described.row,
               described.col);
    printf("%s: %s%s\n", parameters, text,
           printed == PRINTED ? " (further failures of this process are only counted)" : "");
    fflush(stdout);
}

/* Brings the counts to process 0, which learns names it has not itself checked. */
int report(void) {
    blacs_int context, me, processes, size, line[NAME + 2];
    long failures = 0;
    Cblacs_pinfo(&me, &processes);
    Cblacs_get(-1, BLACS_SYSTEM, &context);
    Cblacs_gridinit(&context, "r", 1, processes);
    for (int k = 0; k < names; k++) failures += counts[k].failures;
    if (me != 0) {
        size = names;
        Cigesd2d(context, 1, 1, &size, 1, 0, 0);
        for (int k = 0; k < names; k++) {
            for (int c = 0; c < NAME; c++) line[c] = counts[k].name[c];
            line[NAME] = (blacs_int)counts[k].checks;
            line[NAME + 1] = (blacs_int)counts[k].failures;
            Cigesd2d(context, NAME + 2, 1, line, NAME + 2, 0, 0);
        }
    }
    for (blacs_int from = 1; me == 0 && from < processes; from++) {
        Cigerv2d(context, 1, 1, &size, 1, 0, from);
        while (size-- > 0) {
            char name[NAME];
            Cigerv2d(context, NAME + 2, 1, line, NAME + 2, 0, from);
            for (int c = 0; c < NAME; c++) name[c] = (char)line[c];
            name[NAME - 1] = '\0';
            int k = index_of(name);
            counts[k].checks += (long)line[NAME];
            counts[k].failures += (long)line[NAME + 1];
            failures += (long)line[NAME + 1];
        }
    }
    for (int k = 0; me == 0 && k < names; k++)
        printf("TABLE %s %ld %ld\n", counts[k].name, counts[k].checks, counts[k].failures);
    fflush(stdout);
    Cblacs_gridexit(context);
    return failures == 0 ? 0 : 1;
}
