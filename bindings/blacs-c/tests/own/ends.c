/*
 * Ends in the way that the first argument says; process 1 does, the others wait for it.
 *   killed   by a signal, in the middle
 *   again    blacs_exit(1), then begins anew
 *   left     without blacs_exit
 *   used     calls after blacs_exit(0)
 *   stuck    all wait for each other
 *   full     sends to itself until there is no room (alone)
 *   grids    makes grids until there is no memory for one more (alone)
 *   regions  makes grids until there is no region for one more (alone)
 *   chain    process 1 waits for process 0, which is killed, and process 2 for process 1
 *   printed  blacs_abort, while process 0 is busy elsewhere and process 2 receives; all have printed
 */
#define _POSIX_C_SOURCE 200112L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blacs_fmpl.h"

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    static double block[1 << 16];
    blacs_int me, all, context, again, value = 1;
    if (strcmp(way, "full") == 0 || strcmp(way, "grids") == 0)
        setenv("ONESIDED_SEGMENT_BYTES", "8M", 1);
    if (strcmp(way, "printed") == 0) printf("before\n");
    Cblacs_pinfo(&me, &all);
    if (strcmp(way, "printed") == 0) printf("process %d\n", (int)me);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "r", 1, all);
    Cigsum2d(context, "a", " ", 1, 1, &value, 1, -1, -1);
    if (strcmp(way, "killed") == 0) {
        if (me == 1) raise(SIGKILL);
        Cigerv2d(context, 1, 1, &value, 1, 0, 1);
        printf("survived\n");
    } else if (strcmp(way, "again") == 0) {
        Cblacs_exit(1);
        Cblacs_pinfo(&me, &again);
        Cblacs_get(-1, 0, &context);
        Cblacs_gridinit(&context, "c", all, 1);
        Cigsum2d(context, "a", " ", 1, 1, &value, 1, -1, -1);
        if (me == 0) printf("again: %d %d %d\n", (int)context, (int)again, (int)value);
        Cblacs_exit(0);
    } else if (strcmp(way, "left") == 0) {
        if (me == 0) printf("left: %d\n", (int)value);
    } else if (strcmp(way, "used") == 0) {
        Cblacs_exit(0);
        Cblacs_pinfo(&me, &all);
        printf("survived\n");
    } else if (strcmp(way, "stuck") == 0) {
        Cigerv2d(context, 1, 1, &value, 1, 0, (me + 1) % all);
        printf("survived\n");
    } else if (strcmp(way, "full") == 0) {
        for (int k = 0; k < 100; k++) Cdgesd2d(context, 1 << 16, 1, block, 1 << 16, 0, 0);
        printf("survived\n");
    } else if (strcmp(way, "grids") == 0 || strcmp(way, "regions") == 0) {
        for (int k = 0; k < 1000000; k++) {
            Cblacs_get(-1, 0, &context);
            Cblacs_gridinit(&context, "r", 1, all);
        }
        printf("survived\n");
    } else if (strcmp(way, "chain") == 0) {
        /* The others have left the sum. */
        if (me > 0) Cigesd2d(context, 1, 1, &value, 1, 0, 0);
        for (blacs_int from = 1; me == 0 && from < all; from++) Cigerv2d(context, 1, 1, &value, 1, 0, from);
        if (me == 0) raise(SIGKILL);
        Cigerv2d(context, 1, 1, &value, 1, 0, me - 1);
        printf("survived\n");
    } else if (strcmp(way, "printed") == 0) {
        if (me == 1) Cblacs_abort(context, -249);
        if (me == 2) Cigerv2d(context, 1, 1, &value, 1, 0, 0);
        for (;;) pause();
    }
    return 0;
}
