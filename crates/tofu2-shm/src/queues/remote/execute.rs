//! The target's side: execution of commands of other nodes' queues.

use super::{RemoteCommand, RemoteReply};
use crate::queues::{
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
pub enum Executed {
    /// The command has completed.
    Complete(RemoteReply),
    /// The command's bytes have to be moved, to or from a region of this rank, from an offset in
    /// the segment's heap on.
    Move(RegionKey, u64),
}

impl Executor<'_> {
    /// Executes a command of another node's queue in this rank's memory, and the commands that it
    /// releases. `bytes` are those of a put that came with the command; `is_long` is true if they
    /// did not.
    pub(crate) fn execute_remote(&self, command: &RemoteCommand, bytes: &[u8], is_long: bool) -> Executed {
        let mut work = WorkList::new();
        let outcome = if is_long { self.prepare(command) } else { self.execute_now(command, bytes, &mut work) };
        self.finish(work);
        outcome.unwrap_or_else(|error| Executed::Complete(RemoteReply::of(Err(error), 0)))
    }

    fn execute_now(
        &self,
        remote: &RemoteCommand,
        bytes: &[u8],
        work: &mut WorkList<'_>,
    ) -> Result<Executed, QueueError> {
        let RemoteCommand { from, checked, posting, .. } = remote;
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
            Command::Get { to, from, len, .. } => return self.give(remote, to, from, len),
            Command::Nop => return Ok(Executed::Complete(RemoteReply::of(Ok(()), 0))),
        };
        match outcome {
            Ok((notices, status)) => Ok(Executed::Complete(RemoteReply::of(status, notices.value))),
            Err(Failure::Here(error) | Failure::There(error)) => Err(error),
        }
    }

    /// Returns the bytes of a short get.
    fn give(&self, remote: &RemoteCommand, to: QueueId, at: Stadd, len: u32) -> Result<Executed, QueueError> {
        if self.job.most_inline().is_none_or(|most| len as usize > most) {
            return Err(QueueError::Corrupt { queue: remote.from, what: "a descriptor" });
        }
        let target = self.target(to)?;
        let (piece, inside) = self.end(&target, Range { at, len: len.into(), writes: false })?;
        let claim = self.claim_notice(&target, &remote.posting)?;
        let mut bytes = vec![0; len as usize];
        if piece.copy_out(&mut bytes).is_none() {
            self.withdraw_notice(&target, claim);
            return Err(gone(to, at, &piece));
        }
        drop(inside);
        let notices = CommandNotices::of_get(Stadd::from_bits(0), at + u64::from(len));
        self.notify_target(&target, claim, remote.from, &remote.posting, notices);
        Ok(Executed::Complete(RemoteReply { bytes, ..RemoteReply::of(Ok(()), 0) }))
    }

    /// Returns the position of the bytes of a long put or get in this rank's memory.
    fn prepare(&self, remote: &RemoteCommand) -> Result<Executed, QueueError> {
        let (to, at, len, writes) = match remote.posting.command {
            Command::Put { to, at, len, .. } => (to, at, len, true),
            Command::Get { to, from, len, .. } => (to, from, len, false),
            _ => return Err(QueueError::Corrupt { queue: remote.from, what: "a descriptor" }),
        };
        let target = self.target(to)?;
        let (region, heap_at) = self.stay(&target, Range { at, len: len.into(), writes })?;
        Ok(Executed::Move(region, heap_at))
    }

    /// Completes a command whose bytes were to be moved from or to `region`: if they `arrived`,
    /// queues its notice and advances its queue.
    pub(crate) fn moved(&self, remote: &RemoteCommand, region: RegionKey, arrived: bool) -> RemoteReply {
        let mut work = WorkList::new();
        let ended =
            if arrived { self.announce_moved(remote, &mut work) } else { Err(QueueError::PeerLost(remote.from)) };
        self.queues.moving().leave(region);
        self.finish(work);
        RemoteReply::of(ended, 0)
    }

    fn announce_moved(&self, remote: &RemoteCommand, work: &mut WorkList<'_>) -> Result<(), QueueError> {
        let (to, notices) = match remote.posting.command {
            Command::Put { to, at, len, .. } => (to, CommandNotices::of_put(at + u64::from(len))),
            Command::Get { to, from, len, .. } => {
                (to, CommandNotices::of_get(Stadd::from_bits(0), from + u64::from(len)))
            }
            _ => return Ok(()),
        };
        let target: View<'_> = self.target(to)?;
        if remote.is_put() {
            target.segment.ring();
        }
        let claim = self.claim_notice(&target, &remote.posting)?;
        self.notify_target(&target, claim, remote.from, &remote.posting, notices);
        if remote.is_put() {
            self.credit(&target, &Origin::elsewhere(remote.from, remote.checked), &remote.posting, work)
        } else {
            Ok(())
        }
    }
}
