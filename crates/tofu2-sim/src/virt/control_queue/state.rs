//! One control queue.

use super::{order::Pair, place, toq::Toq};
use rdma_fabric::control_queue::{Completion, MrqNotice, QueueError, QueueId, QueueSpec};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) id: QueueId,
    pub(super) rank: u32,
    pub(super) node: u32,
    /// Its steering tags.
    pub(super) space: u32,
    /// The next queue that shares the CQ.
    pub(super) next_context: u32,
    /// Flights of it that are not over.
    pub(super) flights: u32,
    /// The engine has promised a start, which an event will bring.
    pub(super) due: bool,
    /// Nobody holds it; it is kept for what is under way.
    pub(super) closed: bool,
    pub(super) checked: bool,
    pub(super) mrq_depth: u32,
    pub(super) toq: Toq,
    /// Completions and when each is there, in picoseconds; never earlier than the one before.
    pub(super) tcq: VecDeque<(u64, Completion)>,
    pub(super) mrq: VecDeque<MrqNotice>,
    /// Tickets of those who wait for room in the TOQ.
    pub(super) line: VecDeque<u64>,
    /// Targets whose commands need care to keep their order.
    pub(super) pairs: Vec<Pair>,
    pub(super) trouble: Trouble,
}

/// What went wrong and was not reported with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// A command's error.
    Command(QueueError),
    /// The queue has stopped.
    Stopping(QueueError),
    /// The queue has stopped and that was told.
    Stopped,
}

impl QueueState {
    pub(super) fn new(id: QueueId, rank: u32, node: u32, space: u32, spec: &QueueSpec) -> Self {
        QueueState {
            id,
            rank,
            node,
            space,
            next_context: place::NONE,
            flights: 0,
            due: false,
            closed: false,
            checked: spec.checked,
            mrq_depth: spec.mrq_depth,
            toq: Toq::new(spec),
            tcq: VecDeque::new(),
            mrq: VecDeque::new(),
            line: VecDeque::new(),
            pairs: Vec::new(),
            trouble: Trouble::None,
        }
    }

    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.trouble, Trouble::Stopping(_) | Trouble::Stopped)
    }

    /// A command's error that the next call has to report, once.
    pub(super) fn take_command_error(&mut self) -> Option<QueueError> {
        let Trouble::Command(error) = self.trouble else { return None };
        self.trouble = Trouble::None;
        Some(error)
    }

    /// Why nothing comes any more, if so: what stopped the queue, and after that was told, that it has stopped.
    pub(super) fn end(&mut self) -> Option<QueueError> {
        match self.trouble {
            Trouble::None | Trouble::Command(_) => None,
            Trouble::Stopping(error) => {
                self.trouble = Trouble::Stopped;
                Some(error)
            }
            Trouble::Stopped => Some(QueueError::Stopped(self.id)),
        }
    }

    /// Bytes of the rings' storage.
    pub(super) fn ring_bytes(&self) -> usize {
        self.toq.bytes()
            + self.tcq.capacity() * size_of::<(u64, Completion)>()
            + self.mrq.capacity() * size_of::<MrqNotice>()
    }
}
