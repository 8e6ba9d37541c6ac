//! The endpoint of this rank and what it knows of its peers': opened anew after each loss.

use super::{heap, message::Head, wait::random};
use crate::{Domain, Endpoint, EndpointOptions, Peer, Region, RemoteKey, Result};
use tofu2_sim::shm::part::Heap;

/// The longest message, head included.
pub(super) const MESSAGE: usize = 4096;
/// The most bytes that go with a message.
pub(super) const PAYLOAD: usize = MESSAGE - Head::BYTES;

/// What a rank tells all others of its endpoint.
#[derive(Debug)]
pub(super) struct Contact {
    whom: Whom,
    key: RemoteKey,
    door: u64,
}

/// A rank's endpoint.
#[derive(Debug)]
enum Whom {
    /// Its name, until it is needed.
    Named(Box<[u8]>),
    Peer(Peer),
}

impl Contact {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (door, rest) = bytes.split_first_chunk()?;
        let (key, name) = rest.split_at_checked(RemoteKey::BYTES)?;
        let (whom, key) = (Whom::Named(name.into()), RemoteKey::from_bytes(key).ok()?);
        Some(Contact { whom, key, door: u64::from_le_bytes(*door) })
    }
}

/// An endpoint with this rank's heap registered.
///
/// Dropped as a whole: what peers send to it later lands nowhere.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) heap: Region,
    pub(super) door: u64,
    /// The most bytes that are put or got at a time: a multiple of 8, so that no word is in two parts.
    pub(super) longest: usize,
    /// Of each rank; `None` if it is of this node, or lost, but this rank itself if its atomics go
    /// through the network too. Nothing until they are known.
    contacts: Option<Vec<Option<Contact>>>,
}

impl Link {
    /// Opens an endpoint, and registers the heap under a key that nobody knows yet.
    pub(super) fn open(domain: &Domain, heap: &Heap) -> Result<Self> {
        let heap = heap::register(domain, heap)?;
        let options = EndpointOptions { depth: 1024, receives: 256, message_bytes: MESSAGE, wait: true };
        let endpoint = Endpoint::open(domain, options)?;
        let door = random()?;
        let longest = (endpoint.limits().transfer & !7).max(8);
        Ok(Link { endpoint, heap, door, longest, contacts: None })
    }

    /// Returns what to tell the others: bytes of a [`Contact`].
    pub(super) fn contact(&self) -> Vec<u8> {
        [&self.door.to_le_bytes()[..], &self.heap.key().to_bytes(), &self.endpoint.name()].concat()
    }

    /// Learns of the others.
    pub(super) fn meet(&mut self, contacts: Vec<Option<Contact>>) {
        self.contacts = Some(contacts);
    }

    /// Returns whether it knows the others.
    pub(super) fn has_met(&self) -> bool {
        self.contacts.is_some()
    }

    /// Returns a rank's peer, the key of its heap, and its door; `None` if it has none.
    pub(super) fn reach(&mut self, rank: u32) -> Result<Option<(Peer, RemoteKey, u64)>> {
        let Some(Some(contact)) = self.contacts.as_mut().and_then(|all| all.get_mut(rank as usize)) else {
            return Ok(None);
        };
        let peer = match &contact.whom {
            Whom::Peer(peer) => *peer,
            Whom::Named(name) => {
                let peer = self.endpoint.insert(name)?;
                contact.whom = Whom::Peer(peer);
                peer
            }
        };
        Ok(Some((peer, contact.key, contact.door)))
    }
}
