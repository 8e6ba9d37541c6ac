//! One control queue.

use super::super::platform::Timing;
use super::{node, order::Pair, toq::Toq};
use rdma_fabric::control_queue::{Command, Completion, MrqNotice, Posting, QueueError, QueueId, QueueSpec};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) id: QueueId,
    pub(super) rank: u32,
    pub(super) node: u32,
    /// The address space of its steering tags.
    pub(super) space: u32,
    /// The next queue that shares the CQ.
    pub(super) next_context: u32,
    /// The number of its flights that have not completed.
    pub(super) flights: u32,
    /// Whether the engine has scheduled a start, for which an event is pending.
    pub(super) due: bool,
    /// Whether the queue no longer has a handle; it is kept only for its commands in flight.
    pub(super) closed: bool,
    pub(super) checked: bool,
    pub(super) mrq_depth: u32,
    pub(super) toq: Toq,
    /// Slots before this one were released by a put from one of the rank's own queues, or by an
    /// earlier one: a put in such a slot continues a chain.
    pub(super) chained: u64,
    /// Completions, and the time at which each becomes visible, in picoseconds; never earlier than
    /// the previous one's.
    pub(super) tcq: VecDeque<(u64, Completion)>,
    pub(super) mrq: VecDeque<MrqNotice>,
    /// Tickets of waiters for room in the TOQ.
    pub(super) line: VecDeque<u64>,
    /// Targets whose commands need care to keep their order.
    pub(super) pairs: Vec<Pair>,
    pub(super) health: Health,
}

/// An error that no completion or notice reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Well,
    /// A command has failed.
    CommandFailed(QueueError),
    /// The queue has stopped.
    Stopping(QueueError),
    /// The queue has stopped, and this was reported to its rank.
    Stopped,
}

impl QueueState {
    pub(super) fn new(id: QueueId, rank: u32, node: u32, space: u32, spec: &QueueSpec) -> Self {
        QueueState {
            id,
            rank,
            node,
            space,
            next_context: node::NONE,
            flights: 0,
            due: false,
            closed: false,
            checked: spec.checked,
            mrq_depth: spec.mrq_depth,
            toq: Toq::new(spec),
            chained: 0,
            tcq: VecDeque::new(),
            mrq: VecDeque::new(),
            line: VecDeque::new(),
            pairs: Vec::new(),
            health: Health::Well,
        }
    }

    #[inline]
    pub(super) fn has_stopped(&self) -> bool {
        matches!(self.health, Health::Stopping(_) | Health::Stopped)
    }

    /// Takes a command's error that the next call has to report, once.
    pub(super) fn take_command_error(&mut self) -> Option<QueueError> {
        let Health::CommandFailed(error) = self.health else { return None };
        self.health = Health::Well;
        Some(error)
    }

    /// Returns the reason why the queue no longer delivers anything, if so: first the error that
    /// stopped the queue, then, once that was reported to its rank, that the queue has stopped.
    pub(super) fn end(&mut self) -> Option<QueueError> {
        match self.health {
            Health::Well | Health::CommandFailed(_) => None,
            Health::Stopping(error) => {
                self.health = Health::Stopped;
                Some(error)
            }
            Health::Stopped => Some(QueueError::Stopped(self.id)),
        }
    }

    /// Checks a post for errors that do not depend on the queue's contents.
    pub(super) fn check(&self, posting: &Posting, timing: &Timing) -> Result<(), QueueError> {
        let id = self.id;
        let limit = |what, value: u64, limit: u64| Err(QueueError::Limit { queue: id, what, value, limit });
        let (len, blocks) = match posting.command {
            Command::Put { len, blocks, .. } | Command::Get { len, blocks, .. } => (len, blocks.count),
            _ => (0, 1),
        };
        let most = u64::from(self.toq.depth()) - 1;
        if blocks == 0 {
            return limit("the number of blocks, at least 1,", 0, most);
        }
        if len > timing.queues.longest {
            return limit("the length of a command", len.into(), timing.queues.longest.into());
        }
        if posting.command.slots() > most {
            return limit("the number of slots of a posting", posting.command.slots(), most);
        }
        if posting.sps > 15 {
            return limit("the SPS", posting.sps.into(), 15);
        }
        if u64::from(posting.mtu) > timing.packet_payload {
            return limit("the MTU", posting.mtu.into(), timing.packet_payload);
        }
        if let Some(path) = posting.path
            && (path > 15 || path >> 1 & 3 == 3)
        {
            return limit("the path", path.into(), 13);
        }
        if posting.sps > 0 && self.checked && !posting.command.advances() {
            return Err(QueueError::CreditIgnored { queue: id, sps: posting.sps });
        }
        Ok(())
    }

    // The owner's view: entries from before the queue stopped can be taken first.

    /// Takes the next completion, if it is visible by now.
    pub(super) fn poll_tcq(&mut self, now: u64) -> Result<Option<Completion>, QueueError> {
        if let Some(error) = self.take_command_error() {
            return Err(error);
        }
        match self.tcq.front() {
            Some(&(at, completion)) if at <= now => {
                self.tcq.pop_front();
                Ok(Some(completion))
            }
            Some(_) => Ok(None),
            None => self.end().map_or(Ok(None), Err),
        }
    }

    /// Returns the time at which the next completion becomes visible, if that is known.
    pub(super) fn completion_at(&self) -> Option<u64> {
        self.tcq.front().map(|(at, _)| *at)
    }

    /// Takes the next notice.
    pub(super) fn poll_mrq(&mut self) -> Result<Option<MrqNotice>, QueueError> {
        if let Some(error) = self.take_command_error() {
            return Err(error);
        }
        match self.mrq.pop_front() {
            None => self.end().map_or(Ok(None), Err),
            notice => Ok(notice),
        }
    }

    /// Returns the size of the rings' storage in bytes.
    pub(super) fn ring_bytes(&self) -> usize {
        self.toq.bytes()
            + self.tcq.capacity() * size_of::<(u64, Completion)>()
            + self.mrq.capacity() * size_of::<MrqNotice>()
    }
}
