//! The poster's side: sending a command to another node.

use super::{Payload, RemoteCommand, in_flight::InFlight};
use crate::{
    memory::{inside, layout},
    queues::{
        executor::Executor,
        perform::{Performed, Range, gone},
        tags::resolve,
        view::View,
    },
};
use rdma_fabric::{
    RegionKey,
    control_queue::{Command, Posting, QueueError},
};

impl<'a> Executor<'a> {
    /// Passes `posting`, a command of a queue of this rank for a rank of another node, to the layer
    /// that connects the nodes.
    pub(crate) fn send(&self, queue: &View<'_>, posting: &Posting) -> Performed {
        let to = posting.command.target().unwrap_or(queue.id);
        let (Some(remote), Some(most)) = (self.queues.remote(queue.id), self.job.most_inline()) else {
            return Performed::here(Err(QueueError::NotOpen(to)));
        };
        let payload = match self.pack(queue, &posting.command, most) {
            Ok(payload) => payload,
            Err(error) => return Performed::here(Err(error)),
        };
        let is_get = matches!(posting.command, Command::Get { .. });
        let region = if let Payload::Memory(region, _) = payload { Some(region) } else { None };
        // A command that is sent with its bytes no longer needs the memory here.
        let awaited = posting.tcq_notice && (is_get || region.is_some());
        let number = remote.begin(InFlight { posting: *posting, awaited, region });
        let checked = queue.geometry.checked;
        self.job.carry(RemoteCommand { from: queue.id, number, checked, posting: *posting }, payload);
        Performed { later: awaited.then_some(number), ..Performed::here(Ok(())) }
    }

    /// Returns the bytes of a command if they are at most `most`, otherwise their position.
    fn pack(&self, queue: &View<'a>, command: &Command, most: usize) -> Result<Payload, QueueError> {
        let (at, len) = match *command {
            Command::Put { from, len, .. } => (from, len),
            Command::Get { at, len, .. } => (at, len),
            _ => return Ok(Payload::Nothing),
        };
        let is_put = matches!(command, Command::Put { .. });
        let range = Range { at, len: len.into(), writes: false };
        if len as usize > most {
            let (key, heap_at) = self.stay(queue, range)?;
            return Ok(Payload::Memory(key, heap_at));
        }
        if !is_put {
            return Ok(Payload::Nothing);
        }
        let (piece, _inside) = self.end(queue, range)?;
        let mut bytes = vec![0; len as usize];
        piece.copy_out(&mut bytes).ok_or_else(|| gone(queue.id, at, &piece))?;
        Ok(Payload::Bytes(bytes))
    }

    /// Keeps a registration on a queue of this rank in place while the network moves its bytes.
    /// Returns the region, and the position of its bytes in the heap.
    pub(super) fn stay(&self, queue: &View<'_>, range: Range) -> Result<(RegionKey, u64), QueueError> {
        let Range { at, len, writes } = range;
        let (piece, key) = resolve(queue, at, len, 1, writes)?;
        self.queues.moving().enter(key);
        // A thread that ends the registration now sees this, or this sees the end.
        inside::barrier();
        if !resolve(queue, at, len, 1, writes).is_ok_and(|(_, now)| now == key) {
            self.queues.moving().leave(key);
            return Err(QueueError::NoSuchTag { queue: queue.id, stadd: at });
        }
        Ok((key, (piece.offset() - layout::HEAP) as u64))
    }
}
