//! The benefit and the cost of delegation: `cargo example delegation_cost --release`.
//!
//! * A copy from one rank's memory to another's, requested by a third, compared with a get and a
//!   put through memory of the third (figures 2 and 1 of the ACP paper): the time, and the size of
//!   that memory. Over threads the third one's CPU copies; in virtual time the destination's rank
//!   fetches the bytes.
//! * The time of a rank's own copies of 8 bytes while it executes atomics for others, in each mode:
//!   the mean over some milliseconds, with and without the atomics, and the number of atomics it
//!   served. Over threads there are as many helpers as ranks, or twice as many, so the figures
//!   depend on the number of cores as much as on the mode.

use onesided::acp::{self, Acp, Atomics, GlobalAddress, Mode, Options, Order};
use rdma_fabric::{Amo, Fabric, Program, ProgramResult, Rank};
use std::time::Duration;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

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
    fn run<P: Program>(self, ranks: usize, program: &P) -> ProgramResult<Vec<P::Out>> {
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

/// Returns the microseconds of one copy at rank 0.
async fn copies(fabric: Fabric, way: Way, bytes: usize, batches: u32) -> ProgramResult<f64> {
    const ROUNDS: u32 = 10;
    let acp = Acp::init_with(&fabric, Options::default().starter_bytes(bytes)).await?;
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
            best = best.min((fabric.now() - begun).as_secs_f64() * 1e6 / f64::from(ROUNDS));
        }
    }
    acp.sync().await?;
    acp.finalize().await?;
    Ok(best)
}

/// Rank 0 copies to rank 1 for `window`, while all further ranks add to a word of rank 0; returns
/// the microseconds of a copy, or the number of adds of the rank.
async fn disturbed(fabric: Fabric, options: Options, window: Duration) -> ProgramResult<f64> {
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
            out = (fabric.now() - begun).as_secs_f64() * 1e6 / f64::from(done);
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

fn measure(name: &str, machine: Machine) -> ProgramResult<()> {
    println!("{name}\n  {:>10}  {:>10}  {:>10}  {:>6}  memory of the third", "bytes", "direct", "get + put", "ratio");
    for bytes in SIZES {
        let took = |way| -> ProgramResult<f64> {
            let outs = machine.run(3, &async |fabric: Fabric| copies(fabric, way, bytes, machine.batches()).await)?;
            Ok(outs[0])
        };
        let (direct, buffered) = (took(Way::Direct)?, took(Way::Buffered)?);
        let ratio = buffered / direct;
        println!("  {bytes:>10}  {direct:>7.2} µs  {buffered:>7.2} µs  {ratio:>6.2}  0 / {bytes} B");
    }
    let direct = Options::default().atomics(Atomics::Delegated);
    let queue = direct.mode(Mode::CommandQueue);
    let modes = [
        ("Direct", direct),
        ("Direct, serving helper", direct.serving_helper(true)),
        ("CommandQueue", queue),
        ("CommandQueue, bypass", queue.bypass(true)),
        ("Split", direct.mode(Mode::Split)),
        ("Split, bypass", direct.mode(Mode::Split).bypass(true)),
    ];
    println!("  own copies while n others delegate: µs (thousand served per second)");
    println!("  {:<24}{}", "", ASKERS.map(|askers| format!("{askers:>20}")).concat());
    for (name, options) in modes {
        let mut line = format!("  {name:<24}");
        for askers in ASKERS {
            let program = async |fabric: Fabric| disturbed(fabric, options, machine.window()).await;
            let outs = machine.run(2 + askers, &program)?;
            let served = outs[2..].iter().fold(0.0, |sum, served| sum + served) / machine.window().as_secs_f64() * 1e-3;
            line += &format!("{:>20}", format!("{:.2} ({served:.0})", outs[0]));
        }
        println!("{line}");
    }
    Ok(())
}

fn main() -> ProgramResult<()> {
    measure("Threads of this machine:", Machine::Threads)?;
    measure("FX100 in virtual time:", Machine::Virtual)
}
