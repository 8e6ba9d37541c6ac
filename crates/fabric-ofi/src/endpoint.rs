//! Endpoints, and operations on memory of peers.

pub use crate::table::Token;

use crate::{
    Atomics, Domain, Region,
    error::{OfiError, Result},
    key::RemoteKey,
    name::Name,
    peer::Peer,
    raw::{self, Arrival, Remote, Work},
};
use core::{cell::Cell, marker::PhantomData, ops::Range, time::Duration};
use rdma_fabric::Amo;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

/// How long an operation is offered to a provider that has no room for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a queue is read in vain before others may run.
const SPINS: u32 = 64;
/// The longest address that is a text, with its zero.
const LONGEST_TEXT: usize = 64;

/// A reliable datagram endpoint with a completion queue and peers of its own: one for each thread.
///
/// Puts, gets and atomics come with a [`Token`] and are under way then. A put is over when its
/// bytes may be used again, which is not when they are visible at the peer; a get and an atomic
/// when they have brought what they bring. Nothing is ordered between two operations unless the
/// first is over before the second is posted.
///
/// A wrong key changes nothing at the target, and is told as the provider likes: by an error of the
/// operation (gets over `tcp`); to the target, or by errors of later operations, since the
/// connection is closed (puts over `tcp`); not at all (`shm`). So each wait has an end, and an
/// operation that is never answered keeps its slot.
///
/// Dropping an endpoint abandons what is under way.
#[derive(Debug)]
pub struct Endpoint {
    raw: raw::Endpoint,
    domain: Domain,
    name: Name,
    number: u64,
    patience: Duration,
    /// It is `Send` and not `Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl Endpoint {
    pub(crate) fn new(domain: Domain) -> Result<Self> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let failed = |failed| OfiError::call(failed, domain.provider());
        let words = domain.register(raw::Endpoint::bytes_for_words(domain.raw()), false)?;
        let raw = raw::Endpoint::open(domain.raw(), words).map_err(failed)?;
        let raw = raw.map_err(|source| OfiError::Memory { bytes: 0, source })?;
        let address = raw.name().map_err(failed)?;
        let name = Name { provider: domain.provider().to_owned(), form: domain.facts().address_format, address };
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        Ok(Self { raw, domain, name, number, patience: PATIENCE, one_thread: PhantomData })
    }

    /// Returns its name, which peers [insert](Endpoint::insert).
    pub fn name(&self) -> Vec<u8> {
        self.name.to_bytes()
    }

    /// Adds a peer by its name. Nothing is sent: whether there is such a peer turns out later.
    ///
    /// # Errors
    /// [`OfiError::Name`], [`OfiError::Call`].
    pub fn insert(&mut self, name: &[u8]) -> Result<Peer> {
        let theirs = Name::from_bytes(name)?;
        let address = self.name.accept(&theirs, LONGEST_TEXT)?;
        let index = self.raw.insert(address).map_err(|failed| OfiError::call(failed, &self.name.provider))?;
        Ok(Peer { endpoint: self.number, index })
    }

    /// Returns the atomics that it has, each asked for by itself.
    pub fn atomics(&self) -> Atomics {
        self.raw.atomics()
    }

    /// Sets how long an operation is offered to a provider that has no room; 10 s unless set.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Posts a put of bytes of `from` to `offset` in a peer's region.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`], [`OfiError::TooLong`], [`OfiError::Foreign`]; [`OfiError::Full`],
    /// [`OfiError::Busy`]; [`OfiError::Call`].
    pub fn put(
        &mut self,
        peer: Peer,
        from: &Region,
        bytes: Range<usize>,
        to: RemoteKey,
        offset: usize,
    ) -> Result<Token> {
        self.put_maybe_with(peer, from, bytes, to, offset, None)
    }

    /// Posts a put as [`Endpoint::put`] does, whose target is told `data` when the bytes are there.
    ///
    /// # Errors
    /// As for [`Endpoint::put`].
    pub fn put_with(
        &mut self,
        peer: Peer,
        from: &Region,
        bytes: Range<usize>,
        to: RemoteKey,
        offset: usize,
        data: u64,
    ) -> Result<Token> {
        self.put_maybe_with(peer, from, bytes, to, offset, Some(data))
    }

    fn put_maybe_with(
        &mut self,
        peer: Peer,
        from: &Region,
        bytes: Range<usize>,
        to: RemoteKey,
        offset: usize,
        data: Option<u64>,
    ) -> Result<Token> {
        let from = self.span(from, bytes)?;
        let address = to.address(offset, from.len())?;
        self.post(peer, &Work::Put { from, data }, to.key, address)
    }

    /// Posts a get of bytes from `offset` on in a peer's region, to `bytes` of `into`.
    ///
    /// # Errors
    /// As for [`Endpoint::put`].
    pub fn get(
        &mut self,
        peer: Peer,
        into: &Region,
        bytes: Range<usize>,
        from: RemoteKey,
        offset: usize,
    ) -> Result<Token> {
        let into = self.span(into, bytes)?;
        let address = from.address(offset, into.len())?;
        self.post(peer, &Work::Get { into }, from.key, address)
    }

    /// Posts an atomic on a word of 8 bytes in a peer's region; its result is the word's value
    /// before.
    ///
    /// # Errors
    /// As for [`Endpoint::put`], and [`OfiError::Misaligned`].
    pub fn change(&mut self, peer: Peer, word: RemoteKey, offset: usize, amo: Amo<u64>) -> Result<Token> {
        if !offset.is_multiple_of(8) {
            return Err(OfiError::Misaligned { key: word.key, offset });
        }
        let address = word.address(offset, 8)?;
        self.post(peer, &Work::Change(amo), word.key, address)
    }

    fn span(&self, region: &Region, bytes: Range<usize>) -> Result<raw::Span> {
        // A range that runs backwards is as long as can't be.
        let len = if bytes.start <= bytes.end { bytes.end - bytes.start } else { usize::MAX };
        let span = region.span(bytes.start, len)?;
        let limit = self.domain.longest();
        if !std::sync::Arc::ptr_eq(span.registration().domain(), self.raw.domain()) {
            return Err(OfiError::Foreign { what: "region" });
        }
        if len > limit {
            return Err(OfiError::TooLong { len, limit });
        }
        Ok(span)
    }

    fn post(&mut self, peer: Peer, work: &Work, key: u64, address: u64) -> Result<Token> {
        if peer.endpoint != self.number {
            return Err(OfiError::Foreign { what: "peer" });
        }
        let remote = Remote { peer: peer.index, address, key };
        let begun = Instant::now();
        let mut vain = 0;
        loop {
            let full = match self.raw.post(work, remote) {
                Ok(Some(token)) => return Ok(token),
                Ok(None) => true,
                Err(failed) if failed.is_for_now() => false,
                Err(failed) => return Err(OfiError::call(failed, &self.name.provider)),
            };
            let progress = self.progress()?;
            if full && !progress && self.raw.table().held().next().is_none() {
                return Err(OfiError::Full { limit: self.raw.table().len() });
            }
            if begun.elapsed() >= self.patience {
                let (limit, within) = (self.raw.table().len(), self.patience);
                let busy = OfiError::Busy { peer: peer.index, within };
                return Err(if full { OfiError::Full { limit } } else { busy });
            }
            rest(&mut vain, progress);
        }
    }

    /// Lets the provider work, for peers' operations too; returns whether something was over.
    ///
    /// # Errors
    /// [`OfiError::Call`].
    pub fn progress(&mut self) -> Result<bool> {
        let read = self.raw.progress().map_err(|failed| OfiError::call(failed, &self.name.provider))?;
        Ok(read > 0)
    }

    /// Returns an operation's result if it is over, after some progress: for an atomic the value
    /// before, else 0.
    ///
    /// # Errors
    /// [`OfiError::Operation`] if the operation failed; [`OfiError::Foreign`], [`OfiError::Call`].
    pub fn test(&mut self, token: &Token) -> Result<Option<u64>> {
        self.progress()?;
        let failure = match self.raw.outcome(token) {
            None => return Err(OfiError::Foreign { what: "token" }),
            Some(None) => return Ok(None),
            Some(Some(Ok(value))) => return Ok(Some(*value)),
            Some(Some(Err(failure))) => failure.clone(),
        };
        let raw::Failure { call, remote: Remote { peer, address, key }, reply } = failure;
        Err(OfiError::Operation { call, peer, key, address, reply })
    }

    /// Waits until an operation is over, and returns its result as [`Endpoint::test`] does.
    ///
    /// # Errors
    /// [`OfiError::TimedOut`], after which the operation is still under way; else as for
    /// [`Endpoint::test`].
    pub fn wait(&mut self, token: &Token, within: Duration) -> Result<u64> {
        self.wait_for("an operation", within, |endpoint| endpoint.test(token))
    }

    /// Returns the data of a peer's put that has arrived, the oldest first, after some progress.
    ///
    /// # Errors
    /// [`OfiError::Fault`] if instead an error has arrived that is no operation's of this endpoint,
    /// such as a peer's put with a wrong key: what comes after it comes by the next call.
    /// [`OfiError::Call`].
    pub fn notice(&mut self) -> Result<Option<u64>> {
        self.progress()?;
        match self.raw.arrival() {
            None => Ok(None),
            Some(Arrival::Data(data)) => Ok(Some(data)),
            Some(Arrival::Fault(reply)) => Err(OfiError::Fault(reply)),
        }
    }

    /// Waits for a notice as [`Endpoint::notice`] returns it.
    ///
    /// # Errors
    /// [`OfiError::TimedOut`]; else as for [`Endpoint::notice`].
    pub fn wait_notice(&mut self, within: Duration) -> Result<u64> {
        self.wait_for("a notice", within, Self::notice)
    }

    /// Calls `look`, which makes progress, until it returns something or the time is over.
    fn wait_for<T>(
        &mut self,
        what: &'static str,
        within: Duration,
        mut look: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        let mut vain = 0;
        loop {
            if let Some(seen) = look(self)? {
                return Ok(seen);
            }
            if begun.elapsed() >= within {
                return Err(OfiError::TimedOut { what, within });
            }
            rest(&mut vain, false);
        }
    }
}

/// Lets others run after some vain looks.
fn rest(vain: &mut u32, progress: bool) {
    *vain = if progress { 0 } else { *vain + 1 };
    if *vain >= SPINS {
        *vain = 0;
        thread::yield_now();
    }
}
