/*
 * The BLACS (Basic Linear Algebra Communication Subprograms) for C and C++: 78 routines under
 * their C names (Cdgesd2d) and the same 78 under the names Fortran compilers give them (dgesd2d_).
 *
 * C form: scalars by value, results and arrays by pointer, characters as strings of which only the
 * first letter counts, in either case. Fortran form: everything by pointer; a Fortran compiler adds
 * the lengths of character arguments at the end of a call, which no routine needs.
 *
 * Matrices are stored by columns; lda is the distance between the starts of two columns. An element
 * of the complex routines is two adjacent numbers, real part first: float for c, double for z, so
 * that float _Complex, std::complex<float> or any struct of two floats will do.
 *
 * Define BLACS_INT64 for a library whose INTEGER has 64 bits. BLACS_SYSTEM_CONTEXT may be defined
 * as the message system's own type of a communicator (MPI_Comm for a BLACS over MPI).
 */
#ifndef BLACS_H
#define BLACS_H

#include <stdint.h>

#ifdef BLACS_INT64
typedef int64_t blacs_int;
#else
typedef int32_t blacs_int;
#endif

#ifndef BLACS_SYSTEM_CONTEXT
#define BLACS_SYSTEM_CONTEXT blacs_int
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What blacs_get and blacs_set ask for and change. */
enum {
    BLACS_SYSTEM = 0,          /* the system context: all processes of the job */
    BLACS_MESSAGE_IDS = 1,     /* range of message identifiers, two integers */
    BLACS_DEBUG_LEVEL = 2,
    BLACS_SYSTEM_OF_GRID = 10, /* the system context that holds a grid's processes */
    BLACS_RINGS_BS = 11,       /* rings of topology 'm' in broadcasts */
    BLACS_BRANCHES_BS = 12,    /* branches of topology 't' in broadcasts */
    BLACS_RINGS_CO = 13,       /* the same for combines */
    BLACS_BRANCHES_CO = 14,
    BLACS_REPEATABLE = 15,     /* combines give the same bits in every call */
    BLACS_COHERENT = 16        /* combines give the same bits on every process */
};

/* Set-up: the job, and grids of its processes. A process outside the grid gets context -1. */
void Cblacs_pinfo(blacs_int *mypnum, blacs_int *nprocs);
void Cblacs_setup(blacs_int *mypnum, blacs_int *nprocs);
void Cblacs_get(blacs_int ctxt, blacs_int what, blacs_int *value);
void Cblacs_set(blacs_int ctxt, blacs_int what, blacs_int *value);
void Cblacs_gridinit(blacs_int *ctxt, const char *order, blacs_int nprow, blacs_int npcol);
void Cblacs_gridmap(blacs_int *ctxt, blacs_int *usermap, blacs_int ldumap, blacs_int nprow,
                    blacs_int npcol);

/* Tear-down. Cblacs_exit(0) ends the message system too; otherwise it may be used again. */
void Cblacs_freebuff(blacs_int ctxt, blacs_int wait);
void Cblacs_gridexit(blacs_int ctxt);
void Cblacs_abort(blacs_int ctxt, blacs_int error);
void Cblacs_exit(blacs_int go_on);

/* Questions, the barrier, clocks in seconds. */
void Cblacs_gridinfo(blacs_int ctxt, blacs_int *nprow, blacs_int *npcol, blacs_int *myrow,
                     blacs_int *mycol);
blacs_int Cblacs_pnum(blacs_int ctxt, blacs_int prow, blacs_int pcol);
void Cblacs_pcoord(blacs_int ctxt, blacs_int pnum, blacs_int *prow, blacs_int *pcol);
void Cblacs_barrier(blacs_int ctxt, const char *scope);
double Cdwalltime00(void);
double Cdcputime00(void);

/* Unofficial: message identifiers, and the message system's own contexts. */
blacs_int Cksendid(blacs_int ctxt, blacs_int rdest, blacs_int cdest);
blacs_int Ckrecvid(blacs_int ctxt, blacs_int rsrc, blacs_int csrc);
blacs_int Ckbsid(blacs_int ctxt, const char *scope);
blacs_int Ckbrid(blacs_int ctxt, const char *scope, blacs_int rsrc, blacs_int csrc);
BLACS_SYSTEM_CONTEXT Cblacs2sys_handle(blacs_int ctxt);
blacs_int Csys2blacs_handle(BLACS_SYSTEM_CONTEXT system);
void Cfree_blacs_system_handle(blacs_int ctxt);

