//! The exported names of the shared library.

use process_tests::programs::exported_names;
use std::collections::BTreeSet;

/// Routines without a precision.
const PLAIN: &str = "blacs_pinfo blacs_setup blacs_get blacs_set blacs_gridinit blacs_gridmap \
    blacs_freebuff blacs_gridexit blacs_abort blacs_exit \
    blacs_gridinfo blacs_pnum blacs_pcoord blacs_barrier dwalltime00 dcputime00 \
    ksendid krecvid kbsid kbrid blacs2sys_handle sys2blacs_handle free_blacs_system_handle";

/// Routines of each precision.
const PRECISE: &str = "gesd2d gerv2d trsd2d trrv2d gebs2d gebr2d trbs2d trbr2d gsum2d gamx2d gamn2d";

pub(crate) fn all_names_and_no_others_are_exported() {
    let Some(exported) = exported_names("blacs_fmpl") else { return };
    let precise = ["i", "s", "d", "c", "z"]
        .into_iter()
        .flat_map(|letter| PRECISE.split_whitespace().map(move |stem| format!("{letter}{stem}")));
    let routines: Vec<_> = PLAIN.split_whitespace().map(str::to_owned).chain(precise).collect();
    assert_eq!(routines.len(), 78);
    let names = routines.iter().flat_map(|routine| [format!("{routine}_"), format!("C{routine}")]);
    let own = ["blacs_fmpl_alloc", "blacs_fmpl_free"].map(str::to_owned);
    let wanted: BTreeSet<String> = names.chain(own).collect();
    let difference: Vec<_> = wanted.symmetric_difference(&exported).collect();
    assert!(difference.is_empty(), "{difference:?}");
}
