//! The broadcast in software, as far as it completes without a long wait.

use super::{direct::Link, edge::Way};
use crate::{Collective, Communicator, FmplError, Result};
use core::task::Context;
use rdma_fabric::{LocalSpan, Pod, fast_path::FastPath, provider::Boxed};

/// A member's progress in a broadcast.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Whether the receive is posted.
    pub(crate) posted: bool,
    /// Whether the body has arrived.
    pub(crate) arrived: bool,
    /// The number of children to which it has been sent, starting with the last one.
    pub(crate) sent: usize,
}

/// A call of [`Communicator::broadcast`].
pub(crate) struct Broadcast<'a, 'b, T: Pod> {
    comm: &'a Communicator,
    span: &'b LocalSpan<T>,
    root: usize,
    passed: Passed,
}

impl<'a, 'b, T: Pod> Broadcast<'a, 'b, T> {
    pub(crate) fn new(comm: &'a Communicator, span: &'b LocalSpan<T>, root: usize) -> Self {
        Broadcast { comm, span, root, passed: Passed::default() }
    }
}

impl<T: Pod> FastPath for Broadcast<'_, '_, T> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a, T: Pod> Broadcast<'a, '_, T> {
    /// Makes as much progress as possible without waiting, and records it for `later`.
    #[inline]
    fn at_once(&mut self) -> Option<()> {
        let (comm, passed) = (self.comm, &mut self.passed);
        if comm.algorithms.is_central(Collective::Broadcast) {
            let span = self.span.as_bytes().ok()?;
            return comm.enter().ok()?.collectives.central()?.broadcast_now(comm, &span, self.root);
        }
        if !comm.algorithms.is_tree(Collective::Broadcast) {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let (neighbours, mut spins) = state.collectives.neighbours(self.root)?;
        let (peers, span) = (&mut state.peers[..], self.span.as_bytes().ok()?);
        if let Some(parent) = neighbours.parent {
            let mut link = Link::new(comm, peers, parent, Way::Down);
            link.post(&span)?;
            passed.posted = true;
            link.arrived(&mut spins)?;
            passed.arrived = true;
        }
        for child in neighbours.children.iter().rev() {
            Link::new(comm, peers, *child, Way::Down).send(&span, &mut spins)?;
            passed.sent += 1;
        }
        Some(())
    }

    pub(crate) fn slow(self) -> Boxed<'a, Result<()>> {
        self.comm.broadcast_bytes(self.span.as_bytes().map_err(FmplError::from), self.root, self.passed)
    }
}
