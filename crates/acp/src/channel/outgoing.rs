//! The sending end of a channel.

use super::{
    ChannelOptions,
    link::{Answer, HEADER_BYTES, LocalSide, RemoteSide, stride},
    progress::Turn,
    results::Done,
};
use crate::Result;
use core::task::Poll;
use rdma_fabric::{
    Fabric, FabricError, join,
    provider::{Boxed, SHORT},
};
use std::{collections::VecDeque, sync::Arc};

/// The position of a slot's type, the highest three bits of its header. The other bits are the
/// number of bytes of the message that had not been put before this slot.
pub(super) const TYPE_AT: u32 = 61;
pub(super) const EAGER: u64 = 0;
pub(super) const DISCONNECT: u64 = 1;

/// A message or disconnection that has not been put completely.
struct Message {
    request: u64,
    kind: u64,
    bytes: Arc<Vec<u8>>,
    /// Bytes that have been put, or are being put.
    staged: usize,
}

/// One slot's part of a message.
struct Chunk {
    bytes: Arc<Vec<u8>>,
    start: usize,
    len: usize,
    header: u64,
    /// The offset of the slot.
    at: usize,
}

/// Slots whose puts are in flight.
struct Transfer {
    flight: Boxed<'static, Result<()>>,
    slots: u64,
    /// The messages whose last slots are in this put.
    ending: Vec<Message>,
}

/// The progress of the connection.
enum Link {
    Asking(Boxed<'static, Result<()>>),
    Asked,
    Linked(RemoteSide),
}

pub(super) struct Outgoing {
    pub(super) local: LocalSide,
    link: Link,
    queue: VecDeque<Message>,
    transfer: Option<Transfer>,
    /// The number of slots put.
    put: u64,
    /// The number of slots put at a time.
    at_once: usize,
    /// The request that completes once the disconnection has been put.
    closing: Option<u64>,
    /// Whether the disconnection is queued.
    pub(super) freed: bool,
}

impl Outgoing {
    /// Creates the end from its connection request.
    pub(super) fn new(local: LocalSide, asking: Boxed<'static, Result<()>>, options: &ChannelOptions) -> Self {
        let queue = VecDeque::with_capacity(options.requests);
        let (link, at_once) = (Link::Asking(asking), options.send_slots);
        Outgoing { local, link, queue, transfer: None, put: 0, at_once, closing: None, freed: false }
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(self.link, Link::Linked(_))
    }

    pub(super) fn send(&mut self, request: u64, bytes: Vec<u8>) {
        self.queue.push_back(Message { request, kind: EAGER, bytes: Arc::new(bytes), staged: 0 });
    }

    pub(super) fn free(&mut self, request: u64) {
        self.freed = true;
        self.queue.push_back(Message { request, kind: DISCONNECT, bytes: Arc::default(), staged: 0 });
    }

    /// Returns the incomplete requests.
    pub(super) fn outstanding(&mut self) -> Vec<u64> {
        let putting = self.transfer.take().map(|transfer| transfer.ending).unwrap_or_default();
        let messages = putting.into_iter().chain(self.queue.drain(..));
        messages.map(|message| message.request).chain(self.closing.take()).collect()
    }

