//! Programs started by other launchers.

use crate::tools::{compiled, compiled_by, ended, says};
use process_tests::{
    child::HANG,
    programs::{Linkage, ended_by_variables, is_installed, mpirun},
};

pub(crate) fn open_mpi_starts_ranks() {
    if !is_installed("mpirun") {
        return;
    }
    for (name, ranks, text) in [("pairs", 2, "pairs: 2 ranks\n"), ("utofu_ring", 3, "ring: 3 ranks, 320 blocks\n")] {
        let Some(program) = compiled(name, Linkage::Shared) else { return };
        let ended = ended(mpirun(ranks, &program));
        assert!(ended.code() == Some(0) && ended.out == text, "{ended}");
    }
    // And with MPI for everything but the puts.
    let Some(program) = compiled_by("mpicc", &[], "beside") else { return };
    let ended = ended(mpirun(2, &program));
    assert!(ended.code() == Some(0) && ended.out == "beside: 2 ranks\n", "{ended}");
}

pub(crate) fn variables_of_other_launchers_make_a_job() {
    let Some(program) = compiled("utofu_pingpong", Linkage::Shared) else { return };
    for [first, second] in ended_by_variables(HANG, &program) {
        says(&first, "pingpong: 1000 messages");
        assert!(second.code() == Some(0) && second.err.is_empty(), "{second}");
    }
}
