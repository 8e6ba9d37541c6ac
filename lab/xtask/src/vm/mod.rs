//! `cargo xtask vm`: programs on machines with NICs. The machines are virtual ones under qemu, each with
//! a kernel of its own, and with a verbs device, Soft-RoCE (`rdma_rxe`), over their wire. Emulated CPUs
//! make absolute times meaningless.

mod cases;
mod image;
mod machines;
mod packages;
mod slurm;
mod speed;
mod wire;

use crate::{
    hosts::{
        bed::{Bed, interrupt},
        lose, losses,
    },
    ofi,
};
use clap::Args;
use machines::{Machines, Size};
use packages::Packages;
use std::{
    error::Error,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only the offers of libfabric, and one program on two machines.
    #[arg(long)]
    quick: bool,
    /// libfabric's provider; the machines' NICs are those of verbs.
    #[arg(long, default_value = "verbs;ofi_rxm")]
    provider: String,
    /// Number of machines.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=9))]
    machines: u32,
    /// CPUs of each machine.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    cpus: u32,
    /// Memory of each machine, in MiB.
    #[arg(long, default_value_t = 1536, value_parser = clap::value_parser!(u32).range(512..))]
    memory: u32,
    /// Seconds of silence after which a rank counts as lost.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    lease: u32,
    /// Time limit of each program, in seconds.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    within: u64,
    /// Do only the runs whose names contain this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Print JSON at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(obstacle) = packages::obstacle().or_else(|| ofi::missing().map(str::to_owned)) {
        writeln!(io::stdout(), "vm: SKIPPED: {obstacle}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let packages = match Packages::in_directory(&target()?.join("vm")) {
        Ok(packages) => packages,
        Err(error) => {
            writeln!(io::stdout(), "vm: SKIPPED: {error}")?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let programs = cases::Programs::build(options.quick)?;
    let stop = interrupt()?;
    let count = if options.quick { 2 } else { options.machines as usize };
    let begun = Instant::now();
    eprintln!("{count} machines start …");
    let machines = Machines::start(count, Size { cpus: options.cpus, memory: options.memory }, &packages)?;
    let started_after = begun.elapsed().as_secs_f64();
    let mut bed = Bed {
        network: Box::new(machines),
        variables: vec![cases::SEGMENT.to_owned()],
        programs: programs.examples.clone(),
        options: vec!["--provider".to_owned(), options.provider.clone()],
        lease: Duration::from_secs(options.lease.into()),
        stop,
        rows: Vec::new(),
        only: options.only.clone(),
    };
    let within = Duration::from_secs(options.within);
    let provider = &*options.provider;
    bed.row("providers", 1, &|bed| cases::offers(bed, &programs, provider));
    for example in cases::examples(options.quick) {
        bed.row(example.name, example.ranks, &|bed| cases::example(bed, &example, within));
    }
    if !options.quick {
        bed.row("torchrun's variables", count, &|bed| cases::torchrun(bed, provider, within));
        bed.row("Slurm", count * 2, &|bed| slurm::slurm(bed, provider, within));
        bed.row("conformance", 4, &|bed| cases::conformance(bed, &programs, provider));
        bed.row("processes", 2, &|bed| cases::pairs(bed, &programs, provider));
        bed.row("speed", 2, &|bed| speed::speed(bed, &programs, provider));
        lose(&mut bed);
        let ranks = losses::ranks(&bed);
        bed.row("a NIC goes down", ranks, &cases::nic_down);
        bed.row("a machine is killed", ranks, &cases::killed);
    }
    let head =
        format!("{count} machines, started within {started_after:.0} s, over {provider}, lease {} s", options.lease);
    bed.report(&head, options.json)?;
    Ok(if bed.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the directory of what cargo builds.
fn target() -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    Ok(root.join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)))
}