void blacs_pinfo_(blacs_int *mypnum, blacs_int *nprocs);
void blacs_setup_(blacs_int *mypnum, blacs_int *nprocs);
void blacs_get_(const blacs_int *ctxt, const blacs_int *what, blacs_int *value);
void blacs_set_(const blacs_int *ctxt, const blacs_int *what, const blacs_int *value);
void blacs_gridinit_(blacs_int *ctxt, const char *order, const blacs_int *nprow,
                     const blacs_int *npcol);
void blacs_gridmap_(blacs_int *ctxt, const blacs_int *usermap, const blacs_int *ldumap,
                    const blacs_int *nprow, const blacs_int *npcol);
void blacs_freebuff_(const blacs_int *ctxt, const blacs_int *wait);
void blacs_gridexit_(const blacs_int *ctxt);
void blacs_abort_(const blacs_int *ctxt, const blacs_int *error);
void blacs_exit_(const blacs_int *go_on);
void blacs_gridinfo_(const blacs_int *ctxt, blacs_int *nprow, blacs_int *npcol, blacs_int *myrow,
                     blacs_int *mycol);
blacs_int blacs_pnum_(const blacs_int *ctxt, const blacs_int *prow, const blacs_int *pcol);
void blacs_pcoord_(const blacs_int *ctxt, const blacs_int *pnum, blacs_int *prow, blacs_int *pcol);
void blacs_barrier_(const blacs_int *ctxt, const char *scope);
double dwalltime00_(void);
double dcputime00_(void);
blacs_int ksendid_(const blacs_int *ctxt, const blacs_int *rdest, const blacs_int *cdest);
blacs_int krecvid_(const blacs_int *ctxt, const blacs_int *rsrc, const blacs_int *csrc);
blacs_int kbsid_(const blacs_int *ctxt, const char *scope);
blacs_int kbrid_(const blacs_int *ctxt, const char *scope, const blacs_int *rsrc,
                 const blacs_int *csrc);
blacs_int blacs2sys_handle_(const blacs_int *ctxt);
blacs_int sys2blacs_handle_(const blacs_int *system);
void free_blacs_system_handle_(const blacs_int *ctxt);

/*
 * Communication, C names, for one precision p with elements T.
 *   gesd2d/gerv2d, trsd2d/trrv2d   send and receive a rectangle or a trapezoid
 *   gebs2d/gebr2d, trbs2d/trbr2d   broadcast: send and receive
 *   gsum2d, gamx2d, gamn2d         combine: sum, largest and smallest magnitude
 */
#define BLACS_C_ROUTINES(p, T)                                                                     \
    void C##p##gesd2d(blacs_int ctxt, blacs_int m, blacs_int n, const T *a, blacs_int lda,         \
                      blacs_int rdest, blacs_int cdest);                                           \
    void C##p##gerv2d(blacs_int ctxt, blacs_int m, blacs_int n, T *a, blacs_int lda,               \
                      blacs_int rsrc, blacs_int csrc);                                             \
    void C##p##trsd2d(blacs_int ctxt, const char *uplo, const char *diag, blacs_int m,             \
                      blacs_int n, const T *a, blacs_int lda, blacs_int rdest, blacs_int cdest);   \
    void C##p##trrv2d(blacs_int ctxt, const char *uplo, const char *diag, blacs_int m,             \
                      blacs_int n, T *a, blacs_int lda, blacs_int rsrc, blacs_int csrc);           \
    void C##p##gebs2d(blacs_int ctxt, const char *scope, const char *top, blacs_int m,             \
                      blacs_int n, const T *a, blacs_int lda);                                     \
    void C##p##gebr2d(blacs_int ctxt, const char *scope, const char *top, blacs_int m,             \
                      blacs_int n, T *a, blacs_int lda, blacs_int rsrc, blacs_int csrc);           \
    void C##p##trbs2d(blacs_int ctxt, const char *scope, const char *top, const char *uplo,        \
                      const char *diag, blacs_int m, blacs_int n, const T *a, blacs_int lda);      \
    void C##p##trbr2d(blacs_int ctxt, const char *scope, const char *top, const char *uplo,        \
                      const char *diag, blacs_int m, blacs_int n, T *a, blacs_int lda,             \
                      blacs_int rsrc, blacs_int csrc);                                             \
    void C##p##gsum2d(blacs_int ctxt, const char *scope, const char *top, blacs_int m,             \
                      blacs_int n, T *a, blacs_int lda, blacs_int rdest, blacs_int cdest);         \
    void C##p##gamx2d(blacs_int ctxt, const char *scope, const char *top, blacs_int m,             \
                      blacs_int n, T *a, blacs_int lda, blacs_int *ra, blacs_int *ca,              \
                      blacs_int ldia, blacs_int rdest, blacs_int cdest);                           \
    void C##p##gamn2d(blacs_int ctxt, const char *scope, const char *top, blacs_int m,             \
                      blacs_int n, T *a, blacs_int lda, blacs_int *ra, blacs_int *ca,              \
                      blacs_int ldia, blacs_int rdest, blacs_int cdest);

