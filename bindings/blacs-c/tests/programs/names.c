/*
 * Takes the address of each of the 156 routines, so that it links only if the library defines them
 * all, and prints how many there are. Calls none: one process without a launcher will do.
 */
#include <stdio.h>

#include "blacs_fmpl.h"

#define C_NAMES \
    N(Cblacs2sys_handle) N(Cblacs_abort) N(Cblacs_barrier) N(Cblacs_exit) N(Cblacs_freebuff) \
    N(Cblacs_get) N(Cblacs_gridexit) N(Cblacs_gridinfo) N(Cblacs_gridinit) N(Cblacs_gridmap) \
    N(Cblacs_pcoord) N(Cblacs_pinfo) N(Cblacs_pnum) N(Cblacs_set) N(Cblacs_setup) N(Ccgamn2d) \
    N(Ccgamx2d) N(Ccgebr2d) N(Ccgebs2d) N(Ccgerv2d) N(Ccgesd2d) N(Ccgsum2d) N(Cctrbr2d) \
    N(Cctrbs2d) N(Cctrrv2d) N(Cctrsd2d) N(Cdcputime00) N(Cdgamn2d) N(Cdgamx2d) N(Cdgebr2d) \
    N(Cdgebs2d) N(Cdgerv2d) N(Cdgesd2d) N(Cdgsum2d) N(Cdtrbr2d) N(Cdtrbs2d) N(Cdtrrv2d) \
    N(Cdtrsd2d) N(Cdwalltime00) N(Cfree_blacs_system_handle) N(Cigamn2d) N(Cigamx2d) N(Cigebr2d) \
    N(Cigebs2d) N(Cigerv2d) N(Cigesd2d) N(Cigsum2d) N(Citrbr2d) N(Citrbs2d) N(Citrrv2d) \
    N(Citrsd2d) N(Ckbrid) N(Ckbsid) N(Ckrecvid) N(Cksendid) N(Csgamn2d) N(Csgamx2d) N(Csgebr2d) \
    N(Csgebs2d) N(Csgerv2d) N(Csgesd2d) N(Csgsum2d) N(Cstrbr2d) N(Cstrbs2d) N(Cstrrv2d) \
    N(Cstrsd2d) N(Csys2blacs_handle) N(Czgamn2d) N(Czgamx2d) N(Czgebr2d) N(Czgebs2d) N(Czgerv2d) \
    N(Czgesd2d) N(Czgsum2d) N(Cztrbr2d) N(Cztrbs2d) N(Cztrrv2d) N(Cztrsd2d)

#define FORTRAN_NAMES \
    N(blacs2sys_handle_) N(blacs_abort_) N(blacs_barrier_) N(blacs_exit_) N(blacs_freebuff_) \
    N(blacs_get_) N(blacs_gridexit_) N(blacs_gridinfo_) N(blacs_gridinit_) N(blacs_gridmap_) \
    N(blacs_pcoord_) N(blacs_pinfo_) N(blacs_pnum_) N(blacs_set_) N(blacs_setup_) N(cgamn2d_) \
    N(cgamx2d_) N(cgebr2d_) N(cgebs2d_) N(cgerv2d_) N(cgesd2d_) N(cgsum2d_) N(ctrbr2d_) \
    N(ctrbs2d_) N(ctrrv2d_) N(ctrsd2d_) N(dcputime00_) N(dgamn2d_) N(dgamx2d_) N(dgebr2d_) \
    N(dgebs2d_) N(dgerv2d_) N(dgesd2d_) N(dgsum2d_) N(dtrbr2d_) N(dtrbs2d_) N(dtrrv2d_) \
    N(dtrsd2d_) N(dwalltime00_) N(free_blacs_system_handle_) N(igamn2d_) N(igamx2d_) N(igebr2d_) \
    N(igebs2d_) N(igerv2d_) N(igesd2d_) N(igsum2d_) N(itrbr2d_) N(itrbs2d_) N(itrrv2d_) \
    N(itrsd2d_) N(kbrid_) N(kbsid_) N(krecvid_) N(ksendid_) N(sgamn2d_) N(sgamx2d_) N(sgebr2d_) \
    N(sgebs2d_) N(sgerv2d_) N(sgesd2d_) N(sgsum2d_) N(strbr2d_) N(strbs2d_) N(strrv2d_) \
    N(strsd2d_) N(sys2blacs_handle_) N(zgamn2d_) N(zgamx2d_) N(zgebr2d_) N(zgebs2d_) N(zgerv2d_) \
    N(zgesd2d_) N(zgsum2d_) N(ztrbr2d_) N(ztrbs2d_) N(ztrrv2d_) N(ztrsd2d_)

typedef void routine(void);

#define N(name) {#name, (routine *)name},
static const struct {
    const char *name;
    routine *address;
} names[] = {C_NAMES FORTRAN_NAMES};
#undef N

int main(int argc, char **argv) {
    int count = (int)(sizeof names / sizeof names[0]), missing = 0;
    for (int k = 0; k < count; k++) {
        if (names[k].address == 0) missing++;
        if (argc > 1 && argv[1][0] == '-') printf("%s\n", names[k].name);
    }
    printf("names %d missing %d\n", count, missing);
    return count == 156 && missing == 0 ? 0 : 1;
}
