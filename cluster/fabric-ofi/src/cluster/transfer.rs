//! Operations of this rank on memory of other nodes.
//!
//! Bytes are moved by libfabric's puts and gets. Single-copy-atomic accesses are not: aligned puts
//! and gets of 4 or 8 bytes are stores and loads of words, which the target's CPU executes, like
//! atomics, unless the provider keeps such words whole. The message of a put with a notice carries the bytes if they are few.

use super::{
    core::State,
    directory::RemoteRegion,
    flight::{Flight, Job},
    link::PAYLOAD,
    message::{Head, INLINE, Kind, WordWork},
    mutant::Mutant,
    net::Net,
    remote_rank::{NOTICES, QueuedNotice},
    rma::{Landing, Origin},
};
use core::num::NonZeroU64;
use rdma_fabric::{
    Amo, Fabric, FabricError, RemoteAddr, Result,
    provider::{Place, Posted, Sink, Source, Token},
};
use std::sync::Arc;

/// Maximum number of bytes that a put copies from this rank's memory instead of waiting until the
/// network has read them.
const COPIED: usize = 1024;

/// An operation on a place of another node.
pub(super) struct Transfer<'a> {
    net: &'a Net,
    below: &'a Fabric,
    remote: &'a Arc<RemoteRegion>,
    place: &'a Place,
}

