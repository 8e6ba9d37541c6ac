//! Updates of the shadows of distributed arrays by 2 × 2 ranks on two cores: start and wait with
//! nothing in between.
//!
//! Each rank has the field of `reflect-field`, and every face is sent to a neighbour. A figure is
//! the slowest rank's time.

use super::{
    Case,
    crowd::{Crowd, measured},
    reflect::LARGE as LARGE_BLOCK,
};
use crate::{
    operations::{
        ranks::JobPlan,
        sampling::{Measured, Sample, Takes},
    },
    outside::{bare::Block, limit, lines},
};
use core::sync::atomic::Ordering::{Acquire, Release};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Instant;
use xmp_reflect::{Align, Array, Format, Mapping, NodeSet, Nodes, Order, Reflect, Schedule, Shadow, Template, Widths};

const SMALL: Case =
    Case::new("reflect-small-oversubscribed", "4 ranks on 2 cores, reflect, 4 faces of a word", Takes::Both);
const LARGE: Case =
    Case::new("reflect-field-oversubscribed", "4 ranks on 2 cores, reflect, 4 faces to neighbours", Takes::Both);

pub(super) const CASES: &[Case] = &[SMALL, LARGE];

/// Nodes along i, and along j.
const NODES: usize = 2;

/// Measures both cases; rank 0 has the results.
pub(super) async fn measure(job: &mut Crowd<'_>, fabric: &Fabric, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    let small = Block { levels: 1, columns: 1, layers: 1 };
    let mut done = Vec::new();
    // Some ms a sample.
    for (case, block, times) in [(&SMALL, small, 400), (&LARGE, LARGE_BLOCK, 8)] {
        if plan.wants(case) {
            done.push(update(job, fabric, case, block, times, if plan.quick { 3 } else { 31 }).await?);
        }
    }
    Ok(if job.me == 0 { done } else { Vec::new() })
}

async fn update(
    job: &mut Crowd<'_>,
    fabric: &Fabric,
    case: &Case,
    block: Block,
    times: u64,
    samples: usize,
) -> ProgramResult<Measured> {
    let mut set = NodeSet::new(Group::world(fabric).await?, Nodes::new(&[NODES, NODES], Order::LastFastest)?)?;
    let array: Array<f64> = set.array(&mapping(&set, block)?)?;
    let both = Widths::WHOLE.periodic();
    let reflect = Reflect::widths(&[both, both, Widths::NONE]).orthogonal();
    let mut schedule = Schedule::new(&mut set, &[&array], &reflect).await?;
    let (bare, me, faces, mut turn) = (job.bare, job.me, block.faces(), 0);
    let (mut by_fabric, mut by_flags) = (Vec::new(), Vec::new());
    job.announce(case);
    for sample in 0..=samples {
        let fabric = job.updates(times, async |times| {
            for _ in 0..times {
                schedule.start().await?;
                schedule.wait().await?;
            }
            Ok(())
        });
        let fabric = fabric.await?;
        let flags = job.updates(times, async |times| {
            Ok(limit::border_of_four(bare, me, &faces, &mut turn, times, bare.word(lines::ABANDONED))?)
        });
        let flags = flags.await?;
        // The first iteration is a warm-up.
        if sample > 0 {
            by_fabric.push(fabric);
            by_flags.push(flags);
        }
    }
    set.barrier().await?;
    Ok(measured(case, block.bytes(), vec![("fabric", by_fabric), ("flags and memcpy, yielding", by_flags)]))
}

/// Columns of all nodes along (j, i, k).
fn mapping(set: &NodeSet, block: Block) -> ProgramResult<Mapping> {
    let (columns, levels) = (0..(NODES * block.columns) as i64, 0..block.levels as i64);
    let template = Template::new(&[columns.clone(), columns.clone()], &[Format::Block, Format::Block], set.nodes())?;
    let bounds = [columns.clone(), columns, levels];
    let aligned = template.align(&bounds, &[Align::with(0), Align::with(1), Align::Collapsed])?;
    let around = Shadow::of(block.layers);
    Ok(aligned.shadow(&[around, around, Shadow::NONE])?)
}

impl Crowd<'_> {
    /// Takes a sample of `times` updates.
    async fn updates(
        &mut self,
        times: u64,
        update: impl AsyncFnOnce(u64) -> ProgramResult<()>,
    ) -> ProgramResult<Sample> {
        let ping_pong = self.ping_pong()?;
        self.assemble()?;
        let begun = Instant::now();
        update(times).await?;
        self.bare.word(lines::TOOK + self.me).store(begun.elapsed().as_nanos() as u64, Release);
        self.assemble()?;
        let slowest = (0..self.ranks).map(|rank| self.bare.word(lines::TOOK + rank).load(Acquire)).max();
        Ok(Sample { ns: slowest.unwrap_or(0) as f64 / times as f64, ping_pong, clean: false })
    }
}
