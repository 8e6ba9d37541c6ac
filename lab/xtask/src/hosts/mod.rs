//! `cargo xtask hosts`: programs on three hosts, over ssh and libfabric. The hosts are network
//! namespaces of this machine. In some runs a rank is killed, or a host disconnected.

pub(crate) mod bed;
pub(crate) mod job;
pub(crate) mod launcher;
pub(crate) mod losses;
mod namespaces;
pub(crate) mod network;

use crate::ofi;
use bed::{Bed, interrupt, whole};
use clap::Args;
use namespaces::Namespaces;
use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

/// The number of hosts.
const HOSTS: usize = 3;

/// The programs that run to their end: the number of ranks of each host, the name, its arguments,
/// and the expected output.
const PROGRAMS: [(usize, &str, &[&str], &str); 8] = [
    (2, "shared_counter", &[], "samples counted by copies, none lost"),
    (2, "heat_2d", &[], ""),
    (1, "ping_pong", &["--posted", "100"], "receives posted"),
    (2, "distributed_hashtable", &[], ""),
    (2, "window_lock", &[], ""),
    (2, "stencil_rma", &[], ""),
    (2, "word_count", &[], ""),
    (2, "matmul_summa", &[], ""),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Seconds of silence after which a rank counts as lost.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    lease: u32,
    /// Do only the runs whose names contain this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Print JSON at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(obstacle) = namespaces::obstacle().or_else(|| ofi::missing().map(str::to_owned)) {
        writeln!(io::stdout(), "skipped: {obstacle}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = PROGRAMS.iter().map(|(_, name, ..)| *name).chain(["loss_delay"]).collect();
    let programs = ofi::examples(&names)?;
    let stop = interrupt()?;
    let mut bed = Bed {
        network: Box::new(Namespaces::of(HOSTS)?),
        programs,
        variables: Vec::new(),
        options: Vec::new(),
        lease: Duration::from_secs(options.lease.into()),
        stop,
        rows: Vec::new(),
        only: options.only.clone(),
    };
    for (slots, name, arguments, prints) in PROGRAMS {
        bed.row(name, HOSTS * slots, &|bed| whole(bed, slots, name, arguments, prints));
    }
    lose(&mut bed);
    bed.report(&format!("{HOSTS} hosts, lease {} s", options.lease), options.json)?;
    Ok(if bed.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does the runs in which ranks, hosts and launchers are lost; then all hosts are connected again.
pub(crate) fn lose(bed: &mut Bed) {
    let ranks = losses::ranks(bed);
    bed.row("a rank is killed", ranks, &losses::killed);
    bed.row("a host is cut off for less than the lease", ranks, &losses::cut_shortly);
    bed.row("a host is cut off", ranks, &losses::cut);
    bed.row("the launcher's host is cut off", ranks, &launcher::cut);
    bed.row("the launcher is killed", ranks, &launcher::killed);
    bed.row("after the host has healed", ranks, &|bed| whole(bed, losses::SLOTS, "shared_counter", &[], "none lost"));
}
