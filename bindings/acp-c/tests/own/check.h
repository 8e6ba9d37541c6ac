/* Checks of the test programs: a failed one is printed, and makes the program end with code 1. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

static int check_failures;

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            if (check_failures < 10) fprintf(stderr, "FAIL: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            check_failures++;                                                                \
        }                                                                                    \
    } while (0)

/* Prints `name: well` if all checks have succeeded. Returns the exit code. */
static inline int check_result(const char *name)
{
    if (check_failures == 0) {
        printf("%s: well\n", name);
    }
    return check_failures == 0 ? 0 : 1;
}

#endif
