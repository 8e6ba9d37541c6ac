//! The barrier in software, as far as it completes without a long wait.

use super::{Arrival, direct::Link, edge::Way};
use crate::{Collective, Communicator, Result};
use core::task::Context;
use rdma_fabric::{fast_path::FastPath, provider::Boxed};

/// A member's progress in a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The number of children that have arrived.
    pub(crate) came: usize,
    /// Whether this member has signalled its arrival to its parent.
    pub(crate) told: bool,
    /// Whether its parent has released it.
    pub(crate) free: bool,
    /// The number of children that it has released, starting with the last one.
    pub(crate) let_go: usize,
    /// Its progress in a round at the counter.
    pub(crate) arrival: Arrival,
}

/// A call of [`Communicator::barrier`].
pub(crate) struct Barrier<'a> {
    comm: &'a Communicator,
    progress: Progress,
}

impl<'a> Barrier<'a> {
    pub(crate) fn new(comm: &'a Communicator) -> Self {
        Barrier { comm, progress: Progress::default() }
    }
}

impl FastPath for Barrier<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> Barrier<'a> {
    /// Makes as much progress as possible without waiting, and records it for `later`.
    #[inline]
    fn at_once(&mut self) -> Option<()> {
        let (comm, progress) = (self.comm, &mut self.progress);
        if comm.algorithms.is_central(Collective::Barrier) {
            return comm.enter().ok()?.collectives.central()?.meet_now(comm, &mut progress.arrival);
        }
        if !comm.algorithms.is_tree(Collective::Barrier) {
            return None;
        }
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let (neighbours, mut spins) = state.collectives.neighbours(0)?;
        let peers = &mut state.peers[..];
        for child in &neighbours.children[..] {
            Link::new(comm, peers, *child, Way::Up).signalled(&mut spins)?;
            progress.came += 1;
        }
        if let Some(parent) = neighbours.parent {
            Link::new(comm, peers, parent, Way::Up).signal()?;
            progress.told = true;
            Link::new(comm, peers, parent, Way::Down).signalled(&mut spins)?;
            progress.free = true;
        }
        for child in neighbours.children.iter().rev() {
            Link::new(comm, peers, *child, Way::Down).signal()?;
            progress.let_go += 1;
        }
        Some(())
    }

    pub(crate) fn slow(self) -> Boxed<'a, Result<()>> {
        // A future of its own, since moving the other one takes a noticeable time.
        match self.comm.algorithms.is_central(Collective::Barrier) {
            true => Box::pin(self.comm.meet_at_counter(self.progress.arrival)),
            false => Box::pin(self.comm.meet_all(self.progress)),
        }
    }
}
