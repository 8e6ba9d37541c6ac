/* Each routine with its precision as a first argument: 'i', 's', 'd', 'c' or 'z'. */
#ifndef CALLS_H
#define CALLS_H

#include "blacs_fmpl.h"

#define EACH(routine, arguments)                                                                   \
    switch (precision) {                                                                           \
    case 'i': Ci##routine arguments; break;                                                        \
    case 's': Cs##routine arguments; break;                                                        \
    case 'd': Cd##routine arguments; break;                                                        \
    case 'c': Cc##routine arguments; break;                                                        \
    default: Cz##routine arguments; break;                                                         \
    }

static inline void gesd2d(char precision, blacs_int ctxt, int m, int n, const void *a, int lda,
                          int rdest, int cdest) {
    EACH(gesd2d, (ctxt, m, n, a, lda, rdest, cdest))
}

static inline void gerv2d(char precision, blacs_int ctxt, int m, int n, void *a, int lda, int rsrc,
                          int csrc) {
    EACH(gerv2d, (ctxt, m, n, a, lda, rsrc, csrc))
}

static inline void trsd2d(char precision, blacs_int ctxt, const char *uplo, const char *diag, int m,
                          int n, const void *a, int lda, int rdest, int cdest) {
    EACH(trsd2d, (ctxt, uplo, diag, m, n, a, lda, rdest, cdest))
}

static inline void trrv2d(char precision, blacs_int ctxt, const char *uplo, const char *diag, int m,
                          int n, void *a, int lda, int rsrc, int csrc) {
    EACH(trrv2d, (ctxt, uplo, diag, m, n, a, lda, rsrc, csrc))
}

static inline void gebs2d(char precision, blacs_int ctxt, const char *scope, const char *top, int m,
                          int n, const void *a, int lda) {
    EACH(gebs2d, (ctxt, scope, top, m, n, a, lda))
}

static inline void gebr2d(char precision, blacs_int ctxt, const char *scope, const char *top, int m,
                          int n, void *a, int lda, int rsrc, int csrc) {
    EACH(gebr2d, (ctxt, scope, top, m, n, a, lda, rsrc, csrc))
}

static inline void trbs2d(char precision, blacs_int ctxt, const char *scope, const char *top,
                          const char *uplo, const char *diag, int m, int n, const void *a,
                          int lda) {
    EACH(trbs2d, (ctxt, scope, top, uplo, diag, m, n, a, lda))
}

static inline void trbr2d(char precision, blacs_int ctxt, const char *scope, const char *top,
                          const char *uplo, const char *diag, int m, int n, void *a, int lda,
                          int rsrc, int csrc) {
    EACH(trbr2d, (ctxt, scope, top, uplo, diag, m, n, a, lda, rsrc, csrc))
}

static inline void gsum2d(char precision, blacs_int ctxt, const char *scope, const char *top, int m,
                          int n, void *a, int lda, int rdest, int cdest) {
    EACH(gsum2d, (ctxt, scope, top, m, n, a, lda, rdest, cdest))
}

static inline void gamx2d(char precision, blacs_int ctxt, const char *scope, const char *top, int m,
                          int n, void *a, int lda, blacs_int *ra, blacs_int *ca, int ldia,
                          int rdest, int cdest) {
    EACH(gamx2d, (ctxt, scope, top, m, n, a, lda, ra, ca, ldia, rdest, cdest))
}

static inline void gamn2d(char precision, blacs_int ctxt, const char *scope, const char *top, int m,
                          int n, void *a, int lda, blacs_int *ra, blacs_int *ca, int ldia,
                          int rdest, int cdest) {
    EACH(gamn2d, (ctxt, scope, top, m, n, a, lda, ra, ca, ldia, rdest, cdest))
}

#undef EACH

#endif
