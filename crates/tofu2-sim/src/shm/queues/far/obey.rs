//! The target's side: execution of commands of other nodes' queues.

use super::{FarCommand, FarReply};
use crate::shm::queues::{
    executor::{Executor, WorkList},
    perform::{Failure, Origin, Range, Source, gone},
    reporting::CommandNotices,
    view::View,
};
use rdma_fabric::{
    RegionKey,
    control_queue::{Command, QueueError, QueueId, Stadd},
};

/// The outcome of a command that arrived.
#[derive(Debug)]
pub enum Obeyed {
    /// The command has completed.
    Over(FarReply),
    /// The command's bytes have to be moved, to or from a region of this rank, from an offset in
    /// the segment's heap on.
    Move(RegionKey, u64),
}

impl Executor<'_> {
    /// Executes a command of another node's queue in this rank's memory, and the commands that it
    /// releases. `bytes` are those of a put that came with the command; `is_long` is true if they
    /// did not.
    pub(crate) fn obey(&self, command: &FarCommand, bytes: &[u8], is_long: bool) -> Obeyed {
        let mut work = WorkList::new();
        let outcome = if is_long { self.prepare(command) } else { self.obey_now(command, bytes, &mut work) };
        self.finish(work);
        outcome.unwrap_or_else(|error| Obeyed::Over(FarReply::of(Err(error), 0)))
    }

    fn obey_now(&self, far: &FarCommand, bytes: &[u8], work: &mut WorkList<'_>) -> Result<Obeyed, QueueError> {
        let FarCommand { from, checked, posting, .. } = far;
        let origin = Origin::elsewhere(*from, *checked);
        let outcome = match posting.command {
            Command::Put { to, at, len, .. } => {
                if bytes.len() != len as usize {
                    return Err(QueueError::Corrupt { queue: *from, what: "a descriptor" });
                }
                self.put(&origin, posting, to, Source::Carried(bytes), at, len.into(), work)
            }
            Command::PutInline { to, bytes, at } => {
                let bytes = bytes.as_bytes();
                self.put(&origin, posting, to, Source::Carried(bytes), at, bytes.len() as u64, work)
            }
            Command::Atomic { to, at, width, amo } => self.atomic(&origin, posting, to, at, width, amo),
            Command::Get { to, from, len, .. } => return self.give(far, to, from, len),
            Command::Nop => return Ok(Obeyed::Over(FarReply::of(Ok(()), 0))),
        };
        match outcome {
            Ok((notices, status)) => Ok(Obeyed::Over(FarReply::of(status, notices.value))),
            Err(Failure::Here(error) | Failure::There(error)) => Err(error),
        }
    }

    /// Returns the bytes of a short get.
    fn give(&self, far: &FarCommand, to: QueueId, at: Stadd, len: u32) -> Result<Obeyed, QueueError> {
        if self.job.most_inline().is_none_or(|most| len as usize > most) {
            return Err(QueueError::Corrupt { queue: far.from, what: "a descriptor" });
        }
        let target = self.target(to)?;
        let (piece, inside) = self.end(&target, Range { at, len: len.into(), writes: false })?;
        let claim = self.claim_notice(&target, &far.posting)?;
        let mut bytes = vec![0; len as usize];
        if piece.copy_out(&mut bytes).is_none() {
            self.withdraw_notice(&target, claim);
            return Err(gone(to, at, &piece));
        }
        drop(inside);
        let notices = CommandNotices::of_get(Stadd::from_bits(0), at + u64::from(len));
        self.notify_target(&target, claim, far.from, &far.posting, notices);
        Ok(Obeyed::Over(FarReply { bytes, ..FarReply::of(Ok(()), 0) }))
    }

    /// Returns the position of the bytes of a long put or get in this rank's memory.
    fn prepare(&self, far: &FarCommand) -> Result<Obeyed, QueueError> {
        let (to, at, len, writes) = match far.posting.command {
            Command::Put { to, at, len, .. } => (to, at, len, true),
            Command::Get { to, from, len, .. } => (to, from, len, false),
            _ => return Err(QueueError::Corrupt { queue: far.from, what: "a descriptor" }),
        };
        let target = self.target(to)?;
        let (region, heap_at) = self.stay(&target, Range { at, len: len.into(), writes })?;
        Ok(Obeyed::Move(region, heap_at))
    }

    /// Completes a command whose bytes were to be moved from or to `region`: if they `arrived`,
    /// queues its notice and advances its queue.
    pub(crate) fn moved(&self, far: &FarCommand, region: RegionKey, arrived: bool) -> FarReply {
        let mut work = WorkList::new();
        let ended = if arrived { self.announce_moved(far, &mut work) } else { Err(QueueError::PeerLost(far.from)) };
        self.queues.moving().leave(region);
        self.finish(work);
        FarReply::of(ended, 0)
    }

    fn announce_moved(&self, far: &FarCommand, work: &mut WorkList<'_>) -> Result<(), QueueError> {
        let (to, notices) = match far.posting.command {
            Command::Put { to, at, len, .. } => (to, CommandNotices::of_put(at + u64::from(len))),
            Command::Get { to, from, len, .. } => {
                (to, CommandNotices::of_get(Stadd::from_bits(0), from + u64::from(len)))
            }
            _ => return Ok(()),
        };
        let target: View<'_> = self.target(to)?;
        if far.is_put() {
            target.segment.ring();
        }
        let claim = self.claim_notice(&target, &far.posting)?;
        self.notify_target(&target, claim, far.from, &far.posting, notices);
        if far.is_put() {
            self.credit(&target, &Origin::elsewhere(far.from, far.checked), &far.posting, work)
        } else {
            Ok(())
        }
    }
}