/// The location of a put's bytes in this rank's memory.
enum Bytes<'a> {
    Here(&'a [u8]),
    Copied(Vec<u8>),
    Own(&'a Place),
}

impl<'a> Transfer<'a> {
    /// # Errors
    /// [`FabricError::StaleRegion`], [`FabricError::PeerLost`], [`FabricError::Aborted`].
    pub(super) fn new(
        net: &'a Net,
        below: &'a Fabric,
        remote: &'a Arc<RemoteRegion>,
        place: &'a Place,
    ) -> Result<Self> {
        if let Some(objection) = net.objection(place.rank()) {
            return Err(objection);
        }
        if remote.is_revoked() {
            return Err(FabricError::StaleRegion { rank: place.rank(), region: remote.key });
        }
        Ok(Transfer { net, below, remote, place })
    }

    fn rank(&self) -> u32 {
        self.remote.rank
    }

    fn offset(&self) -> u64 {
        self.place.addr().offset
    }

    /// Returns the width of the word at the place, if it is one that puts and gets may tear.
    fn torn_width(&self) -> Option<usize> {
        let by_message = self.net.watched.is_none();
        self.width().filter(|_| !(by_message && self.net.domain.keeps_words()))
    }

    /// Returns the width of the word at the place; `None` if the place is not a word.
    fn width(&self) -> Option<usize> {
        let len = self.place.len();
        let aligned = |width: usize| self.offset().is_multiple_of(width as u64);
        ((len == 4 || len == 8) && aligned(len)).then_some(len)
    }

    fn same_length(&self, len: usize) -> Result<()> {
        if len == self.place.len() { Ok(()) } else { Err(FabricError::length_mismatch(len, self.place.len())) }
    }

    /// Returns a place in this rank's memory as a range of its heap.
    fn own(&self, place: &Place) -> Result<core::ops::Range<usize>> {
        let RemoteAddr { rank, region, offset } = place.addr();
        let foreign = FabricError::Unsupported { feature: &"memory of another rank as own memory" };
        if rank != self.net.me || !self.net.part.has_resolved(place) {
            return Err(foreign);
        }
        let located = self.net.part.locate(region)?;
        let end = offset.checked_add(place.len() as u64).filter(|end| *end <= located.len);
        let outside = || FabricError::out_of_bounds(place.addr(), place.len() as u64, located.len);
        let at = end.map(|_| (located.at + offset) as usize).ok_or_else(outside)?;
        Ok(at..at + place.len())
    }

    /// Returns a put's bytes; copies them if they are few and in registered memory.
    fn bytes(&self, from: Source<'a>, most: usize) -> Result<Bytes<'a>> {
        match from {
            Source::Bytes(bytes) => Ok(Bytes::Here(bytes)),
            Source::Place(place) if place.len() <= most => {
                let mut bytes = vec![0; place.len()];
                self.below.provider().read(place, &mut bytes, false)?;
                Ok(Bytes::Copied(bytes))
            }
            Source::Place(place) => Ok(Bytes::Own(place)),
        }
    }

    pub(super) fn put(&self, from: Source<'a>) -> Result<Posted> {
        self.same_length(from.len())?;
        let bytes = self.bytes(from, COPIED)?;
        let here: &[u8] = match &bytes {
            Bytes::Here(bytes) => bytes,
            Bytes::Copied(bytes) => bytes,
            Bytes::Own(place) => return self.put_own(place),
        };
        if here.is_empty() {
            return Ok(Posted::Complete(0));
        }
        if let Some(width) = self.torn_width() {
            let mut word = [0; 8];
            word[..width].copy_from_slice(here);
            return self.word(WordWork::Store(u64::from_le_bytes(word)), width, false);
        }
        self.write(false, Origin::Bytes(here))
    }

    fn put_own(&self, place: &Place) -> Result<Posted> {
        self.write(true, Origin::Own(place.addr().region, self.own(place)?))
    }

    fn write(&self, wanted: bool, from: Origin<'_>) -> Result<Posted> {
        self.net.with(|state| {
            self.put_by(state, Job::Put, wanted, |state, flight| state.write(flight, self.remote, self.offset(), from))
        })
    }

    /// Starts a put with `post`; its flight is counted among the puts to the rank. A put that did
    /// not start is no longer counted.
    fn put_by(
        &self,
        state: &mut State,
        job: Job,
        wanted: bool,
        post: impl FnOnce(&mut State, Flight) -> Result<Option<u64>>,
    ) -> Result<Posted> {
        let put = state.core.count_put(self.rank());
        let flight = Flight { put: Some(put), wanted, ..Flight::new(self.rank(), job) };
        match post(state, flight) {
            Ok(Some(id)) if wanted => Ok(token(id)),
            Ok(Some(_)) => Ok(Posted::Complete(0)),
            not => {
                state.core.end_put(self.rank(), put);
                not.map(|_| Posted::Full)
            }
        }
    }

    pub(super) fn put_with_notice(&self, from: Source<'a>, data: u64) -> Result<Posted> {
        self.same_length(from.len())?;
        let bytes = self.bytes(from, PAYLOAD)?;
        let (len, rank) = (self.place.len(), self.rank());
        let head = Head {
            offset: self.offset(),
            a: data,
            b: len as u64,
            ..Head::request(Kind::Notice, self.net.me.number(), self.remote.key)
        };
        let range = if let Bytes::Own(place) = &bytes { Some((place.addr().region, self.own(place)?)) } else { None };
        self.net.with(|state| {
            if !state.core.has_room() || state.core.remote(rank).notices >= NOTICES {
                return Ok(Posted::Full);
            }
            let here: &[u8] = match &bytes {
                Bytes::Here(bytes) => bytes,
                Bytes::Copied(bytes) => bytes,
                Bytes::Own(_) => &[],
            };
            if range.is_none() && len <= PAYLOAD {
                let head = Head { detail: INLINE, ..head };
                return self.put_by(state, Job::Notice, false, |state, flight| {
                    if !state.core.queued.contains_key(&rank) {
                        let begun = state.request(flight, head, here)?;
                        state.core.remote(rank).notices += u64::from(begun.is_some());
                        return Ok(begun);
                    }
                    let id = state.core.flights.add(flight);
                    state.core.queue(rank, QueuedNotice { id, ready: true, head, bytes: here.to_vec() });
                    Ok(Some(id))
                });
            }
            let wanted = range.is_some();
            let origin = match range {
                Some((region, range)) => Origin::Own(region, range),
                None => Origin::Bytes(here),
            };
            self.put_by(state, Job::PutThenNotice, wanted, |state, flight| {
                let Some(id) = state.write(flight, self.remote, self.offset(), origin)? else { return Ok(None) };
                state.core.queue(rank, QueuedNotice { id, ready: false, head, bytes: Vec::new() });
                if state.core.has_mutant(Mutant::NoticeFirst) {
                    state.core.queued.remove(&rank);
                    state.core.send_soon(rank, 0, Head { id, ..head }, Vec::new());
                }
                Ok(Some(id))
            })
        })
    }

    pub(super) fn get(&self, to: &Sink<'_>) -> Result<Posted> {
        self.same_length(to.len())?;
        let own = match to {
            Sink::Bytes(_) => None,
            Sink::Place(place) => Some((*place, self.own(place)?)),
        };
        if self.place.is_empty() {
            return Ok(Posted::Complete(0));
        }
        if let Some(width) = self.torn_width() {
            return self.word_into(own.map(|(place, _)| place), WordWork::Load, width, true);
        }
        self.net.with(|state| {
            let (job, landing) = match own {
                None => (Job::Get, Landing::Bytes(self.place.len())),
                Some((place, range)) => (Job::GetInto(place.clone()), Landing::Own(place.addr().region, range)),
            };
            let flight = Flight { wanted: true, ..Flight::new(self.rank(), job) };
            let begun = state.read(flight, self.remote, self.offset(), landing)?;
            Ok(begun.map_or(Posted::Full, token))
        })
    }

    pub(super) fn atomic(&self, amo: Amo<u64>) -> Result<Posted> {
        let Some(width) = self.width() else {
            return Err(FabricError::misaligned(self.place.addr(), self.place.len().max(1)));
        };
        self.word(WordWork::Change(amo), width, true)
    }

    fn word(&self, work: WordWork, width: usize, wanted: bool) -> Result<Posted> {
        self.word_into(None, work, width, wanted)
    }

    fn word_into(&self, into: Option<&Place>, work: WordWork, width: usize, wanted: bool) -> Result<Posted> {
        if self.net.watched.is_some() {
            return self.word_by_nic(into, work, width, wanted);
        }
        let job = into.map_or(Job::Ask, |place| Job::WordInto(place.clone()));
        let mut head = Head::request(Kind::Word, self.net.me.number(), self.remote.key);
        work.write(&mut head);
        (head.offset, head.width) = (self.offset(), width as u8);
        self.net.with(|state| {
            if wanted {
                let flight = Flight { wanted, ..Flight::new(self.rank(), job) };
                return Ok(state.request(flight, head, &[])?.map_or(Posted::Full, token));
            }
            self.put_by(state, job, false, |state, flight| state.request(flight, head, &[]))
        })
    }
}

impl Transfer<'_> {
    fn word_by_nic(&self, into: Option<&Place>, work: WordWork, width: usize, wanted: bool) -> Result<Posted> {
        let at = (self.remote, self.offset(), width);
        let job = Job::Word(into.cloned());
        self.net.with(|state| {
            if !wanted {
                return self.put_by(state, job, false, |state, flight| state.word(flight, at, work));
            }
            let own = (self.place.rank() == self.net.me).then_some(self.remote.key);
            let flight = Flight { wanted, own, ..Flight::new(self.rank(), job) };
            Ok(state.word(flight, at, work)?.map_or(Posted::Full, token))
        })
    }
}

fn token(id: u64) -> Posted {
    NonZeroU64::new(id).map_or(Posted::Full, |id| Posted::Pending(Token(id)))
}
