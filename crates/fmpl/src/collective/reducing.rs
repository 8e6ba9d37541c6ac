//! Reductions in software, as far as they complete without a long wait.

use super::{
    ByUnit, Op, Scalar,
    edge::Way,
    near::Link,
    passing::Passed,
    reduce::{To, by_op, combine},
};
use crate::{Communicator, FmplError, Result};
use rdma_fabric::{LocalSpan, provider::Boxed, soon::Call};

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
}

/// A call of [`Communicator::reduce`] or [`Communicator::allreduce`].
pub(crate) struct Reduction<'a, 'b, T: Scalar> {
    pub(crate) comm: &'a Communicator,
    pub(crate) span: &'b LocalSpan<T>,
    pub(crate) op: Op,
    pub(crate) to: To,
    pub(crate) reduced: Reduced,
}

impl<'a, T: Scalar> Call<'a> for Reduction<'a, '_, T> {
    type Out = ();
    type Error = FmplError;

    /// Makes as much progress as possible without waiting, and records it for `later`.
    #[inline]
    fn now(&mut self) -> Option<()> {
        let (comm, reduced) = (self.comm, &mut self.reduced);
        if !comm.ways.is_tree(self.to.kind()) {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let mut mine = self.span.as_bytes().ok()?;
        let work = state.collectives.work(mine.len());
        let (near, mut looks) = state.collectives.near(self.to.root())?;
        let peers = &mut state.peers[..];
        let span = mine.clone();
        if let (To::All, Some(parent)) = (self.to, near.parent) {
            Link::new(comm, peers, parent, Way::Down).post(&span)?;
            reduced.down.posted = true;
        }
        match near.children[..] {
            [] => {}
            [child] => {
                let [result, theirs, _] = work?;
                let mut link = Link::new(comm, peers, child, Way::Up);
                link.post(&theirs)?;
                reduced.posted = 1;
                link.arrived(&mut looks)?;
                reduced.came = 1;
                let into = if near.parent.is_some() { result } else { span.clone() };
                combine::<T>(&comm.fabric, self.op, [&mine, &theirs, &into]).ok()?;
                reduced.combined = 1;
                mine = into;
            }
            // While one child's elements are combined, the next child's arrive.
            _ => return None,
        }
        if let Some(parent) = near.parent {
            Link::new(comm, peers, parent, Way::Up).send(&mine, &mut looks)?;
            reduced.sent = true;
        }
        if let To::All = self.to {
            if let Some(parent) = near.parent {
                Link::new(comm, peers, parent, Way::Down).arrived(&mut looks)?;
                reduced.down.arrived = true;
            }
            for child in near.children.iter().rev() {
                Link::new(comm, peers, *child, Way::Down).send(&span, &mut looks)?;
                reduced.down.sent += 1;
            }
        }
        Some(())
    }

    fn later(self) -> Boxed<'a, Result<()>> {
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
