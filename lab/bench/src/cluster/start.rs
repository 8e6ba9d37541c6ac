//! The time from the launch of a job until its first barrier completes, compared with Open MPI's.

use super::{
    Found, PROVIDERS,
    commands::{commands, on_nodes},
    row::Row,
};
use crate::{
    foreign::{lines_of::lines_of, mpi, source::Source},
    goal::Goal,
    quantity::Unit,
    statistics::median,
};
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

const RANKS: usize = 64;
/// The numbers of nodes. Open MPI's ranks are on one.
const NODES: [usize; 3] = [1, 2, 8];
/// The program of the reference.
const BARRIER: Source = Source { name: "barrier", text: include_str!("barrier.c"), header: None };

pub(super) fn measure(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (barrier, open_mpi) = match reference(folder.path()) {
        Ok(built) => built,
        Err(why) => {
            found.skip(&format!("{RANKS} ranks, beside Open MPI"), why);
            return Ok(());
        }
    };
    let mut others = Vec::new();
    let mut ours = NODES.map(|_| Vec::new());
    for _ in 0..if quick { 1 } else { 3 } {
        let mut command = open_mpi.run(RANKS);
        command.arg(&barrier);
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

/// Returns the program of the reference, and its library.
fn reference(folder: &Path) -> Result<(PathBuf, mpi::Library), Box<dyn Error>> {
    let open_mpi = mpi::Library::all().into_iter().find(mpi::Library::is_open_mpi).ok_or(mpi::NONE)?;
    Ok((open_mpi.compiled(&BARRIER, folder)?, open_mpi))
}

/// Returns the time until rank 0 had passed the barrier, in ns.
fn passed(command: Command) -> Result<f64, Box<dyn Error>> {
    let lines = lines_of(command)?;
    let passed = lines.iter().find(|(line, _)| line == "passed").ok_or("no rank has passed the barrier")?;
    Ok(passed.1.as_nanos() as f64)
}
