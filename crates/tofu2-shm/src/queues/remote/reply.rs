//! The poster's side: replies to commands of this rank's queues that were sent to other nodes.

use super::{RemoteReply, in_flight::InFlight};
use crate::queues::{
    executor::Executor,
    perform::{Range, gone},
    reporting::CommandNotices,
    view::View,
};
use rdma_fabric::control_queue::{Command, QueueError, QueueId};

impl<'a> Executor<'a> {
    /// Completes command `number` of a queue of this rank that was sent to another node. Creates
    /// the notices that were requested, and executes the commands that waited for it.
    pub(crate) fn replied(&self, id: QueueId, number: u64, reply: &RemoteReply) {
        let Some(remote) = self.queues.remote(id) else { return };
        let Some(command) = remote.in_flight(number) else { return };
        // If the queue was closed in the meantime, its notices are not needed, but the first error
        // is kept.
        let queue = View::find(self.job, id).ok();
        let here = match &queue {
            Some(queue) if reply.status.is_ok() => self.land(queue, &command, reply),
            _ => Ok(()),
        };
        if let Some(region) = command.region {
            self.queues.moving().leave(region);
        }
        let posting = &command.posting;
        if let (Some(queue), Ok(()), true) = (&queue, here, posting.local_notice) {
            self.notify_poster(queue, posting, notices(&command, reply), reply.status);
        }
        let unheard = match (here, reply.status) {
            (Err(error), _) if !command.awaited => Some(error),
            (Ok(()), Err(error)) if !posting.local_notice => Some(error),
            _ => None,
        };
        remote.end(number, here, unheard);
        self.segment.ring_for_notice();
        self.help_if_due(id);
    }

    /// Copies the bytes of a short get to their destination.
    fn land(&self, queue: &View<'a>, command: &InFlight, reply: &RemoteReply) -> Result<(), QueueError> {
        let Command::Get { at, len, .. } = command.posting.command else { return Ok(()) };
        if command.region.is_some() {
            self.segment.ring();
            return Ok(());
        }
        if reply.bytes.len() != len as usize {
            return Err(QueueError::Corrupt { queue: queue.id, what: "a descriptor" });
        }
        let (piece, _inside) = self.end(queue, Range { at, len: len.into(), writes: false })?;
        piece.copy_in(&reply.bytes).ok_or_else(|| gone(queue.id, at, &piece))?;
        piece.ring();
        Ok(())
    }
}

/// Returns the contents of the notice at the poster.
fn notices(command: &InFlight, reply: &RemoteReply) -> CommandNotices {
    let command = &command.posting.command;
    match *command {
        _ if reply.status.is_err() => CommandNotices::of_failed(command),
        Command::Get { at, from, len, .. } => CommandNotices::of_get(at + u64::from(len), from + u64::from(len)),
        Command::Atomic { at, .. } => CommandNotices::of_atomic(at, reply.value),
        _ => CommandNotices::of_failed(command),
    }
}
