//! The time of a wave of readers: all ranks take the lock shared and release it, in virtual time on
//! FX100 with latencies only.

use crate::{
    output::{Context, Output},
    report::VIRTUAL,
    sheet::{Sheet, ns, picos},
};
use clap::Args;
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Guard, RmaLock, locks::LockKind, with_lock};
use std::{error::Error, process::ExitCode, time::Instant};
use tofu2_sim::virt::{Job, Platform};

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, value_name = "N", default_value_t = 128)]
    nodes: u32,
    #[arg(long, value_name = "N", default_value_t = 8)]
    ranks_per_node: u32,
    /// Only these locks, such as `by-node` or `tree-64` (default: a flat one, one by node, one in a tree).
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    locks: Vec<LockKind>,
    /// 4 nodes: a smoke test.
    #[arg(long, conflicts_with = "nodes")]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

const HOME: Rank = Rank::new(0);

/// Takes and releases the lock once, together with all others. Returns the time taken by this rank,
/// in picoseconds.
async fn wave<L: RmaLock>(fabric: Fabric, options: L::Options) -> ProgramResult<u64> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    let begun = fabric.now();
    let guard = lock.read().await?;
    guard.release().await?;
    let took = fabric.now().picos_since(begun);
    world.barrier().await?;
    Ok(took)
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (nodes, ranks_per_node) = (if options.quick { 4 } else { options.nodes }, options.ranks_per_node);
    let kinds = match &options.locks[..] {
        [] => vec![LockKind::ReaderPreference, LockKind::ByNode, LockKind::Tree { radix: 64 }],
        some => some.to_vec(),
    };
    options.output.sheets(Context::new("lock-waves", VIRTUAL, options.quick), |steps| {
        let title = format!("{nodes} nodes of {ranks_per_node} ranks");
        let mut sheet = Sheet::new(title, ["lock", "slowest rank", "simulation took"]);
        steps.expect(kinds.len());
        for kind in kinds {
            steps.begin(kind);
            let start = Instant::now();
            let job = Job::new(&Platform::fx100(), (nodes * ranks_per_node) as usize).ranks_per_node(ranks_per_node);
            let run = job.run(&async |fabric| with_lock!(kind, L, options => wave::<L>(fabric, options).await))?;
            let slowest = run.outs.iter().max().copied().unwrap_or(0);
            sheet.row([kind.to_string().into(), picos(slowest), ns(start.elapsed().as_nanos() as f64)]);
        }
        Ok(vec![sheet])
    })
}
