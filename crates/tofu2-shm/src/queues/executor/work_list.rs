//! The queues whose turn an executor owes, and its budget.

use crate::queues::{lock::LockGuard, own::Cached};
use rdma_fabric::control_queue::QueueId;
use std::collections::VecDeque;

/// The maximum amount of work that a CPU does for other ranks before it hands over the rest. A
/// command counts as one, plus one for each [`UNIT`] it copies.
const BUDGET: u64 = 2048;
/// Bytes whose copying counts as much as one short command.
const UNIT: u64 = 16 << 10;

/// Released queues that have not been examined yet, and the remaining budget.
#[derive(Debug)]
pub(crate) struct WorkList<'a> {
    /// The oldest queue. Usually there is at most one, and then nothing is allocated.
    first: Option<QueueId>,
    /// The other queues, oldest first; empty if there is no first.
    others: VecDeque<QueueId>,
    pub(super) budget: u64,
    /// Whether the queue that has the turn continues with a command that only its owner can
    /// execute.
    pub(super) leave: bool,
    /// State for the execution of commands, while the list is worked through and no other thread of the rank
    /// does the same.
    pub(crate) cached: Option<LockGuard<'a, Cached>>,
}

impl WorkList<'_> {
    /// The maximum number of queues on the list.
    const MOST: usize = 256;

    #[inline]
    pub(crate) fn new() -> Self {
        WorkList { first: None, others: VecDeque::new(), budget: BUDGET, leave: false, cached: None }
    }

    /// Restores the budget.
    #[inline]
    pub(super) fn renew(&mut self) {
        self.budget = BUDGET;
    }

    /// Appends a queue, unless it is already on the list. Returns whether there was room.
    #[inline]
    pub(super) fn push(&mut self, id: QueueId) -> bool {
        match self.first {
            None => self.first = Some(id),
            Some(first) if first == id || self.others.contains(&id) => {}
            Some(_) if self.others.len() == Self::MOST => return false,
            Some(_) => self.others.push_back(id),
        }
        true
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<QueueId> {
        let first = self.first.take()?;
        self.first = self.others.pop_front();
        Some(first)
    }

    /// Accounts for a command that copies `bytes` bytes.
    #[inline]
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.budget = self.budget.saturating_sub(1 + bytes / UNIT);
    }
}
