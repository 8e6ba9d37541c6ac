//! The endpoint of this rank, and its peers: reopened after each loss.

use super::{keys::RankKeys, message::Head, registered::RegisteredHeap, wait::random};
use crate::{Domain, Endpoint, EndpointOptions, Peer, Result};
use std::sync::Arc;

/// The longest message in bytes, including its head.
pub(super) const MESSAGE: usize = 4096;
/// Maximum number of bytes after the head of a message.
pub(super) const PAYLOAD: usize = MESSAGE - Head::BYTES;

/// The contact data of a rank's endpoint, which all other ranks receive.
#[derive(Debug)]
pub(super) struct Contact {
    name: Box<[u8]>,
    pub(super) keys: RankKeys,
}

/// A rank's endpoint.
#[derive(Debug)]
enum Whom {
    /// Its name, until it is first used.
    Named(Box<[u8]>),
    Peer(Peer),
}

impl Contact {
    fn to_bytes(&self) -> Vec<u8> {
        let keys = self.keys.to_bytes();
        [&(keys.len() as u64).to_le_bytes()[..], &keys, &self.name].concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (keys, name) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        Some(Contact { name: name.into(), keys: RankKeys::from_bytes(keys)? })
    }
}

/// An endpoint.
///
/// It is dropped as a whole: anything that peers send to it later has no effect.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) heap: Arc<RegisteredHeap>,
    pub(super) door: u64,
    /// Maximum number of bytes per put or get: a multiple of 8, so that no word is split.
    pub(super) longest: usize,
    /// The endpoint of each rank; `None` if the rank is on this node or lost. This rank itself has
    /// one if its atomics go through the network. Unset until [`Link::connect`].
    peers: Option<Vec<Option<Whom>>>,
}

impl Link {
    /// Opens an endpoint.
    pub(super) fn open(domain: &Domain, heap: &Arc<RegisteredHeap>) -> Result<Self> {
        let options = EndpointOptions { depth: 1024, receives: 256, message_bytes: MESSAGE, wait: true };
        let endpoint = Endpoint::open(domain, options)?;
        let door = random()?;
        let longest = (endpoint.limits().transfer & !7).max(8);
        Ok(Link { endpoint, heap: heap.clone(), door, longest, peers: None })
    }

    /// Returns the contact data for the other ranks: bytes of a [`Contact`].
    pub(super) fn contact(&self) -> Vec<u8> {
        let keys = self.heap.keys(self.door, 0..self.heap.len());
        Contact { name: self.endpoint.name().into(), keys }.to_bytes()
    }

    /// Sets the endpoints of the other ranks.
    pub(super) fn connect(&mut self, contacts: impl IntoIterator<Item = Option<Contact>>) {
        let whom = |contact: Option<Contact>| contact.map(|contact| Whom::Named(contact.name));
        self.peers = Some(contacts.into_iter().map(whom).collect());
    }

    /// Returns whether the endpoints of the other ranks are known.
    pub(super) fn is_connected(&self) -> bool {
        self.peers.is_some()
    }

    /// Returns a rank's peer; `None` if its endpoint is not known.
    pub(super) fn reach(&mut self, rank: u32) -> Result<Option<Peer>> {
        let Some(Some(whom)) = self.peers.as_mut().and_then(|all| all.get_mut(rank as usize)) else {
            return Ok(None);
        };
        if let Whom::Named(name) = whom {
            *whom = Whom::Peer(self.endpoint.insert(name)?);
        }
        Ok(if let Whom::Peer(peer) = whom { Some(*peer) } else { None })
    }
}
