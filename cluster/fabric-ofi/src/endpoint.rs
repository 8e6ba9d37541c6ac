//! Endpoints, and operations on memory of peers.

use crate::{
    Atomics, Domain, Event, Region,
    error::{OfiError, Result},
    key::RemoteKey,
    name::Name,
    options::{EndpointOptions, GetInto, Limits, PutFrom},
    peer::Peer,
    raw::{self, Access, Bytes, Failed, Holds, LONGEST_ADDRESS, Memory, Remote, Sizes, Work},
};
use core::{cell::Cell, marker::PhantomData, ops::Range};
use std::{
    os::fd::BorrowedFd,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The longest text address, including its terminating zero.
const LONGEST_TEXT: usize = 64;
const _: () = assert!(LONGEST_TEXT <= LONGEST_ADDRESS);
/// Maximum number of endpoints to open until one has an unused name.
const NAMES: usize = 16;

/// A reliable datagram endpoint with its own completion queue and peers: one for each thread.
///
/// Posts return `true` if the operation was accepted, and `false`, without any effect, if there is
/// currently no room for it; they never block. [`Endpoint::progress`] reports the completion of an
/// operation by the caller's tag, even if the provider refused the operation immediately. A put
/// completes when its bytes are visible at the peer, or acknowledged by its NIC
/// ([`Limits::delivery`]), a get or an atomic when its result has arrived, a message when it has been
/// sent. Puts, gets and atomics are not ordered unless the
/// first completes before the second is posted; messages to a peer are ordered.
///
/// An operation with a wrong key changes nothing at the target. Whether it is reported depends on
/// the provider: as an error of the operation (`tcp;ofi_rxm`, `sockets`), or not at all (`shm`). An
/// operation that is never answered keeps its slot. This can happen to operations to a peer that
/// has terminated, to which there may also never be room again. Over `shm`, such an operation hides
/// the answers to all later ones until the endpoint is closed and another one is opened. Over
/// `shm`, a post to a peer that was killed may even never return, if the peer held its lock at that
/// time.
///
/// A closed endpoint, that is, a dropped one, receives no puts and no messages. Its operations in
/// flight are abandoned. The memory that its gets and atomics would have written stays mapped
/// forever, because over `shm` the peer may still write it.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) raw: raw::Endpoint,
    domain: Domain,
    pub(crate) name: Name,
    pub(crate) atomics: Atomics,
    limits: Limits,
    number: u64,
    /// The endpoint is `Send` and not `Sync`.
    one_thread: PhantomData<Cell<()>>,
}

impl Endpoint {
    /// Opens an endpoint in a domain.
    ///
    /// # Errors
    /// [`OfiError::Call`], [`OfiError::Memory`], [`OfiError::Random`].
    pub fn open(domain: &Domain, options: EndpointOptions) -> Result<Self> {
        let busy =
            |error: &OfiError| matches!(error, OfiError::Call { code, .. } if *code == fabric_ofi_sys::FI_EBUSY as i32);
        // Over `shm`, files left by a killed process with the same process ID keep a name in use;
        // the next endpoint has another name.
        let mut tries = NAMES;
        loop {
            tries -= 1;
            match Self::open_once(domain, options) {
                Err(error) if tries > 0 && busy(&error) => {}
                opened => return opened,
            }
        }
    }

