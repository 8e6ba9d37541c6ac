//! The starting point of the control-queue cases: memory, this rank's queues, and the ids of every
//! rank's queue.

use crate::ensure;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, MrqNotice, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, FabricError, Group, ProgramResult, Refused, Region, Result};
use std::time::Duration;

/// A rank with a symmetric region and one open queue, on which the region is registered.
pub(super) struct Fixture {
    // The queue is dropped before the memory that it addresses.
    pub(super) queue: ControlQueue,
    /// A queue in normal mode, for credits and other commands that must not wait.
    pub(super) sender: ControlQueue,
    /// The ids of every rank's `queue`, by rank.
    pub(super) ids: Vec<QueueId>,
    pub(super) region: Region,
    /// The region's address on every rank's `queue`.
    pub(super) at: Stadd,
    /// The address of this rank's region on `sender`.
    pub(super) from: Stadd,
    pub(super) world: Group,
    pub(super) fabric: Fabric,
}

/// The fixed tag that all ranks use.
pub(super) const TAG: u8 = 7;

/// Returns whether this fabric has control queues; if it has none, checks that it reports this.
pub(super) fn has_queues(fabric: &Fabric) -> ProgramResult<bool> {
    let limits = ControlQueue::limits(fabric);
    if limits.engines > 0 {
        return Ok(true);
    }
    let refusal = ControlQueue::open(fabric, QueueSpec::new(QueueMode::Normal)).err();
    ensure!(
        matches!(refusal, Some(FabricError::Unsupported { .. })),
        "Q1: opened a queue where there are none: {refusal:?}"
    );
    Ok(false)
}

/// Returns the queue error of a call, if any.
pub(super) fn queue_error(error: &Option<FabricError>) -> Option<&QueueError> {
    match error {
        Some(FabricError::Queue(error)) => Some(error),
        _ => None,
    }
}

impl Fixture {
    /// Opens the queues of a case; `None` if the fabric has none. Collective.
    pub(super) async fn open(fabric: Fabric, spec: QueueSpec, bytes: usize) -> ProgramResult<Option<Self>> {
        if !has_queues(&fabric)? {
            return Ok(None);
        }
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(bytes).await?;
        let queue = ControlQueue::open(&fabric, spec)?;
        let sender = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).checked(spec.checked))?;
        let at = queue.register_fixed(&region, TAG)?;
        let from = sender.register(&region)?;
        let mut ids = Vec::new();
        for bits in world.allgather(queue.id().to_bits()).await? {
            ids.push(QueueId::from_bits(bits).ok_or("Q1: bits that are no queue's")?);
        }
        Ok(Some(Fixture { queue, sender, ids, region, at, from, world, fabric }))
    }

    /// Returns whether queues execute atomics; if they don't, checks that they report this, and
    /// that they post the commands before an atomic.
    pub(super) fn has_atomics(&self) -> ProgramResult<bool> {
        let command = Command::Atomic { to: self.own(), at: self.at, width: Width::Eight, amo: Amo::Add(1) };
        if self.fabric.caps().queue_atomics() {
            return Ok(true);
        }
        let refused = self.sender.try_post(Posting::new(command));
        ensure!(
            matches!(refused, Err(Refused::Failed(FabricError::Unsupported { .. }, _))),
            "O18: caps() deny atomics of control queues: {refused:?}"
        );
        Ok(false)
    }

    pub(super) fn me(&self) -> usize {
        self.fabric.rank().index()
    }

    /// Returns the next rank's queue.
    pub(super) fn next(&self) -> QueueId {
        self.ids[(self.me() + 1) % self.ids.len()]
    }

    /// Returns this rank's own queue.
    pub(super) fn own(&self) -> QueueId {
        self.ids[self.me()]
    }

    /// Loads the word at `offset` of this rank's region.
    pub(super) fn word(&self, offset: usize) -> Result<u64> {
        self.fabric.load(&self.region.word::<u64>(&self.fabric, offset)?)
    }

    /// Stores a word at `offset` of this rank's region.
    pub(super) fn set(&self, offset: usize, value: u64) -> Result<()> {
        self.fabric.store(&self.region.word::<u64>(&self.fabric, offset)?, value)
    }

    /// Waits until the word at `offset` of this rank's region is `value`.
    pub(super) async fn until(&self, offset: usize, value: u64) -> Result<u64> {
        self.fabric.wait_until(&self.region.word::<u64>(&self.fabric, offset)?, Deps::All, |v| v == value).await
    }

    /// Posts on `queue` with a request for a local notice, and waits for the notice.
    pub(super) async fn acknowledged(&self, queue: &ControlQueue, posting: Posting) -> Result<MrqNotice> {
        queue.post(posting.local(posting.edata), Deps::All).await?;
        queue.next_notice(Deps::All).await
    }

    /// Advances the session offset of `to` by `slots`, at most 15, with an empty put.
    pub(super) async fn credit(&self, to: QueueId, slots: u8) -> Result<Result<(), QueueError>> {
        let empty = Posting::new(Command::put(to, self.from, self.at, 0)).sps(slots);
        Ok(self.acknowledged(&self.sender, empty).await?.status)
    }

    /// Waits until everything in flight has had time to take effect.
    pub(super) async fn settle(&self) {
        self.fabric.sleep(Duration::from_micros(300)).await;
    }

    /// Lets the queue settle, drains the TCQ, and returns the number of completions taken.
    pub(super) async fn completed(&self) -> Result<usize> {
        self.settle().await;
        let mut count = 0;
        while self.queue.poll_tcq()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Posts `count` nops that complete in the TCQ.
    pub(super) async fn nops(&self, count: usize) -> Result<()> {
        for tag in 0..count {
            self.queue.post(Posting::new(Command::Nop).tcq(tag as u64), Deps::All).await?;
        }
        Ok(())
    }

    /// Waits for all ranks before the memory is dropped.
    pub(super) async fn leave(mut self) -> ProgramResult<()> {
        self.world.barrier().await?;
        Ok(())
    }
}
