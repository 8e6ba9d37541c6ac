/*
 * Memory that is too large or not ours is told and nothing more; what was freed can be had again.
 * Prints "memory: well".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blacs_fmpl.h"

int main(void) {
    char *first = blacs_fmpl_alloc(1000), *none = blacs_fmpl_alloc((size_t)1 << 40);
    blacs_int me, all;
    int i;
    if (!first || (size_t)first % 64 || none) return 9;
    for (i = 0; i < 1000; i++)
        if (first[i]) return 9;
    memset(first, 1, 1000);
    blacs_fmpl_free(first + 1);
    blacs_fmpl_free(first);
    blacs_fmpl_free(first);
    blacs_fmpl_free(NULL);
    for (i = 0; i < 12; i++) {
        void *much = blacs_fmpl_alloc((size_t)50 << 20);
        if (!much) return 9;
        blacs_fmpl_free(much);
    }
    Cblacs_pinfo(&me, &all);
    if (me == 0) printf("memory: well\n");
    Cblacs_exit(0);
    return 0;
}
