/*
 * Started with closed standard descriptors, which a shell does (`program >&-`), writes to all
 * streams before, between and after calls. The job must not notice.
 */
#define _POSIX_C_SOURCE 200112L
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "blacs_fmpl.h"

/* Writes to standard output and error, and tries to read. */
static void chatter(void) {
    char letter;
    for (int line = 0; line < 200; line++) {
        printf("line %d of standard output, long enough to leave traces\n", line);
        fprintf(stderr, "line %d of standard error, long enough to leave traces\n", line);
    }
    fflush(stdout);
    if (read(STDIN_FILENO, &letter, 1) < 0) clearerr(stdin);
}

int main(void) {
    static double block[20000];
    blacs_int me, all, context, sum, rounds = 20;
    int open_before[3];
    for (int k = 0; k < 3; k++) open_before[k] = fcntl(k, F_GETFD) != -1;
    chatter();
    Cblacs_pinfo(&me, &all);
    for (int k = 0; k < 3; k++)
        if ((fcntl(k, F_GETFD) != -1) != open_before[k]) return 10 + k;
    chatter();
    Cblacs_get(-1, BLACS_SYSTEM, &context);
    Cblacs_gridinit(&context, "r", 1, all);
    for (blacs_int round = 1; round <= rounds; round++) {
        chatter();
        sum = me + round;
        Cigsum2d(context, "a", " ", 1, 1, &sum, 1, -1, -1);
        if (sum != all * (all - 1) / 2 + all * round) return 20;
        block[0] = me + round;
        Cdgesd2d(context, 20000, 1, block, 20000, 0, (me + 1) % all);
        Cdgerv2d(context, 20000, 1, block, 20000, 0, (me + all - 1) % all);
        if (block[0] != (me + all - 1) % all + round) return 21;
    }
    Cblacs_exit(0);
    return 0;
}
