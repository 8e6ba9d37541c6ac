//! The two sides of a connection: the words through which each reports its progress to the other.
//!
//! The sending side has a *control block*: the head, and the answer to its connection request. The
//! receiving side has the tail, and the slots. Head and tail count slots, and never decrease. The
//! tail is the number of slots put; the head is the number taken *plus one*, and 0 until there is a
//! connection.
//!
//! # Order
//! Head and tail are changed only by atomic additions, so additions may arrive in any order, and
//! none waits for the previous one. An addition to the tail must not overtake the bytes that it
//! announces: they are put before it, with a flush in between unless
//! [`rdma_fabric::Caps::put_order`] orders puts before later atomics on the same rank. An addition
//! to the head follows reads of local memory, which have completed.

use super::{options::ChannelOptions, progress::Turn};
use crate::{AcpError, Result};
use core::task::Poll;
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, LocalWord, PutOrder, Rank, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord,
    provider::Boxed,
};

/// The size of a control block, and the offset of a channel's slots from the tail.
pub(super) const BLOCK_BYTES: usize = 64;
/// The size of the header of a channel's slot.
pub(super) const HEADER_BYTES: usize = 8;
/// Flag of a head or tail: this side has disconnected, and no longer writes to the other side.
pub(super) const CLOSED: u64 = 1 << 63;
const ANSWER_AT: usize = 8;

/// A wait for one of this rank's own words. It outlives the call that started it.
#[derive(Default)]
pub(super) struct Watch {
    wait: Option<(u64, Boxed<'static, Result<u64, FabricError>>)>,
}

impl Watch {
    /// Waits until a word differs from `seen`, or until `place` can no longer change it.
    pub(super) fn poll(
        &mut self,
        turn: &mut Turn<'_, '_>,
        word: &LocalWord<u64>,
        place: Rank,
        seen: u64,
    ) -> Poll<Result<()>> {
        if self.wait.as_ref().is_none_or(|(since, _)| *since != seen) {
            let (fabric, word) = (turn.fabric.clone(), word.clone());
            let wait = async move { fabric.wait_until(&word, Deps::One(place), |value| value != seen).await };
            self.wait = Some((seen, Box::pin(wait)));
        }
        match self.wait.as_mut().map(|(_, wait)| wait.as_mut().poll(turn.cx)) {
            Some(Poll::Ready(changed)) => {
                self.wait = None;
                turn.changed = true;
                Poll::Ready(changed.map(drop).map_err(AcpError::from))
            }
            _ => Poll::Pending,
        }
    }
}

/// This rank's side.
pub(super) struct LocalSide {
    pub(super) peer: Rank,
    /// The fabric's rank of `peer`.
    pub(super) place: Rank,
    pub(super) region: Region,
    /// The word that the peer changes, at the start of the region.
    word: LocalWord<u64>,
    seen: u64,
    watch: Watch,
}

impl LocalSide {
    pub(super) fn new(fabric: &Fabric, peer: Rank, place: Rank, bytes: usize) -> Result<Self> {
        let region = fabric.alloc(bytes)?;
        let word = region.word(fabric, 0)?;
        Ok(LocalSide { peer, place, region, word, seen: 0, watch: Watch::default() })
    }

    /// Returns the last value that the peer has written.
    pub(super) fn load(&mut self, fabric: &Fabric) -> Result<u64> {
        self.seen = fabric.load(&self.word)?;
        Ok(self.seen)
    }

    /// Waits until the peer has changed the word since the last [load](LocalSide::load).
    pub(super) fn poll_change(&mut self, turn: &mut Turn<'_, '_>) -> Poll<Result<()>> {
        self.watch.poll(turn, &self.word, self.place, self.seen)
    }

    pub(super) fn corrupt(&self, what: &'static &'static str) -> AcpError {
        FabricError::Corrupt { rank: self.place, what }.into()
    }
}

/// The receiving side, as the sending side knows it.
#[derive(Clone)]
pub(super) struct RemoteSide {
    pub(super) tail: RemoteWord<u64>,
    pub(super) data: RemoteSpan<u8>,
    pub(super) slots: u64,
    pub(super) slot_bytes: usize,
}

impl RemoteSide {
    /// Advances the tail, ordered after all earlier puts.
    pub(super) async fn add(&self, fabric: &Fabric, more: u64) -> Result<()> {
        if !are_puts_first(fabric) {
            fabric.flush(self.tail.rank()).await?;
        }
        fabric.fetch_add(&self.tail, more).await?;
        Ok(())
    }
}

/// Returns whether puts are ordered before later atomics on the same rank.
pub(super) fn are_puts_first(fabric: &Fabric) -> bool {
    fabric.caps().put_order >= PutOrder::SameTarget
}

/// The answer of a receiving side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) tail: RegionKey,
    pub(super) data: RegionKey,
    pub(super) data_at: u64,
    pub(super) slots: u64,
    pub(super) slot_bytes: u64,
}

