//! The scaling of code like that in the lock paper's Figure 5 to tens of thousands of nodes: both forms of
//! the stencil on the modelled FX100, 8 ranks on each node, latency-only network.

use crate::{
    output::{Context, Output},
    report::VIRTUAL,
    sheet::{Sheet, ns, picos},
};
use clap::Args;
use rdma_fabric::Program;
use repro::workloads::{Stencil, Tile, stencil_fence, stencil_lock_all};
use std::{error::Error, process::ExitCode, time::Instant};
use tofu2_sim::{
    JobError,
    virt::{Job, Platform},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Numbers of ranks.
    #[arg(value_name = "RANKS", default_values_t = [1024, 8192, 65_536, 663_552])]
    ranks: Vec<u32>,
    /// 64 ranks: a smoke test.
    #[arg(long, conflicts_with = "ranks")]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

const STEPS: u32 = 4;

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let sizes = if options.quick { &[64][..] } else { &options.ranks[..] };
    options.output.sheets(Context::new("stencil", VIRTUAL, options.quick), |steps| {
        let columns = ["ranks", "form", "step", "lock", "events", "bytes per rank", "simulation took"];
        let mut sheet = Sheet::new("The stencil on FX100", columns);
        steps.expect(sizes.len());
        for &ranks in sizes {
            steps.begin(format_args!("{ranks} ranks"));
            let stencil = Stencil::of_ranks(ranks, 2, STEPS);
            simulate(&mut sheet, "fence, put, fence", ranks, &async |fabric| stencil_fence(fabric, stencil).await)?;
            let by_get = async |fabric| stencil_lock_all(fabric, stencil).await;
            simulate(&mut sheet, "lock_all, get, flush_all", ranks, &by_get)?;
        }
        Ok(vec![sheet])
    })
}

/// Adds the row of a form. The slowest rank counts.
fn simulate<P: Program<Out = Tile>>(sheet: &mut Sheet, form: &str, ranks: u32, program: &P) -> Result<(), JobError> {
    let (platform, begun) = (Platform::fx100(), Instant::now());
    let run = Job::new(&platform, ranks as usize).ranks_per_node(8).run(program)?;
    let greatest = |of: fn(&Tile) -> u64| run.outs.iter().map(of).max().unwrap_or(0);
    let (steps, lock) = (greatest(|tile| tile.steps), greatest(|tile| tile.lock));
    sheet.row([
        u64::from(ranks).into(),
        form.into(),
        picos(steps / u64::from(STEPS)),
        picos(lock),
        run.stats.events.into(),
        run.stats.bytes_per_rank.into(),
        ns(begun.elapsed().as_nanos() as f64),
    ]);
    Ok(())
}
