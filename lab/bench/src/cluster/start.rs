//! The time from the launch of a job until its first barrier completes, compared with Open MPI's.

use super::{
    Found, PROVIDERS,
    commands::{commands, lines_of, on_nodes},
    row::Row,
};
use crate::{goal::Goal, quantity::Unit, statistics::median};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const MPIRUN: &str = "mpirun.openmpi";
const MPICC: &str = "mpicc.openmpi";
const RANKS: usize = 64;
/// The numbers of nodes. Open MPI's ranks are on one.
const NODES: [usize; 3] = [1, 2, 8];
/// The program of the reference.
const BARRIER: &str = include_str!("barrier.c");

pub(super) fn measure(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mpi = match compiled(folder.path()) {
        Ok(mpi) => mpi,
        Err(why) => {
            found.skip(&format!("{RANKS} ranks, beside Open MPI"), why);
            return Ok(());
        }
    };
    let mut others = Vec::new();
    let mut ours = NODES.map(|_| Vec::new());
    for _ in 0..if quick { 1 } else { 3 } {
        let mut command = Command::new(MPIRUN);
        command.args(["--oversubscribe", "-n", &RANKS.to_string()]);
        if rustix::process::geteuid().is_root() {
            command.arg("--allow-run-as-root");
        }
        command.arg(&mpi);
        others.push(passed(command)?);
        for (nodes, ours) in NODES.iter().zip(&mut ours) {
            let mut command = commands(program, &["barrier"]);
            on_nodes(&mut command, RANKS, RANKS / nodes, PROVIDERS[0]);
            ours.push(passed(command)?);
        }
    }
    let Some(other) = median(others) else { return Ok(()) };
    for (nodes, ours) in NODES.iter().zip(ours) {
        let Some(ours) = median(ours) else { continue };
        let nodes = if *nodes == 1 { "one node".to_owned() } else { format!("{nodes} nodes") };
        let what = format!("{RANKS} ranks on {nodes}, launch to first barrier, beside Open MPI");
        found.rows.push(Row::beside(what, Unit::Nanoseconds, ours, other, Goal::Ratio(1.0)));
    }
    Ok(())
}

/// Compiles the program of the reference.
fn compiled(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let (source, program) = (folder.join("barrier.c"), folder.join("barrier"));
    fs::write(&source, BARRIER)?;
    let missing = |name: &'static str| move |error| format!("{name}: {error}");
    Command::new(MPIRUN).arg("--version").output().map_err(missing(MPIRUN))?;
    let mut compiler = Command::new(MPICC);
    let status = compiler.arg("-O2").arg("-o").arg(&program).arg(&source).status().map_err(missing(MPICC))?;
    if status.success() { Ok(program) } else { Err("the compiler fails".into()) }
}

/// Returns the time until rank 0 had passed the barrier, in ns.
fn passed(command: Command) -> Result<f64, Box<dyn Error>> {
    let lines = lines_of(command)?;
    let passed = lines.iter().find(|(line, _)| line == "passed").ok_or("no rank has passed the barrier")?;
    Ok(passed.1.as_nanos() as f64)
}
