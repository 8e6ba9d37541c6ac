/* Two threads of each process, each with a context of its own; prints "threads: SUM". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "blacs_fmpl.h"

enum { ROUNDS = 2000 };

static blacs_int contexts[2], me, all;

static void *exchange(void *which) {
    blacs_int context = *(blacs_int *)which;
    for (blacs_int round = 0; round < ROUNDS; round++) {
        blacs_int got = -1;
        /* To itself, so that no receive waits for another process while it holds up the other
         * thread's send. */
        Cigesd2d(context, 1, 1, &round, 1, 0, me);
        Cigerv2d(context, 1, 1, &got, 1, 0, me);
        if (got != round) {
            fprintf(stderr, "FAIL: got %d in round %d\n", (int)got, (int)round);
            exit(9);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    Cblacs_pinfo(&me, &all);
    for (int i = 0; i < 2; i++) {
        Cblacs_get(-1, 0, &contexts[i]);
        Cblacs_gridinit(&contexts[i], "r", 1, all);
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, exchange, &contexts[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    blacs_int sum = ROUNDS;
    Cigsum2d(contexts[1], "a", "1", 1, 1, &sum, 1, 0, 0);
    if (me == 0) printf("threads: %d\n", (int)sum);
    Cblacs_exit(0);
    return 0;
}