/* The same under the names a Fortran compiler uses. */
#define BLACS_FORTRAN_ROUTINES(p, T)                                                               \
    void p##gesd2d_(const blacs_int *ctxt, const blacs_int *m, const blacs_int *n, const T *a,     \
                    const blacs_int *lda, const blacs_int *rdest, const blacs_int *cdest);         \
    void p##gerv2d_(const blacs_int *ctxt, const blacs_int *m, const blacs_int *n, T *a,           \
                    const blacs_int *lda, const blacs_int *rsrc, const blacs_int *csrc);           \
    void p##trsd2d_(const blacs_int *ctxt, const char *uplo, const char *diag, const blacs_int *m, \
                    const blacs_int *n, const T *a, const blacs_int *lda, const blacs_int *rdest,  \
                    const blacs_int *cdest);                                                       \
    void p##trrv2d_(const blacs_int *ctxt, const char *uplo, const char *diag, const blacs_int *m, \
                    const blacs_int *n, T *a, const blacs_int *lda, const blacs_int *rsrc,         \
                    const blacs_int *csrc);                                                        \
    void p##gebs2d_(const blacs_int *ctxt, const char *scope, const char *top, const blacs_int *m, \
                    const blacs_int *n, const T *a, const blacs_int *lda);                         \
    void p##gebr2d_(const blacs_int *ctxt, const char *scope, const char *top, const blacs_int *m, \
                    const blacs_int *n, T *a, const blacs_int *lda, const blacs_int *rsrc,         \
                    const blacs_int *csrc);                                                        \
    void p##trbs2d_(const blacs_int *ctxt, const char *scope, const char *top, const char *uplo,   \
                    const char *diag, const blacs_int *m, const blacs_int *n, const T *a,          \
                    const blacs_int *lda);                                                         \
    void p##trbr2d_(const blacs_int *ctxt, const char *scope, const char *top, const char *uplo,   \
                    const char *diag, const blacs_int *m, const blacs_int *n, T *a,                \
                    const blacs_int *lda, const blacs_int *rsrc, const blacs_int *csrc);           \
    void p##gsum2d_(const blacs_int *ctxt, const char *scope, const char *top, const blacs_int *m, \
                    const blacs_int *n, T *a, const blacs_int *lda, const blacs_int *rdest,        \
                    const blacs_int *cdest);                                                       \
    void p##gamx2d_(const blacs_int *ctxt, const char *scope, const char *top, const blacs_int *m, \
                    const blacs_int *n, T *a, const blacs_int *lda, blacs_int *ra, blacs_int *ca,  \
                    const blacs_int *ldia, const blacs_int *rdest, const blacs_int *cdest);        \
    void p##gamn2d_(const blacs_int *ctxt, const char *scope, const char *top, const blacs_int *m, \
                    const blacs_int *n, T *a, const blacs_int *lda, blacs_int *ra, blacs_int *ca,  \
                    const blacs_int *ldia, const blacs_int *rdest, const blacs_int *cdest);

BLACS_C_ROUTINES(i, blacs_int)
BLACS_C_ROUTINES(s, float)
BLACS_C_ROUTINES(d, double)
BLACS_C_ROUTINES(c, void)
BLACS_C_ROUTINES(z, void)

BLACS_FORTRAN_ROUTINES(i, blacs_int)
BLACS_FORTRAN_ROUTINES(s, float)
BLACS_FORTRAN_ROUTINES(d, double)
BLACS_FORTRAN_ROUTINES(c, void)
BLACS_FORTRAN_ROUTINES(z, void)

#undef BLACS_C_ROUTINES
#undef BLACS_FORTRAN_ROUTINES

#ifdef __cplusplus
}
#endif

#endif
