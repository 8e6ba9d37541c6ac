//! Reductions in software, as far as they complete without a long wait.

use super::{
    Arrival, ByUnit, Op, Scalar,
    combine::{by_op, combine},
    direct::Link,
    edge::Way,
    fast_broadcast::Passed,
    reduce::To,
};
use crate::{Communicator, FmplError, Result};
use core::task::Context;
use rdma_fabric::{LocalSpan, fast_path::FastPath, provider::Boxed};

/// A member's progress in a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduced {
    /// The numbers of children whose elements have a receive posted, have arrived, and have been
    /// combined.
    pub(crate) posted: usize,
    pub(crate) came: usize,
    pub(crate) combined: usize,
    /// Whether the result was sent to the parent.
    pub(crate) sent: bool,
    /// The progress on the way down.
    pub(crate) down: Passed,
    /// Its progress in a round at the counter.
    pub(crate) arrival: Arrival,
}

/// A call of [`Communicator::reduce`] or [`Communicator::allreduce`].
pub(crate) struct Reduction<'a, 'b, T: Scalar> {
    pub(crate) comm: &'a Communicator,
    pub(crate) span: &'b LocalSpan<T>,
    pub(crate) op: Op,
    pub(crate) to: To,
    pub(crate) reduced: Reduced,
}

impl<T: Scalar> FastPath for Reduction<'_, '_, T> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a, T: Scalar> Reduction<'a, '_, T> {
    /// Makes as much progress as possible without waiting, and records it for `later`.
    #[inline]
    fn at_once(&mut self) -> Option<()> {
        let (comm, reduced) = (self.comm, &mut self.reduced);
        if comm.algorithms.is_central(self.to.kind()) {
            let mut state = comm.enter().ok()?;
            return state.collectives.central()?.combine_now(comm, self.span, self.op, &mut reduced.arrival);
        }
        if !comm.algorithms.is_tree(self.to.kind()) {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let mut mine = self.span.as_bytes().ok()?;
        let work = state.collectives.work(mine.len());
        let (neighbours, mut spins) = state.collectives.neighbours(self.to.root())?;
        let peers = &mut state.peers[..];
        let span = mine.clone();
        if let (To::All, Some(parent)) = (self.to, neighbours.parent) {
            Link::new(comm, peers, parent, Way::Down).post(&span)?;
            reduced.down.posted = true;
        }
        match neighbours.children[..] {
            [] => {}
            [child] => {
                let [result, theirs, _] = work?;
                let mut link = Link::new(comm, peers, child, Way::Up);
                link.post(&theirs)?;
                reduced.posted = 1;
                link.arrived(&mut spins)?;
                reduced.came = 1;
                let into = if neighbours.parent.is_some() { result } else { span.clone() };
                combine::<T>(&comm.fabric, self.op, [&mine, &theirs, &into], &mut state.scratch).ok()?;
                reduced.combined = 1;
                mine = into;
            }
            // While one child's elements are combined, the next child's arrive.
            _ => return None,
        }
        if let Some(parent) = neighbours.parent {
            Link::new(comm, peers, parent, Way::Up).send(&mine, &mut spins)?;
            reduced.sent = true;
        }
        if let To::All = self.to {
            if let Some(parent) = neighbours.parent {
                Link::new(comm, peers, parent, Way::Down).arrived(&mut spins)?;
                reduced.down.arrived = true;
            }
            for child in neighbours.children.iter().rev() {
                Link::new(comm, peers, *child, Way::Down).send(&span, &mut spins)?;
                reduced.down.sent += 1;
            }
        }
        Some(())
    }

    pub(crate) fn slow(self) -> Boxed<'a, Result<()>> {
        let combine = by_op::<T>(&self.comm.fabric, self.op);
        self.comm.reduce_bytes(
            self.span.as_bytes().map_err(FmplError::from),
            combine,
            self.to,
            ByUnit::new::<T>(self.op),
            self.reduced,
        )
    }
}