    fn open_once(domain: &Domain, options: EndpointOptions) -> Result<Self> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let facts = domain.facts();
        let sizes = Sizes {
            depth: options.depth.min(facts.depth).max(1),
            receives: options.receives.min(facts.receives),
            message: options.message_bytes.min(facts.longest),
        };
        let new = |bytes: Option<usize>| {
            let bytes = bytes.unwrap_or(usize::MAX);
            Memory::new(bytes).map_err(|source| OfiError::Memory { bytes, source })
        };
        let notes = new(sizes.notes())?;
        let memory = domain.register(new(sizes.bytes())?, Access::Own)?;
        let failed = |failed| OfiError::call(failed, domain.provider());
        let raw =
            raw::Endpoint::open(domain.raw(), sizes, notes, memory, (options.wait && domain.wakes(), facts.delivery))
                .map_err(failed)?;
        let address = raw.name().map_err(failed)?;
        let Sizes { depth, receives, message } = sizes;
        Ok(Self {
            atomics: raw.atomics(),
            raw,
            domain: domain.clone(),
            name: Name { provider: domain.provider().to_owned(), form: facts.address_format, address },
            limits: Limits {
                delivery: facts.delivery,
                message,
                transfer: facts.longest,
                depth,
                receives,
                data: facts.data_bytes.min(8),
            },
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            one_thread: PhantomData,
        })
    }

    /// Returns its name, which peers [insert](Endpoint::insert).
    pub fn name(&self) -> Vec<u8> {
        self.name.to_bytes()
    }

    /// Adds a peer by its name. Nothing is sent: a missing peer is detected later.
    ///
    /// # Errors
    /// [`OfiError::Name`], [`OfiError::Call`].
    pub fn insert(&mut self, name: &[u8]) -> Result<Peer> {
        let theirs = Name::from_bytes(name)?;
        let address = self.name.accept(&theirs, LONGEST_TEXT)?;
        let index = self.raw.insert(address).map_err(|failed| self.failed(failed))?;
        Ok(Peer { endpoint: self.number, index })
    }

    /// Returns its atomics, each of which was queried separately.
    pub fn atomics(&self) -> Atomics {
        self.atomics
    }

    /// Returns its limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the domain that it was opened in.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Posts a message that consists of these slices, in order, which are copied before the call
    /// returns. It completes when it has been sent, not when it has arrived.
    ///
    /// # Errors
    /// [`OfiError::TooLong`], [`OfiError::Foreign`]; [`OfiError::Memory`], [`OfiError::Random`],
    /// [`OfiError::Call`] if a new buffer is needed and can't be created.
    pub fn send(&mut self, peer: Peer, bytes: &[&[u8]], tag: u64) -> Result<bool> {
        let (bytes, remote) = (Bytes::Copied(bytes), self.remote(peer, 0, 0)?);
        let len = bytes.len();
        within(len, self.limits.message)?;
        let Some(holds) = self.room(len)? else { return Ok(false) };
        Ok(self.raw.post(Work::Send(bytes), holds, remote, tag))
    }

    /// Posts a put to `offset` in a peer's region. If there is `data`, the peer receives it after
    /// the bytes have arrived. The data must fit in [`Limits::data`] bytes.
    ///
    /// # Errors
    /// [`OfiError::OutOfBounds`], [`OfiError::TooLong`], [`OfiError::Data`], [`OfiError::Foreign`];
    /// [`OfiError::Memory`], [`OfiError::Random`], [`OfiError::Call`] if a new buffer is needed and
    /// can't be created.
    pub fn put(
        &mut self,
        peer: Peer,
        from: PutFrom<'_>,
        to: RemoteKey,
        offset: u64,
        data: Option<u64>,
        tag: u64,
    ) -> Result<bool> {
        if let Some(data) = data.filter(|data| !fits(*data, self.limits.data)) {
            return Err(OfiError::Data { data, limit: self.limits.data });
        }
        match from {
            PutFrom::Bytes(bytes) => {
                let remote = self.remote(peer, to.key, to.address(offset, bytes.len())?)?;
                within(bytes.len(), self.limits.transfer)?;
                let Some(holds) = self.room(bytes.len())? else { return Ok(false) };
                Ok(self.raw.post(Work::Put(Bytes::Copied(&[bytes]), data), holds, remote, tag))
            }
            PutFrom::Region(region, range) => {
                let span = self.span(region, range)?;
                let len = span.len();
                let remote = self.remote(peer, to.key, to.address(offset, len)?)?;
                Ok(self.raw.post(Work::Put(Bytes::Held(len), data), Holds::Span(span), remote, tag))
            }
        }
    }

    /// Posts a get of the bytes at `offset` in a peer's region.
    ///
    /// # Errors
    /// As for [`Endpoint::put`].
    pub fn get(&mut self, peer: Peer, into: GetInto<'_>, from: RemoteKey, offset: u64, tag: u64) -> Result<bool> {
        let (len, span) = match into {
            GetInto::Own(len) => (len, None),
            GetInto::Region(region, range) => {
                let span = self.span(region, range)?;
                (span.len(), Some(span))
            }
        };
        let remote = self.remote(peer, from.key, from.address(offset, len)?)?;
        within(len, self.limits.transfer)?;
        let holds = match span {
            Some(span) => Holds::Span(span),
            None => match self.room(len)? {
                Some(holds) => holds,
                None => return Ok(false),
            },
        };
        Ok(self.raw.post(Work::Get(len), holds, remote, tag))
    }

    /// Lets the provider make progress, including on peers' operations, and reports completions and
    /// arrivals to `sink`, a limited number at a time. Returns the number of events.
    ///
    /// # Errors
    /// [`OfiError::Call`]: the endpoint is no longer usable.
    pub fn progress(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> Result<usize> {
        self.raw.progress(sink).map_err(|failed| self.failed(failed))
    }

    /// Returns the descriptor on which `poll(2)` sleeps until there may be an event; `None` if it
    /// was not requested, or the provider has none. Use it only after [`Endpoint::may_sleep`].
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.raw.descriptor()
    }

    /// Returns whether the next event wakes a thread that now sleeps on the descriptor. Returns
    /// `false` if there is no descriptor, or if [`Endpoint::progress`] has events to report.
    ///
    /// # Errors
    /// [`OfiError::Call`].
    pub fn may_sleep(&mut self) -> Result<bool> {
        if self.descriptor().is_none() {
            return Ok(false);
        }
        self.raw.may_sleep().map_err(|failed| self.failed(failed))
    }

    fn failed(&self, failed: Failed) -> OfiError {
        OfiError::call(failed, &self.name.provider)
    }

    pub(crate) fn remote(&self, peer: Peer, key: u64, address: u64) -> Result<Remote> {
        if peer.endpoint == self.number { Ok(Remote { peer, address, key }) } else { Err(FOREIGN_PEER) }
    }

    fn span(&self, region: &Region, bytes: Range<usize>) -> Result<raw::Span> {
        // The length of a reversed range exceeds every limit.
        let len = if bytes.start <= bytes.end { bytes.end - bytes.start } else { usize::MAX };
        let span = region.span(bytes.start, len)?;
        if !Arc::ptr_eq(span.registration().domain(), self.raw.domain()) {
            return Err(OfiError::Foreign { what: "region" });
        }
        within(len, self.limits.transfer).map(|()| span)
    }

    fn room(&mut self, len: usize) -> Result<Option<Holds>> {
        let domain = &self.domain;
        self.raw.room(len, |bytes| {
            let memory = Memory::new(bytes).map_err(|source| OfiError::Memory { bytes, source })?;
            domain.register(memory, Access::Own)
        })
    }
}

const FOREIGN_PEER: OfiError = OfiError::Foreign { what: "peer" };

/// Returns whether `data` fits in this number of bytes; none fits in 0 bytes.
fn fits(data: u64, bytes: usize) -> bool {
    bytes >= 8 || bytes > 0 && data >> (8 * bytes) == 0
}

fn within(len: usize, limit: usize) -> Result<()> {
    if len <= limit { Ok(()) } else { Err(OfiError::TooLong { len, limit }) }
}
