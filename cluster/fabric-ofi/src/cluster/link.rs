//! The endpoint of this rank, and the contact data of its peers: reopened after each loss.

use super::{heap, message::Head, wait::random};
use crate::{Domain, Endpoint, EndpointOptions, Peer, Region, RemoteKey, Result};
use tofu2_shm::part::Heap;

/// The longest message in bytes, including its head.
pub(super) const MESSAGE: usize = 4096;
/// Maximum number of bytes after the head of a message.
pub(super) const PAYLOAD: usize = MESSAGE - Head::BYTES;

/// The contact data of a rank's endpoint, which all other ranks receive.
#[derive(Debug)]
pub(super) struct Contact {
    whom: Whom,
    key: RemoteKey,
    door: u64,
}

/// A rank's endpoint.
#[derive(Debug)]
enum Whom {
    /// Its name, until it is first used.
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
/// It is dropped as a whole: anything that peers send to it later has no effect.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) heap: Region,
    pub(super) door: u64,
    /// Maximum number of bytes per put or get: a multiple of 8, so that no word is split.
    pub(super) longest: usize,
    /// The contact data of each rank; `None` if the rank is on this node or lost. This rank itself
    /// has contact data if its atomics go through the network. Unset until [`Link::meet`].
    contacts: Option<Vec<Option<Contact>>>,
}

impl Link {
    /// Opens an endpoint, and registers the heap under a key that no other rank knows yet.
    pub(super) fn open(domain: &Domain, heap: &Heap) -> Result<Self> {
        let heap = heap::register(domain, heap)?;
        let options = EndpointOptions { depth: 1024, receives: 256, message_bytes: MESSAGE, wait: true };
        let endpoint = Endpoint::open(domain, options)?;
        let door = random()?;
        let longest = (endpoint.limits().transfer & !7).max(8);
        Ok(Link { endpoint, heap, door, longest, contacts: None })
    }

    /// Returns the contact data for the other ranks: bytes of a [`Contact`].
    pub(super) fn contact(&self) -> Vec<u8> {
        [&self.door.to_le_bytes()[..], &self.heap.key().to_bytes(), &self.endpoint.name()].concat()
    }

    /// Sets the contact data of the other ranks.
    pub(super) fn connect(&mut self, contacts: Vec<Option<Contact>>) {
        self.contacts = Some(contacts);
    }

    /// Returns whether the contact data of the other ranks is known.
    pub(super) fn is_connected(&self) -> bool {
        self.contacts.is_some()
    }

    /// Returns a rank's peer, the key of its heap, and its door; `None` if there is no contact
    /// data.
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
