//! The job of two ranks, each on its own core.

use super::{
    Case, acp, all, bandwidth, blocks, dynamics, exchange, fmpl, fmpl_collectives, fmpl_long, fmpl_parts, locks,
    machine, notices, reflect, views, words,
};
use crate::{
    operations::{
        ranks::JobPlan,
        sampling::{Measured, Named, Sampler},
    },
    outside::{
        bare::{Bare, WINDOW},
        placement, rendezvous,
    },
};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, Region};

/// The rank that posts, if only one does.
pub(super) const ME: Rank = Rank::new(0);
/// The rank whose memory is then accessed.
pub(super) const PEER: Rank = Rank::new(1);

/// The layout of each rank's region: words, then the area that peers put to and get from, then the
/// area that the rank itself puts from and gets to.
pub(super) const TARGET_AT: usize = 64 << 10;
pub(super) const OWN_AT: usize = TARGET_AT + WINDOW;
const REGION_BYTES: usize = OWN_AT + WINDOW;

/// The state that every case of two ranks needs.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) region: Region,
    pub(super) sampler: Sampler<'a>,
    plan: &'a JobPlan,
}

impl Pair<'_> {
    /// Returns the case, if it is to be measured.
    pub(super) fn wants(&self, case: &Case) -> Option<&'static Case> {
        let number = all().position(|known| known.name == case.name)?;
        self.plan.wants(case).then(|| self.sampler.announce(number))?;
        all().nth(number)
    }

    /// Returns whether the case is to be measured.
    pub(super) fn is_planned(&self, case: &Case) -> bool {
        self.plan.wants(case)
    }

    /// Measures `forms` of `case`, if it is to be measured.
    pub(super) async fn measure(&mut self, case: &Case, bytes: usize, forms: Vec<Named<'_>>) -> ProgramResult<()> {
        match self.wants(case) {
            Some(case) => self.sampler.measure(case, bytes, forms).await,
            None => Ok(()),
        }
    }

    /// Returns the sizes of long transfers.
    pub(super) fn sizes(&self) -> Vec<usize> {
        if self.plan.quick { bandwidth::QUICK_SIZES.to_vec() } else { bandwidth::SIZES.to_vec() }
    }
}

/// Measures all cases of two ranks; rank 0 has the results.
pub(super) async fn measure(fabric: &Fabric, bare: &Bare, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    let me = fabric.rank().index();
    placement::pin(plan.cores[me % plan.cores.len()])?;
    if plan.cores.len() < 2 {
        rendezvous::share_core();
    }
    bare.touch(me);
    let mut world = Group::world(fabric).await?;
    let region = fabric.alloc_symmetric(REGION_BYTES).await?;
    touch(fabric, &region)?;
    world.barrier().await?;
    let sampler = Sampler::new(bare, me, plan.effort(), plan.cores.len() > 1)?;
    let mut pair = Pair { fabric, region, sampler, plan };
    words::measure(&mut pair).await?;
    notices::measure(&mut pair).await?;
    notices::measure_queues(&mut pair).await?;
    locks::measure(&mut pair).await?;
    locks::measure_both(&mut pair).await?;
    exchange::measure(&mut pair).await?;
    reflect::measure(&mut pair).await?;
    blocks::measure(&mut pair).await?;
    dynamics::measure(&mut pair).await?;
    views::measure(&mut pair).await?;
    acp::measure(&mut pair).await?;
    fmpl::measure(&mut pair).await?;
    fmpl_collectives::measure(&mut pair).await?;
    fmpl_long::measure(&mut pair).await?;
    fmpl_parts::measure(&mut pair).await?;
    bandwidth::measure(&mut pair).await?;
    machine::measure(&mut pair).await?;
    let done = std::mem::take(&mut pair.sampler.done);
    world.barrier().await?;
    Ok(done)
}

/// Writes every byte of the local region once, so that no transfer is the first access to a page.
fn touch(fabric: &Fabric, region: &Region) -> ProgramResult<()> {
    let piece = vec![1u64; TARGET_AT / 8];
    for offset in (TARGET_AT..REGION_BYTES).step_by(TARGET_AT) {
        let span = region.span::<u64>(fabric, offset, piece.len())?;
        fabric.write(&span, &piece)?;
    }
    Ok(())
}
