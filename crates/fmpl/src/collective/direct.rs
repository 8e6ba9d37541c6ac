//! Neighbours in a tree whose memory can be accessed directly, and the messages that are exchanged
//! with them immediately.
//!
//! A collective tries this first, as a [`FastPath`](rdma_fabric::fast_path::FastPath): without a
//! task or an allocation, polling for records for a limited time. It records each completed step,
//! so that the path for longer waits continues from there.

use super::{
    Part,
    edge::{Edge, Way},
};
use crate::{
    Communicator, Result,
    area::{Channel, Kind, Record},
    point::{HEADERS, posted, spin_limit},
    state::Peer,
};
use rdma_fabric::{Caps, LocalSpan, join::now};

/// The maximum number of times that a member polls for a record before it prepares for a longer
/// wait: about the time in which ten kilobytes are copied.
const SPIN_LIMIT: u32 = 2000;

/// The neighbours in the tree of a root, by their indices among the known peers; known once a
/// collective has used this tree.
#[derive(Clone, Debug)]
pub(crate) struct DirectNeighbour {
    pub(crate) parent: Option<usize>,
    pub(crate) children: Box<[usize]>,
}

/// The neighbours of all roots so far, and the current poll limit.
#[derive(Debug, Default)]
pub(crate) struct DirectNeighbours {
    /// By root.
    roots: Vec<Option<DirectNeighbour>>,
    spin_limit: SpinLimit,
}

/// If polls fail because ranks share a processor, a shorter limit yields the processor sooner;
/// occasionally this member polls up to the full limit again.
#[derive(Debug, Default)]
struct SpinLimit {
    /// 1 in an oversubscribed job.
    full: u32,
    spins: u32,
    waits: u32,
}

impl DirectNeighbours {
    pub(crate) fn new(caps: &Caps) -> Self {
        let full = spin_limit(caps, SPIN_LIMIT);
        DirectNeighbours { roots: Vec::new(), spin_limit: SpinLimit { full, spins: full, waits: 0 } }
    }

    /// Returns the neighbours in the tree of a root, and the limit for polling their records.
    #[inline(always)]
    pub(crate) fn of(&mut self, root: usize) -> Option<(&DirectNeighbour, Spins<'_>)> {
        Some((self.roots.get(root)?.as_ref()?, Spins(&mut self.spin_limit)))
    }
}

/// The limit of this member's polls for a record.
pub(crate) struct Spins<'a>(&'a mut SpinLimit);

/// One in this number of waits polls up to the full limit.
const PATIENT: u32 = 16;

impl Spins<'_> {
    /// Polls until the result is available or the limit is reached.
    #[inline(always)]
    pub(crate) fn find<T>(&mut self, look: impl Fn() -> Option<T>) -> Option<T> {
        if let Some(found) = look() {
            return Some(found);
        }
        let spin_limit = &mut *self.0;
        spin_limit.waits = spin_limit.waits.wrapping_add(1);
        let spins = if spin_limit.waits.is_multiple_of(PATIENT) { spin_limit.full } else { spin_limit.spins };
        let found = (1..spins).find_map(|_| look());
        spin_limit.spins = if found.is_some() { spin_limit.full } else { spin_limit.spins / 2 };
        found
    }
}

impl Part<'_> {
    /// Stores the neighbours in the tree of `root`, if their records can be loaded directly.
    pub(crate) fn keep_near(&self, root: usize) -> Result<()> {
        let edges = || self.parent.iter().chain(&self.children);
        if !edges().all(Edge::is_direct) {
            return Ok(());
        }
        self.comm.with(|state| {
            let roots = &mut state.collectives.direct.roots;
            if roots.len() <= root {
                roots.resize(root + 1, None);
            }
            let (parent, children) = (self.parent.as_ref(), &self.children);
            roots[root].get_or_insert_with(|| DirectNeighbour {
                parent: parent.map(|parent| parent.peer),
                children: children.iter().map(|child| child.peer).collect(),
            });
        })
    }
}

/// A neighbour's channel, one way.
pub(crate) struct Link<'a> {
    comm: &'a Communicator,
    peer: &'a mut Peer,
    at: usize,
}

impl<'a> Link<'a> {
    #[inline(always)]
    pub(crate) fn new(comm: &'a Communicator, peers: &'a mut [Peer], place: usize, way: Way) -> Self {
        Link { comm, peer: &mut peers[place], at: comm.layout.collective_channel(way as usize) }
    }

    #[inline(always)]
    fn channel(&self) -> Channel<'_> {
        Channel::new(&self.comm.fabric, &self.peer.ends, self.at)
    }

    /// Signals without a body.
    #[inline(always)]
    pub(crate) fn signal(&mut self) -> Option<()> {
        let n = self.peer.channels[self.at].sent;
        let put = self.channel().put_flag_now(n, Record::first_word(Kind::Arrived, 0, n));
        self.peer.channels[self.at].sent += u64::from(put);
        put.then_some(())
    }

    /// Looks for a signal.
    #[inline(always)]
    pub(crate) fn signalled(&mut self, spins: &mut Spins<'_>) -> Option<()> {
        // A header is due once in a while.
        let is_due = self.peer.channels[self.at].received.is_multiple_of(HEADERS);
        if is_due { None } else { self.arrived(spins) }
    }

    /// Posts the receive of a body.
    #[inline(always)]
    pub(crate) fn post(&self, into: &LocalSpan<u8>) -> Option<()> {
        self.channel().put_header_now(self.peer.channels[self.at].received, posted(into)).then_some(())
    }

    /// Polls for a body whose receive was posted, or for a signal.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, spins: &mut Spins<'_>) -> Option<()> {
        let (n, channel) = (self.peer.channels[self.at].received, self.channel());
        spins.find(|| channel.arrived_now(n))?;
        self.peer.channels[self.at].received += 1;
        Some(())
    }

    /// Puts a body, if its receive is posted, has its length, and is where the last one was.
    #[inline(always)]
    pub(crate) fn send(&mut self, body: &LocalSpan<u8>, spins: &mut Spins<'_>) -> Option<()> {
        let (known, channel) = (&self.peer.channels[self.at], self.channel());
        let header = spins.find(|| channel.header_now(known.sent))?;
        let target = known.target_at(header.at(channel.peer()), body.len())?;
        if header.kind != Kind::Posted || header.bytes != body.len() {
            return None;
        }
        let fabric = &self.comm.fabric;
        // If the body or the flag can't be put immediately, the body is put again.
        now(fabric.put(target, body.clone()))?.ok()?;
        if !self.comm.puts_in_order {
            fabric.direct().barrier();
        }
        let word = Record::first_word(Kind::Arrived, body.len(), known.sent);
        if !channel.put_flag_now(known.sent, word) {
            return None;
        }
        self.peer.channels[self.at].sent += 1;
        Some(())
    }
}