impl Answer {
    const WORDS: usize = 5;

    /// Puts the answer into the control block of a sending side, and makes the head 1.
    async fn give(self, fabric: Fabric, block: RemoteAddr) -> Result<()> {
        let words = [self.tail.to_bits(), self.data.to_bits(), self.data_at, self.slots, self.slot_bytes];
        let at = RemoteAddr { offset: block.offset + ANSWER_AT as u64, ..block };
        fabric.put(&fabric.remote_span::<u64>(at, Self::WORDS)?, words).await?;
        fabric.flush(block.rank).await?;
        fabric.fetch_add(&fabric.remote_word::<u64>(block)?, 1).await?;
        Ok(())
    }

    /// Returns the answer that a control block holds.
    pub(super) fn read(fabric: &Fabric, block: &Region) -> Result<Self> {
        let mut words = [0; Self::WORDS];
        fabric.read(&block.span(fabric, ANSWER_AT, Self::WORDS)?, &mut words)?;
        let [tail, data, data_at, slots, slot_bytes] = words;
        let [tail, data] = [tail, data].map(RegionKey::from_bits);
        Ok(Answer { tail, data, data_at, slots, slot_bytes })
    }

    /// Resolves the memory named in the answer. `stride` returns the distance between slots in
    /// bytes.
    pub(super) fn resolve(self, fabric: &Fabric, local: &LocalSide, stride: fn(usize) -> usize) -> Result<RemoteSide> {
        let Answer { tail, data, data_at, slots, slot_bytes } = self;
        let at = |region, offset| RemoteAddr { rank: local.place, region, offset };
        let slot_bytes = usize::try_from(slot_bytes).ok().filter(|bytes| *bytes <= usize::MAX / 2);
        let bytes = slot_bytes.and_then(|bytes| stride(bytes).checked_mul(usize::try_from(slots).ok()?));
        match (slot_bytes, bytes) {
            (Some(slot_bytes), Some(bytes)) if bytes > 0 => {
                let (tail, data) = (fabric.remote_word(at(tail, 0))?, fabric.remote_span(at(data, data_at), bytes)?);
                Ok(RemoteSide { tail, data, slots, slot_bytes })
            }
            _ => Err(local.corrupt(&"the answer to a request to connect")),
        }
    }
}

/// Returns the bytes from one slot of a channel to the next.
pub(super) fn stride(slot_bytes: usize) -> usize {
    ChannelOptions::stride(slot_bytes)
}

/// Reports this side's count in a word of the other side.
pub(super) struct Telling {
    word: RemoteWord<u64>,
    told: u64,
    /// The answer to the connection request, until it is sent.
    answer: Option<Boxed<'static, Result<()>>>,
    /// Additions to the word that may not have arrived.
    flights: Vec<Boxed<'static, Result<()>>>,
}

impl Telling {
    /// Starts with an answer, which sets the word to 1.
    pub(super) fn new(fabric: &Fabric, answer: Answer, block: RemoteAddr) -> Result<Self> {
        let word = fabric.remote_word(block)?;
        let answer: Boxed<'static, Result<()>> = Box::pin(answer.give(fabric.clone(), block));
        Ok(Telling { word, told: 1, answer: Some(answer), flights: Vec::new() })
    }

    /// Adds to the word until it is `value`; returns whether all additions have completed.
    pub(super) fn poll(&mut self, turn: &mut Turn<'_, '_>, value: u64) -> Result<bool> {
        if let Some(answer) = &mut self.answer {
            let Poll::Ready(given) = answer.as_mut().poll(turn.cx) else { return Ok(false) };
            self.answer = None;
            turn.changed = true;
            given?;
        }
        let more = Amo::Add(value.wrapping_sub(self.told));
        if value != self.told && turn.fabric.direct().atomic(&self.word, more).is_none() {
            let (fabric, word) = (turn.fabric.clone(), self.word.clone());
            self.flights.push(Box::pin(async move { Ok(fabric.atomic(&word, more).await.map(drop)?) }));
        }
        self.told = value;
        let mut met = Ok(());
        self.flights.retain_mut(|flight| match flight.as_mut().poll(turn.cx) {
            Poll::Pending => true,
            Poll::Ready(told) => {
                met = met.clone().and(told);
                false
            }
        });
        met.map(|()| self.flights.is_empty())
    }
}
