/* What the parts of the test of the middle layer share. */
#ifndef MIDDLE_H
#define MIDDLE_H

#include <acp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Counts a failure, and prints it. */
#define CHECK(condition) check((condition) != 0, #condition, __FILE__, __LINE__)
void check(int holds, const char *text, const char *file, int line);

extern int me, ranks;

/* Copies between this process's memory and global memory. */
void put(acp_ga_t to, const void *from, size_t size);
void get(void *to, acp_ga_t from, size_t size);

/* Gives size bytes of one rank to all. Collective. */
void share(void *bytes, size_t size, int root);

/* Returns global memory of this rank that holds bytes, or a text without its end, until some more
 * calls of these. */
acp_element_t lent(const void *bytes, size_t size);
acp_element_t text(const char *text);
acp_pair_t pair(const char *key, const char *value);

/* Returns whether an element holds a text. */
int is_text(acp_element_t element, const char *text);

/* The parts; all are collective. */
void channels(void);
void segments(void);
void heaps(void);
void vectors(void);
void deques(void);
void lists(void);
void sets(void);
void multisets(void);
void maps(void);
void spaces(void);
/* Calls with null handles and other wrong arguments. Not collective; also before acp_init and after
 * acp_finalize. */
void wrong(void);

#endif
