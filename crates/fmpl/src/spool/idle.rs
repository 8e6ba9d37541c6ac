//! Idle buffers of a communicator, which another communicator of the rank can take over.

use super::memory::Piece;
use crate::{Communicator, Result, collective::Work, point::Window, state::State};
use rdma_fabric::Fabric;

/// Buffers that are not in use by a message, receive or reduction.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    windows: Vec<Window>,
    work: Option<Work>,
    messages: Vec<Piece>,
    nodes: Vec<Piece>,
}

impl Idle {
    pub(super) fn join(&mut self, other: Self) {
        self.windows.extend(other.windows);
        self.work = self.work.take().or(other.work);
        self.messages.extend(other.messages);
        self.nodes.extend(other.nodes);
    }
}

impl State {
    /// Takes out all idle buffers, after freeing the space of received messages.
    pub(crate) fn take_idle(&mut self, fabric: &Fabric) -> Idle {
        // An error is reported to the communicator's own calls.
        let swept = self.sweep(fabric).is_ok();
        let spool = swept.then_some(&mut self.spool);
        let (messages, nodes) =
            spool.map_or_else(Default::default, |spool| (spool.memory.take_idle(), spool.nodes.take_idle()));
        Idle { windows: self.windows.take_idle(), work: self.collectives.take_work(), messages, nodes }
    }

    /// Takes over the buffers of another communicator.
    fn add_idle(&mut self, idle: Idle) {
        let Idle { windows, work, messages, nodes } = idle;
        self.windows.add(windows);
        self.collectives.give_work(work);
        self.spool.memory.give_pieces(messages);
        self.spool.nodes.give_pieces(nodes);
    }

    /// Returns whether all buffers were idle, so that no buffer can become idle later. A channel's
    /// queue keeps its node forever.
    pub(super) fn has_no_buffers(&mut self) -> bool {
        let keeps = self.windows.is_any_in_use() || self.spool.memory.has_grown() || self.collectives.has_work();
        self.keeps_buffers = keeps;
        !keeps
    }
}

impl Communicator {
    /// Counts this communicator among those of the rank that keep buffers, before it allocates any;
    /// it may take over those of another one. The caller must not hold a turn.
    pub(crate) fn keep_buffers(&self) -> Result<()> {
        if self.with(|state| std::mem::replace(&mut state.keeps_buffers, true))? {
            return Ok(());
        }
        let idle = self.siblings.keep(&self.fabric, self.state());
        self.with(|state| state.add_idle(idle))
    }
}
