//! Operations, from posting to result, and the pieces of transfers: at most one cell each, on both
//! sides.

use crate::{
    act::{Act, Answer, HandleId, Op},
    awaiting::{Waiter, waiter_for, waits_for},
    cell::{Agent, CELL, CellPart},
    dropped::Holding,
    fabric::RankHandle,
};
use rdma_fabric::{
    Amo, FabricError, Notice, RemoteAddr, Result,
    provider::{Place, Posted, Sink, Source, Token},
};
use std::{num::NonZeroU64, ops::Range, slice, task::Poll};

impl RankHandle {
    /// Checks that the memory of `place` can still be used.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] or [`FabricError::StaleRegion`] if the memory of `place` can no
    /// longer be used.
    fn usable(&self, place: &Place) -> Result<()> {
        self.alive(place.rank())?;
        self.registered_place(place)
    }

    /// Posts the operation that `op` creates from the number of its handle. Its result consists of
    /// `parts`.
    fn post(&self, parts: Pieces, op: impl FnOnce(u8) -> Op) -> Posted {
        let slot = self.session.take_slot(parts);
        self.session.report(Act::Post(op(slot)));
        pending(slot)
    }

    /// Posts puts of the same source to several places; they share one handle.
    pub(crate) fn post_puts(&self, to: &[Place], from: Source<'_>, notice: Option<u64>) -> Result<Posted> {
        let bits = self.session.facts.caps.notice_bits;
        if let Some(data) = notice.filter(|data| bits < 64 && data >> bits != 0) {
            return Err(FabricError::NoticeTooWide { data, bits });
        }
        to.iter().try_for_each(|place| self.usable(place))?;
        if let Source::Place(own) = from {
            self.registered_place(own)?;
        }
        // Bytes are copied now, so a put of bytes, or of nothing, is complete; local memory is read
        // later.
        let own = if let Source::Place(own) = from { Some(own).filter(|own| !own.is_empty()) } else { None };
        let slot = own.map(|_| self.session.take_slot(Pieces::new()));
        let ordered = self.session.facts.caps.puts_in_order;
        for place in to {
            let addr = place.addr();
            let (target, end) = (Holding::of(addr), addr.offset + place.len() as u64);
            let notice = notice.map(|data| Notice { from: self.me(), data, region: addr.region, end });
            let op = match (slot, own, from) {
                (Some(slot), Some(own), _) => {
                    Op::PutFrom { slot, target, ordered, pieces: self.across(place, own), notice }
                }
                (_, _, Source::Bytes(bytes)) => {
                    let pieces = self.pieces(Agent::Network, place).into_iter();
                    let pieces = pieces.map(|(part, at)| (part, bits_of(part, &bytes[at]))).collect();
                    Op::Put { target, ordered, pieces, notice }
                }
                _ => Op::Put { target, ordered, pieces: Box::default(), notice },
            };
            self.session.report(Act::Post(op));
        }
        Ok(slot.map_or(Posted::Complete(0), pending))
    }

    pub(crate) fn post_get(&self, from: &Place, to: &Sink<'_>) -> Result<Posted> {
        self.usable(from)?;
        if let Sink::Place(own) = to {
            self.registered_place(own)?;
        }
        if from.is_empty() {
            return Ok(Posted::Complete(0));
        }
        if matches!(to, Sink::Place(own) if overlap(from, own)) {
            return Err(FabricError::Unsupported { feature: &"a get whose source and sink overlap" });
        }
        let target = Holding::of(from.addr());
        Ok(match to {
            Sink::Place(own) => {
                let sink = own.addr().region.index;
                let pieces = self.across(from, own).iter().map(|(part, own)| (*part, Some(*own))).collect();
                self.post(Pieces::new(), |slot| Op::Get { slot, target, pieces, sink })
            }
            Sink::Bytes(_) => {
                let parts = self.pieces(Agent::Network, from);
                let pieces = parts.iter().map(|(part, _)| (*part, None)).collect();
                self.post(parts, |slot| Op::Get { slot, target, pieces, sink: 0 })
            }
        })
    }

    pub(crate) fn post_atomic(&self, word: &Place, amo: Amo<u64>) -> Result<Posted> {
        self.usable(word)?;
        let (at, target) = (self.word(Agent::Atomic, word), Holding::of(word.addr()));
        Ok(self.post(Pieces::new(), |slot| Op::Atomic { slot, target, at, amo }))
    }

    /// Returns the result of the operation that `waiter` waits for.
    pub(crate) fn take(&self, waiter: Waiter, into: Sink<'_>) -> Poll<Result<u64>> {
        let slot = waits_for(waiter);
        let answer = self.session.request(Act::Await(slot));
        let words = match &answer {
            Some(Answer::Value(word)) => Ok(slice::from_ref(word)),
            Some(Answer::Words(words)) => Ok(&words[..]),
            Some(Answer::Done) => Ok(&[][..]),
            Some(Answer::Lost(rank)) => Err(FabricError::PeerLost { rank: *rank }),
            Some(Answer::Stale(holding)) => Err(holding.stale()),
            _ => {
                self.session.has_to_wait(waiter);
                return Poll::Pending;
            }
        };
        self.session.continued();
        let parts = self.session.free_slot(slot);
        Poll::Ready(words.map(|words| {
            if let Sink::Bytes(bytes) = into {
                for ((part, at), bits) in parts.into_iter().zip(words) {
                    bytes_of(part, *bits, &mut bytes[at]);
                }
            }
            words.first().copied().unwrap_or(0)
        }))
    }

