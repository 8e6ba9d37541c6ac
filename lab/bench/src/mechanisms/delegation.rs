//! The benefit and the cost of delegation.
//!
//! * A copy from one rank's memory to another's, requested by a third, compared with a get and a
//!   put through memory of the third (figures 2 and 1 of the ACP paper). Over threads the third
//!   one's CPU copies; in virtual time the destination's rank fetches the bytes.
//! * The time of a rank's own copies of 8 bytes while it executes atomics for others, in each mode:
//!   the mean over some milliseconds, with and without the atomics, and the number of atomics it
//!   served. Over threads there are as many helpers as ranks, or twice as many, so the figures
//!   depend on the number of cores as much as on the mode.

use crate::{
    output::{Context, Output, Steps},
    quantity::Unit,
    sheet::{Entry, Sheet, ns},
};
use acp::{Acp, Atomics, GlobalAddress, Mode, Order};
use clap::Args;
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank};
use std::{error::Error, process::ExitCode, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// In virtual time only, with two sizes and two numbers of ranks: a smoke test.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    options.output.sheets(Context::new("delegation", "threads and virt", options.quick), |steps| {
        let machines = [("threads of this machine", Machine::Threads), ("FX100 in virtual time", Machine::Virtual)];
        let mut sheets = Vec::new();
        for (name, machine) in machines.into_iter().skip(usize::from(options.quick)) {
            sheets.push(by_size(name, machine, if options.quick { &SIZES[..2] } else { &SIZES }, steps)?);
            sheets.push(by_mode(name, machine, if options.quick { &ASKERS[..2] } else { &ASKERS }, steps)?);
        }
        Ok(sheets)
    })
}

const SIZES: [usize; 5] = [8, 1 << 10, 16 << 10, 256 << 10, 1 << 20];
const ASKERS: [usize; 3] = [0, 1, 4];

/// The platform of a job.
#[derive(Clone, Copy)]
enum Machine {
    Threads,
    /// FX100, with one rank on each node.
    Virtual,
}

impl Machine {
    fn run<P: Program>(self, ranks: usize, program: &P) -> Result<Vec<P::Out>, Box<dyn Error>> {
        match self {
            Machine::Threads => {
                Ok(Threads::new(ranks).segment_bytes(16 << 20).shared_address_space(true).run(program)?)
            }
            Machine::Virtual => {
                let platform = Platform::fx100().with("shared_tags", 1)?;
                Ok(Job::new(&platform, ranks).ranks_per_node(1).run(program)?.outs)
            }
        }
    }

    /// Returns the number of measurements, of which the shortest counts.
    fn batches(self) -> u32 {
        match self {
            Machine::Threads => 50,
            Machine::Virtual => 1,
        }
    }

    /// Returns the time for which a rank executes atomics for others.
    fn window(self) -> Duration {
        match self {
            Machine::Threads => Duration::from_millis(100),
            Machine::Virtual => Duration::from_millis(2),
        }
    }
}

/// The path of bytes from rank 1 to rank 2.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    /// Through memory of rank 0, which requests the copy.
    Buffered,
}

/// Returns the nanoseconds of one copy at rank 0.
async fn copies(fabric: Fabric, way: Way, bytes: usize, batches: u32) -> ProgramResult<f64> {
    const ROUNDS: u32 = 10;
    let acp = Acp::init_with(&fabric, acp::Options::default().starter_bytes(bytes)).await?;
    let at = starters(&acp)?;
    let mut best = f64::INFINITY;
    if acp.rank() == Rank::new(0) {
        for _ in 0..batches {
            let begun = fabric.now();
            for _ in 0..ROUNDS {
                let copied = match way {
                    Way::Direct => acp.copy(at[2], at[1], bytes, Order::None).await?,
                    Way::Buffered => {
                        let got = acp.copy(at[0], at[1], bytes, Order::None).await?;
                        acp.copy(at[2], at[0], bytes, got).await?
                    }
                };
                acp.complete(copied).await?;
            }
            best = best.min((fabric.now() - begun).as_secs_f64() * 1e9 / f64::from(ROUNDS));
        }
    }
    acp.sync().await?;
    acp.finalize().await?;
    Ok(best)
}

