/*
 * BLACS over FMPL: libblacs_fmpl, for programs without MPI.
 *
 * The routines are those of the BLACS quick reference. Each has a C name, Cxxxx, which takes
 * scalars by value, and a Fortran name, xxxx_, which takes all arguments by address; lengths of
 * texts may follow them and are not looked at. Of texts only the first letter counts, in upper or
 * lower case. Matrices are in column-major order.
 *
 * Programs are started by `onesided run -n N -- program`; without it, there is one process. Errors
 * end all processes with a message on standard error. Any thread may call, but calls are carried
 * out one after the other: a receive that waits holds up those of all other threads.
 */
#ifndef BLACS_FMPL_H
#define BLACS_FMPL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fortran's INTEGER: of 8 bytes in a library built with its feature int64. */
#ifdef BLACS_INT64
typedef int64_t blacs_int;
#else
typedef int32_t blacs_int;
#endif

/* The message system's own type of a communicator, for programs that are compiled for a BLACS over
 * MPI as well. */
#ifndef BLACS_SYSTEM_CONTEXT
#define BLACS_SYSTEM_CONTEXT blacs_int
#endif

/* What blacs_get asks for; blacs_set changes those from 11 on. */
enum {
    BLACS_SYSTEM = 0,          /* the system context: all processes of the job */
    BLACS_MESSAGE_IDS = 1,     /* the first and the last message id, two integers */
    BLACS_DEBUG_LEVEL = 2,
    BLACS_SYSTEM_OF_GRID = 10, /* a system context of the grid's processes */
    BLACS_RINGS_BS = 11,       /* paths of topology 'm' in broadcasts */
    BLACS_BRANCHES_BS = 12,    /* branches of topology 't' in broadcasts */
    BLACS_RINGS_CO = 13,       /* the same for combines */
    BLACS_BRANCHES_CO = 14,
    BLACS_REPEATABLE = 15,     /* whether combines give the same bits in every call */
    BLACS_COHERENT = 16        /* whether combines give the same bits in every process */
};

/*
 * Memory that other processes can reach. A matrix of 1 KiB or more in it whose columns follow each
 * other without gaps is sent and received without intermediate copies. `blacs_fmpl_alloc` returns
 * null if no more can be had (`onesided run --segment-bytes`); the memory is zeroed and starts at a
 * multiple of 64 bytes. Both may be called by any process at any time before blacs_exit(0).
 */
void *blacs_fmpl_alloc(size_t bytes);
void blacs_fmpl_free(void *memory);

/* ----- C names ----- */

/* Processes: the caller's number, and how many there are. The first of these calls, or of
 * gridinit and gridmap, begins, and is made by all processes. */
void Cblacs_pinfo(blacs_int *mypnum, blacs_int *nprocs);
void Cblacs_setup(blacs_int *mypnum, blacs_int *nprocs);
void Cblacs_get(blacs_int context, blacs_int what, blacs_int *value);
void Cblacs_set(blacs_int context, blacs_int what, const blacs_int *value);
/* Contexts: in, a system context; out, the new context, or -1 in a process outside the grid. */
void Cblacs_gridinit(blacs_int *context, const char *order, blacs_int nprow, blacs_int npcol);
void Cblacs_gridmap(blacs_int *context, const blacs_int *usermap, blacs_int ldumap, blacs_int nprow,
                    blacs_int npcol);

void Cblacs_freebuff(blacs_int context, blacs_int wait);
void Cblacs_gridexit(blacs_int context);
/* Ends all processes of the job at once. */
void Cblacs_abort(blacs_int context, blacs_int error);
/* go_on: 0 ends the library in this process; otherwise blacs_pinfo begins anew. */
void Cblacs_exit(blacs_int go_on);

/* All -1 for a context that is not open. */
void Cblacs_gridinfo(blacs_int context, blacs_int *nprow, blacs_int *npcol, blacs_int *myrow,
                     blacs_int *mycol);
/* -1 outside the grid. */
blacs_int Cblacs_pnum(blacs_int context, blacs_int prow, blacs_int pcol);
void Cblacs_pcoord(blacs_int context, blacs_int pnum, blacs_int *prow, blacs_int *pcol);
void Cblacs_barrier(blacs_int context, const char *scope);

/* Seconds. All processes of a machine have the same wall clock. */
double Cdwalltime00(void);
double Cdcputime00(void);

