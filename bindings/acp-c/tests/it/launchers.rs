//! Programs started by ACP's own launcher and by those of MPI and Slurm.

use crate::{
    basic::{is_well, program},
    tools::ended,
};
use process_tests::{
    child::{self, Ended, HANG},
    programs::{ended_by_variables, is_installed, mpirun},
};
use std::path::Path;

/// What `acprun` executes for three processes on one machine, as shells started at the same time.
const ACPRUN: &str = r#"
for rank in 0 1 2; do
    sh -c "\"$0\" $1 --acp-myrank $rank --acp-nprocs 3 --acp-taskid 100 --acp-port-local $((44256 + rank)) \
        --acp-port-remote $((44256 + rank / 2)) --acp-host-remote 127.0.0.1 --acp-size-smem 1024 \
        --acp-size-smem-cl 1024 --acp-size-smem-dl 1024 --acp-ethernet-speed 1000" &
    processes="$processes $!"
done
code=0
for process in $processes; do
    wait "$process" || code=$?
done
exit $code
"#;

/// Runs three ranks of a program with another word on its command line, if it is not empty.
fn acprun(program: &Path, word: &str) -> Ended {
    let mut command = child::program("setsid", ["--wait", "sh", "-c", ACPRUN]);
    command.arg(program).arg(word);
    ended(command)
}

pub(crate) fn acprun_starts_ranks() {
    let Some(program) = program("first") else { return };
    is_well("first", 3, &acprun(&program, ""));
    // The launcher ends no process: the others notice a loss themselves.
    let Some(program) = crate::basic::program("ends") else { return };
    let ended = acprun(&program, "killed");
    assert_eq!(ended.out.matches("survivor: -1").count(), 2, "{ended}");
}

pub(crate) fn acprun_over_several_machines_is_refused() {
    let Some(program) = program("ends") else { return };
    let words = ["x", "--acp-myrank", "1", "--acp-nprocs", "2", "--acp-host-remote", "10.1.2.3"];
    let mut command = child::program(&program, words);
    command.env("ONESIDED_VERBOSE", "1");
    let ended = ended(command);
    assert!(ended.code() == Some(4) && ended.err.contains("10.1.2.3): all have to be on one"), "{ended}");
    let ended = crate::tools::alone(&program, &["--acp-nonsense", "1"]);
    assert!(ended.code() == Some(1) && ended.err == "acp: `--acp-nonsense` is not an option of ACP\n", "{ended}");
}

pub(crate) fn open_mpi_starts_ranks() {
    if !is_installed("mpirun") {
        return;
    }
    let Some(program) = program("first") else { return };
    is_well("first", 2, &ended(mpirun(2, &program)));
}

pub(crate) fn variables_of_other_launchers_make_a_job() {
    let Some(program) = program("first") else { return };
    for rank in ended_by_variables(HANG, &program).iter().flatten() {
        is_well("first", 1, rank);
    }
}