/// Rank 0 copies to rank 1 for `window`, while all further ranks add to a word of rank 0; returns
/// the nanoseconds of a copy, or the number of adds of the rank.
async fn disturbed(fabric: Fabric, options: acp::Options, window: Duration) -> ProgramResult<f64> {
    let acp = Acp::init_with(&fabric, options).await?;
    let (at, me) = (starters(&acp)?, acp.rank().index());
    let (stop, result) = (at[me].offset_by(8)?, at[me].offset_by(16)?);
    acp.sync().await?;
    let mut done = 0u32;
    let mut out = f64::NAN;
    match me {
        0 => {
            let begun = fabric.now();
            while fabric.now() < begun + window {
                let copied = acp.copy(at[1], at[0].offset_by(64)?, 8, Order::None).await?;
                acp.complete(copied).await?;
                done += 1;
            }
            out = (fabric.now() - begun).as_secs_f64() * 1e9 / f64::from(done);
            for asker in &at[2..] {
                acp.store(asker.offset_by(8)?, 1u64).await?;
            }
        }
        1 => {}
        _ => {
            while acp.load::<u64>(stop).await? == 0 {
                let added = acp.atomic(result, at[0], Amo::Add(1u64), Order::None).await?;
                acp.complete(added).await?;
                done += 1;
            }
            out = f64::from(done);
        }
    }
    acp.sync().await?;
    acp.finalize().await?;
    Ok(out)
}

fn starters(acp: &Acp) -> acp::Result<Vec<GlobalAddress>> {
    (0..acp.ranks() as u32).map(|rank| acp.starter(Rank::new(rank))).collect()
}

/// Compares copies that rank 0 requests with those through its own memory.
fn by_size(name: &str, machine: Machine, sizes: &[usize], steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let columns = ["bytes", "direct", "get + put", "ratio"];
    let mut sheet = Sheet::new(format!("Copies requested by a third rank, {name}"), columns);
    steps.expect(sizes.len());
    for &bytes in sizes {
        steps.begin(format_args!("{name}, {bytes} B"));
        let took = |way| -> Result<f64, Box<dyn Error>> {
            let outs = machine.run(3, &async |fabric: Fabric| copies(fabric, way, bytes, machine.batches()).await)?;
            Ok(outs[0])
        };
        let (direct, buffered) = (took(Way::Direct)?, took(Way::Buffered)?);
        sheet.row([bytes.into(), ns(direct), ns(buffered), Entry::Figure(buffered / direct, Unit::Times)]);
    }
    Ok(sheet)
}

/// Measures own copies in each mode while others delegate.
fn by_mode(name: &str, machine: Machine, askers: &[usize], steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let direct = acp::Options::default().atomics(Atomics::Delegated);
    let queue = direct.mode(Mode::CommandQueue);
    let modes = [
        ("Direct", direct),
        ("Direct, serving helper", direct.serving_helper(true)),
        ("CommandQueue", queue),
        ("CommandQueue, bypass", queue.bypass(true)),
        ("Split", direct.mode(Mode::Split)),
        ("Split, bypass", direct.mode(Mode::Split).bypass(true)),
    ];
    let of = |askers: &usize| [format!("beside {askers}"), format!("served for {askers}")];
    let columns = ["mode".to_owned()].into_iter().chain(askers.iter().flat_map(of));
    let mut sheet = Sheet::new(format!("Own copies while others delegate, {name}"), columns);
    steps.expect(modes.len());
    for (mode, options) in modes {
        steps.begin(format_args!("{name}, {mode}"));
        let mut row = vec![Entry::from(mode)];
        for &askers in askers {
            let program = async |fabric: Fabric| disturbed(fabric, options, machine.window()).await;
            let outs = machine.run(2 + askers, &program)?;
            let served = outs[2..].iter().fold(0.0, |sum, served| sum + served) / machine.window().as_secs_f64();
            row.extend([ns(outs[0]), Entry::Figure(served, Unit::Rate)]);
        }
        sheet.row(row);
    }
    Ok(sheet)
}