/* Message ids, of which only 0 is used, and system contexts as integers of another system: the same integers here. */
blacs_int Cksendid(blacs_int context, blacs_int rdest, blacs_int cdest);
blacs_int Ckrecvid(blacs_int context, blacs_int rsrc, blacs_int csrc);
blacs_int Ckbsid(blacs_int context, const char *scope);
blacs_int Ckbrid(blacs_int context, const char *scope, blacs_int rsrc, blacs_int csrc);
BLACS_SYSTEM_CONTEXT Cblacs2sys_handle(blacs_int handle);
blacs_int Csys2blacs_handle(BLACS_SYSTEM_CONTEXT system);
void Cfree_blacs_system_handle(blacs_int handle);

/*
 * Of one precision v with elements T:
 *   vgesd2d, vgerv2d, vtrsd2d, vtrrv2d  send and receive a matrix, or a trapezoid of one
 *   vgebs2d, vgebr2d, vtrbs2d, vtrbr2d  broadcast: the sender's side, the receivers' side
 *   vgsum2d, vgamx2d, vgamn2d           sums; elements of the largest and smallest magnitude, with
 *                                       the coordinates of their processes in ra and ca, unless
 *                                       ldia is -1. The result goes to (rdest, cdest), or to all if
 *                                       one of them is -1.
 * scope: 'r' row, 'c' column, 'a' all. top: ' ', 'i', 'd', 's', 'm', '1' to '9', 't', 'f', 'h'.
 */
#define BLACS_FMPL_C(v, T)                                                                         \
    void C##v##gesd2d(blacs_int context, blacs_int m, blacs_int n, const T *a, blacs_int lda,      \
                      blacs_int rdest, blacs_int cdest);                                           \
    void C##v##gerv2d(blacs_int context, blacs_int m, blacs_int n, T *a, blacs_int lda,            \
                      blacs_int rsrc, blacs_int csrc);                                             \
    void C##v##trsd2d(blacs_int context, const char *uplo, const char *diag, blacs_int m,          \
                      blacs_int n, const T *a, blacs_int lda, blacs_int rdest, blacs_int cdest);   \
    void C##v##trrv2d(blacs_int context, const char *uplo, const char *diag, blacs_int m,          \
                      blacs_int n, T *a, blacs_int lda, blacs_int rsrc, blacs_int csrc);           \
    void C##v##gebs2d(blacs_int context, const char *scope, const char *top, blacs_int m,          \
                      blacs_int n, const T *a, blacs_int lda);                                     \
    void C##v##gebr2d(blacs_int context, const char *scope, const char *top, blacs_int m,          \
                      blacs_int n, T *a, blacs_int lda, blacs_int rsrc, blacs_int csrc);           \
    void C##v##trbs2d(blacs_int context, const char *scope, const char *top, const char *uplo,     \
                      const char *diag, blacs_int m, blacs_int n, const T *a, blacs_int lda);      \
    void C##v##trbr2d(blacs_int context, const char *scope, const char *top, const char *uplo,     \
                      const char *diag, blacs_int m, blacs_int n, T *a, blacs_int lda,             \
                      blacs_int rsrc, blacs_int csrc);                                             \
    void C##v##gsum2d(blacs_int context, const char *scope, const char *top, blacs_int m,          \
                      blacs_int n, T *a, blacs_int lda, blacs_int rdest, blacs_int cdest);         \
    void C##v##gamx2d(blacs_int context, const char *scope, const char *top, blacs_int m,          \
                      blacs_int n, T *a, blacs_int lda, blacs_int *ra, blacs_int *ca,              \
                      blacs_int ldia, blacs_int rdest, blacs_int cdest);                           \
    void C##v##gamn2d(blacs_int context, const char *scope, const char *top, blacs_int m,          \
                      blacs_int n, T *a, blacs_int lda, blacs_int *ra, blacs_int *ca,              \
                      blacs_int ldia, blacs_int rdest, blacs_int cdest);

BLACS_FMPL_C(i, blacs_int)
BLACS_FMPL_C(s, float)
BLACS_FMPL_C(d, double)
/* Complex numbers: two adjacent floats or doubles, whatever their type. */
BLACS_FMPL_C(c, void)
BLACS_FMPL_C(z, void)
#undef BLACS_FMPL_C

/* ----- Fortran names ----- */

void blacs_pinfo_(blacs_int *mypnum, blacs_int *nprocs);
void blacs_setup_(blacs_int *mypnum, blacs_int *nprocs);
void blacs_get_(const blacs_int *context, const blacs_int *what, blacs_int *value);
void blacs_set_(const blacs_int *context, const blacs_int *what, const blacs_int *value);
void blacs_gridinit_(blacs_int *context, const char *order, const blacs_int *nprow,
                     const blacs_int *npcol);