    pub(crate) fn is_complete(&self, waiter: Waiter) -> bool {
        let complete = self.session.request(Act::Test(waits_for(waiter))) == Some(Answer::Value(1));
        self.session.continued();
        complete
    }

    /// Drops the handle of the operation that `waiter` waited for.
    pub(crate) fn drop_handle(&self, waiter: Waiter) {
        let slot = waits_for(waiter);
        self.session.report(Act::Forget(slot));
        self.session.free_slot(slot);
    }
}

/// Returns a pending operation with the handle `slot`.
fn pending(slot: HandleId) -> Posted {
    Posted::Pending(Token(NonZeroU64::new(waiter_for(slot)).expect("no waiter is 0")))
}

/// Returns whether both places have bytes in common.
fn overlap(one: &Place, other: &Place) -> bool {
    let (a, b) = (one.addr(), other.addr());
    Holding::of(a) == Holding::of(b)
        && a.offset < b.offset + other.len() as u64
        && b.offset < a.offset + one.len() as u64
}

/// Splits bytes `start..start + len` of a region at cell boundaries. Yields each piece's bytes of
/// the region, and its bytes of the `len`.
fn split(start: u64, len: usize) -> impl Iterator<Item = (Range<u64>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = start + done as u64;
        let count = (CELL - (at % CELL as u64) as usize).min(len - done);
        done += count;
        (count > 0).then_some((at..at + count as u64, done - count..done))
    })
}

/// Returns the bits of a cell that holds `bytes` at `part`.
pub(crate) fn bits_of(part: CellPart, bytes: &[u8]) -> u64 {
    let mut cell = [0u8; CELL];
    let first = part.mask.to_ne_bytes().iter().position(|byte| *byte != 0).unwrap_or(0);
    cell[first..][..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(cell)
}

pub(crate) fn bytes_of(part: CellPart, bits: u64, into: &mut [u8]) {
    let first = part.mask.to_ne_bytes().iter().position(|byte| *byte != 0).unwrap_or(0);
    into.copy_from_slice(&bits.to_ne_bytes()[first..][..into.len()]);
}

impl RankHandle {
    fn part(&self, agent: Agent, addr: RemoteAddr, at: Range<u64>) -> CellPart {
        self.session.cells.borrow_mut().part(agent, addr, at)
    }

    /// Returns the cell part that the word occupies.
    pub(crate) fn word(&self, agent: Agent, place: &Place) -> CellPart {
        let start = place.addr().offset;
        self.part(agent, place.addr(), start..start + place.len() as u64)
    }

    /// Returns the parts of cells that make up `place`, each with its bytes of the transfer.
    pub(crate) fn pieces(&self, agent: Agent, place: &Place) -> Pieces {
        let addr = place.addr();
        let all = split(addr.offset, place.len()).map(|(cell, at)| (self.part(agent, addr, cell), at));
        all.collect()
    }

    /// Returns the pieces of a transfer between registered places, as (there, here). Each is within
    /// one cell on both sides.
    pub(crate) fn across(&self, there: &Place, here: &Place) -> Box<[(CellPart, CellPart)]> {
        let (there, len, here) = (there.addr(), there.len(), here.addr());
        let mut pieces = Vec::new();
        for (far, at) in split(there.offset, len) {
            for (near, inside) in split(here.offset + at.start as u64, at.len()) {
                let start = far.start + inside.start as u64;
                let far = self.part(Agent::Network, there, start..start + inside.len() as u64);
                pieces.push((far, self.part(Agent::Network, here, near)));
            }
        }
        pieces.into()
    }
}

/// The parts of cells that a transfer touches, and the bytes of the transfer that each holds.
pub(crate) type Pieces = Vec<(CellPart, Range<usize>)>;

/// The handles of a rank's operations.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    taken: Vec<bool>,
    /// The pieces of gets into bytes, by slot; empty for all other operations.
    parts: Vec<Pieces>,
}

impl Handles {
    /// Takes the lowest free number for an operation whose result consists of `parts`.
    pub(crate) fn take(&mut self, parts: Pieces) -> HandleId {
        let free = self.taken.iter().position(|taken| !taken).unwrap_or_else(|| {
            self.taken.push(false);
            self.parts.push(Pieces::new());
            self.taken.len() - 1
        });
        (self.taken[free], self.parts[free]) = (true, parts);
        HandleId::try_from(free).expect("fewer than 255 handles at a time")
    }

    /// Frees the number of an operation whose handle has been dropped. Returns the parts of its
    /// result.
    pub(crate) fn free(&mut self, slot: HandleId) -> Pieces {
        self.taken[usize::from(slot)] = false;
        std::mem::take(&mut self.parts[usize::from(slot)])
    }

    /// Returns whether any number is taken.
    pub(crate) fn are_taken(&self) -> bool {
        self.taken.contains(&true)
    }

    /// Returns for each number whether it is taken, up to the last taken one.
    pub(crate) fn up_to_the_last(&self) -> Vec<bool> {
        let last = self.taken.iter().rposition(|taken| *taken);
        self.taken[..last.map_or(0, |last| last + 1)].to_vec()
    }
}
