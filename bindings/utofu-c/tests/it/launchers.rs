//! Programs started by other launchers.

use crate::tools::{compiled, compiled_by, ended, says};
use process_tests::{
    child::{self, Child, HANG},
    programs::{Linkage, is_installed},
};
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Returns a command that runs a program under Open MPI, also as root and with more ranks than CPUs.
fn mpirun(ranks: usize, program: &Path) -> Command {
    let mut command = child::program("mpirun", ["-n", &ranks.to_string()]);
    command.arg(program);
    for allowed in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"] {
        command.env(allowed, "1");
    }
    command
}

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

/// The ranks are children of this process, as they are of the launchers' daemons.
pub(crate) fn variables_of_other_launchers_make_a_job() {
    let Some(program) = compiled("utofu_pingpong", Linkage::Shared) else { return };
    // MPICH's launcher, and Slurm without PMI.
    let launchers: [&[(&str, &str)]; 2] = [
        &[("PMI_SIZE", "2"), ("PMI_FD", "9"), ("MPI_LOCALNRANKS", "2")],
        &[
            ("SLURM_JOB_ID", "9"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NODELIST", "node"),
        ],
    ];
    for variables in launchers {
        let name = if variables[0].0 == "PMI_SIZE" { "PMI_RANK" } else { "SLURM_PROCID" };
        // The first rank comes last: the other waits for it.
        let ranks = ["1", "0"].map(|rank| {
            let mut command = child::program(&program, [""; 0]);
            command.envs(variables.iter().copied()).env(name, rank);
            command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            Child::start(command)
        });
        let [second, first] = ranks.map(|rank| rank.end_within(HANG));
        says(&first, "pingpong: 1000 messages");
        assert!(second.code() == Some(0) && second.err.is_empty(), "{second}");
    }
}