    /// Makes progress without waiting; returns whether the end is no longer needed.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        if let Link::Asking(asking) = &mut self.link {
            match asking.as_mut().poll(turn.cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(asked) => asked?,
            }
            self.link = Link::Asked;
        }
        loop {
            let head = self.local.load(turn.fabric)?;
            if head != 0 && matches!(self.link, Link::Asked) {
                let answer = Answer::read(turn.fabric, &self.local.region)?;
                self.link = Link::Linked(answer.resolve(turn.fabric, &self.local, stride)?);
                turn.changed = true;
            }
            if let Some(transfer) = &mut self.transfer {
                let Poll::Ready(put) = transfer.flight.as_mut().poll(turn.cx) else { return Ok(false) };
                put?;
                self.end_transfer(turn);
                continue;
            }
            let free = match &self.link {
                Link::Linked(remote) => {
                    let full = self.put.checked_sub(head.wrapping_sub(1)).filter(|full| *full <= remote.slots);
                    remote.slots - full.ok_or_else(|| self.local.corrupt(&"the head of a channel"))?
                }
                _ => 0,
            };
            if free > 0 && !self.queue.is_empty() {
                self.begin_transfer(turn, free);
                continue;
            }
            match self.closing {
                Some(request) if head == self.put + 1 => {
                    turn.results.finish(request, Ok(Done::Freed));
                    self.closing = None;
                    return Ok(true);
                }
                None if self.queue.is_empty() && self.is_connected() => return Ok(false),
                _ => {}
            }
            match self.local.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    fn begin_transfer(&mut self, turn: &Turn<'_, '_>, free: u64) {
        let Link::Linked(remote) = &self.link else { return };
        let (mut chunks, mut ending) = (Vec::new(), Vec::new());
        while (chunks.len() as u64) < free
            && let Some(message) = self.queue.front_mut()
        {
            let remaining = message.bytes.len() - message.staged;
            let len = remaining.min(remote.slot_bytes);
            let slot = (self.put + chunks.len() as u64) % remote.slots;
            let header = message.kind << TYPE_AT | remaining as u64;
            let (bytes, at) = (message.bytes.clone(), slot as usize * stride(remote.slot_bytes));
            chunks.push(Chunk { bytes, start: message.staged, len, header, at });
            message.staged += len;
            if len == remaining {
                ending.extend(self.queue.pop_front());
            }
        }
        let slots = chunks.len() as u64;
        let flight = put_all(turn.fabric.clone(), remote.clone(), chunks, self.at_once);
        self.transfer = Some(Transfer { flight: Box::pin(flight), slots, ending });
    }

    fn end_transfer(&mut self, turn: &mut Turn<'_, '_>) {
        let Some(Transfer { flight, slots, ending }) = self.transfer.take() else { return };
        // The flight holds references to the messages.
        drop(flight);
        self.put += slots;
        turn.changed = true;
        for Message { request, kind, bytes, .. } in ending {
            match kind {
                DISCONNECT => self.closing = Some(request),
                _ => turn.results.finish(request, Ok(Done::Sent(Arc::unwrap_or_clone(bytes)))),
            }
        }
    }
}

/// Puts slots, and adds their number to the tail.
async fn put_all(fabric: Fabric, remote: RemoteSide, chunks: Vec<Chunk>, at_once: usize) -> Result<()> {
    for group in chunks.chunks(at_once) {
        for put in join::join_all(group.iter().map(|chunk| chunk.put(&fabric, &remote))).await {
            put?;
        }
    }
    remote.add(&fabric, chunks.len() as u64).await
}

impl Chunk {
    async fn put(&self, fabric: &Fabric, remote: &RemoteSide) -> Result<(), FabricError> {
        let bytes = &self.bytes[self.start..self.start + self.len];
        if HEADER_BYTES + self.len <= SHORT {
            let mut both = [0; SHORT];
            both[..HEADER_BYTES].copy_from_slice(&self.header.to_ne_bytes());
            both[HEADER_BYTES..HEADER_BYTES + self.len].copy_from_slice(bytes);
            let to = remote.data.part_as::<u8>(self.at, HEADER_BYTES + self.len)?;
            return fabric.put_slice(&to, &both[..HEADER_BYTES + self.len]).await;
        }
        let header = remote.data.word_at::<u64>(self.at)?;
        let to = remote.data.part_as::<u8>(self.at + HEADER_BYTES, self.len)?;
        let (header, bytes) = join::join(fabric.put_word(&header, self.header), fabric.put_slice(&to, bytes)).await;
        header.and(bytes)
    }
}
