//! Programs started by other launchers.

use crate::tools::{Linked, compiled, ended};
use process_tests::{
    child,
    programs::{is_installed, mpirun},
};

/// The variables that the launchers set for rank 1 of 4, and the launchers' names in messages.
const SEVERAL: [(&str, &[(&str, &str)]); 3] = [
    ("PMIx", &[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "job"), ("OMPI_COMM_WORLD_SIZE", "4")]),
    ("PMI-1", &[("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("PMI_FD", "9")]),
    (
        "Slurm",
        &[
            ("SLURM_JOB_ID", "9"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_STEP_NODELIST", "node"),
        ],
    ),
];

pub(crate) fn other_launchers_are_refused() {
    let Some(program) = compiled(&["tests/own/ring.c"], Linked::Shared) else { return };
    for (launcher, variables) in SEVERAL {
        let mut command = child::program(&program, [""; 0]);
        command.envs(variables.iter().copied());
        let ended = ended(command);
        assert!(ended.code() == Some(1) && ended.out.is_empty(), "{launcher}: {ended}");
        for part in [&format!("{launcher} started this process as rank 1 of 4"), "`onesided run -n 4 -- PROGRAM`"] {
            assert!(
                ended.err.contains("BLACS ERROR 'setting launcher: ") && ended.err.contains(part),
                "{part}: {ended}"
            );
        }
    }
}

pub(crate) fn mpirun_starts_one_process_only() {
    if !is_installed("mpirun") {
        return;
    }
    let Some(program) = compiled(&["tests/own/ring.c"], Linked::Shared) else { return };
    for ranks in [1, 2] {
        let ended = ended(mpirun(ranks, &program));
        if ranks == 1 {
            assert!(ended.code() == Some(0) && ended.out == "ring: 1 processes\n", "{ended}");
        } else {
            assert!(ended.code() == Some(1) && !ended.out.contains("ring"), "{ended}");
            assert!(ended.err.contains("of 2, but only `onesided run` starts several ranks"), "{ended}");
        }
    }
}