void blacs_gridmap_(blacs_int *context, const blacs_int *usermap, const blacs_int *ldumap,
                    const blacs_int *nprow, const blacs_int *npcol);

void blacs_freebuff_(const blacs_int *context, const blacs_int *wait);
void blacs_gridexit_(const blacs_int *context);
void blacs_abort_(const blacs_int *context, const blacs_int *error);
void blacs_exit_(const blacs_int *go_on);

void blacs_gridinfo_(const blacs_int *context, blacs_int *nprow, blacs_int *npcol, blacs_int *myrow,
                     blacs_int *mycol);
blacs_int blacs_pnum_(const blacs_int *context, const blacs_int *prow, const blacs_int *pcol);
void blacs_pcoord_(const blacs_int *context, const blacs_int *pnum, blacs_int *prow,
                   blacs_int *pcol);
void blacs_barrier_(const blacs_int *context, const char *scope);

double dwalltime00_(void);
double dcputime00_(void);

blacs_int ksendid_(const blacs_int *context, const blacs_int *rdest, const blacs_int *cdest);
blacs_int krecvid_(const blacs_int *context, const blacs_int *rsrc, const blacs_int *csrc);
blacs_int kbsid_(const blacs_int *context, const char *scope);
blacs_int kbrid_(const blacs_int *context, const char *scope, const blacs_int *rsrc,
                 const blacs_int *csrc);
blacs_int blacs2sys_handle_(const blacs_int *handle);
blacs_int sys2blacs_handle_(const blacs_int *system);
void free_blacs_system_handle_(const blacs_int *handle);

#define BLACS_FMPL_FORTRAN(v, T)                                                                   \
    void v##gesd2d_(const blacs_int *context, const blacs_int *m, const blacs_int *n, const T *a,  \
                    const blacs_int *lda, const blacs_int *rdest, const blacs_int *cdest);         \
    void v##gerv2d_(const blacs_int *context, const blacs_int *m, const blacs_int *n, T *a,        \
                    const blacs_int *lda, const blacs_int *rsrc, const blacs_int *csrc);           \
    void v##trsd2d_(const blacs_int *context, const char *uplo, const char *diag,                  \
                    const blacs_int *m, const blacs_int *n, const T *a, const blacs_int *lda,      \
                    const blacs_int *rdest, const blacs_int *cdest);                               \
    void v##trrv2d_(const blacs_int *context, const char *uplo, const char *diag,                  \
                    const blacs_int *m, const blacs_int *n, T *a, const blacs_int *lda,            \
                    const blacs_int *rsrc, const blacs_int *csrc);                                 \
    void v##gebs2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const blacs_int *m, const blacs_int *n, const T *a, const blacs_int *lda);     \
    void v##gebr2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const blacs_int *m, const blacs_int *n, T *a, const blacs_int *lda,            \
                    const blacs_int *rsrc, const blacs_int *csrc);                                 \
    void v##trbs2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const char *uplo, const char *diag, const blacs_int *m, const blacs_int *n,    \
                    const T *a, const blacs_int *lda);                                             \
    void v##trbr2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const char *uplo, const char *diag, const blacs_int *m, const blacs_int *n,    \
                    T *a, const blacs_int *lda, const blacs_int *rsrc, const blacs_int *csrc);     \
    void v##gsum2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const blacs_int *m, const blacs_int *n, T *a, const blacs_int *lda,            \
                    const blacs_int *rdest, const blacs_int *cdest);                               \
    void v##gamx2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const blacs_int *m, const blacs_int *n, T *a, const blacs_int *lda,            \
                    blacs_int *ra, blacs_int *ca, const blacs_int *ldia, const blacs_int *rdest,   \
                    const blacs_int *cdest);                                                       \
    void v##gamn2d_(const blacs_int *context, const char *scope, const char *top,                  \
                    const blacs_int *m, const blacs_int *n, T *a, const blacs_int *lda,            \
                    blacs_int *ra, blacs_int *ca, const blacs_int *ldia, const blacs_int *rdest,   \
                    const blacs_int *cdest);

BLACS_FMPL_FORTRAN(i, blacs_int)
BLACS_FMPL_FORTRAN(s, float)
BLACS_FMPL_FORTRAN(d, double)
BLACS_FMPL_FORTRAN(c, void)
BLACS_FMPL_FORTRAN(z, void)
#undef BLACS_FMPL_FORTRAN

#ifdef __cplusplus
}
#endif

#endif
