//! The broadcast in software, as far as it completes without a long wait.

use super::{edge::Way, near::Link};
use crate::{Collective, Communicator, FmplError, Result};
use rdma_fabric::{LocalSpan, Pod, provider::Boxed, soon::Call};

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

impl<'a, T: Pod> Call<'a> for Broadcast<'a, '_, T> {
    type Out = ();
    type Error = FmplError;

    /// Makes as much progress as possible without waiting, and records it for `later`.
    #[inline]
    fn now(&mut self) -> Option<()> {
        let (comm, passed) = (self.comm, &mut self.passed);
        if !comm.ways.is_tree(Collective::Broadcast) {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let (near, mut looks) = state.collectives.near(self.root)?;
        let (peers, span) = (&mut state.peers[..], self.span.as_bytes().ok()?);
        if let Some(parent) = near.parent {
            let mut link = Link::new(comm, peers, parent, Way::Down);
            link.post(&span)?;
            passed.posted = true;
            link.arrived(&mut looks)?;
            passed.arrived = true;
        }
        for child in near.children.iter().rev() {
            Link::new(comm, peers, *child, Way::Down).send(&span, &mut looks)?;
            passed.sent += 1;
        }
        Some(())
    }

    fn later(self) -> Boxed<'a, Result<()>> {
        self.comm.broadcast_bytes(self.span.as_bytes().map_err(FmplError::from), self.root, self.passed)
    }
}
