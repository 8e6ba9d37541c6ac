//! One index between this member and a peer, in both directions.

mod put;
mod queued;
mod received;
mod taken;

pub(crate) use put::PostedOffer;
pub(crate) use queued::Queued;
pub(crate) use received::OfferNow;
pub(crate) use taken::Taken;

use super::{Layout, layout::OFFERS, staged::Staged};
use rdma_fabric::{Deps, Fabric, LocalSpan, Rank, RemoteSpan};
use std::sync::Arc;

/// The two areas through which two members exchange messages.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// The peer's area at this member; only the peer writes to it.
    pub(crate) here: LocalSpan<u64>,
    /// This member's area at the peer; only this member writes to it.
    pub(crate) there: RemoteSpan<u64>,
    /// The descriptors for records that cannot be put directly.
    pub(in crate::area) staged: Arc<Staged>,
}

impl Ends {
    pub(crate) fn new(here: LocalSpan<u64>, there: RemoteSpan<u64>) -> Self {
        Ends { here, there, staged: Arc::default() }
    }
}

/// A channel in two areas. Methods about messages take the number of a message, counted from 0 for
/// this channel and direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel<'a> {
    pub(in crate::area) fabric: &'a Fabric,
    pub(in crate::area) ends: &'a Ends,
    /// The offset of the channel in both areas.
    pub(in crate::area) at: usize,
    /// The dependencies of its waits.
    deps: Deps<'a>,
}

/// The offsets of a record's words in a channel.
#[derive(Clone, Copy, Debug)]
pub(in crate::area) struct Words {
    pub(in crate::area) first: usize,
    rest: usize,
}

const HEADER: Words = Words { first: 0, rest: 8 };
const FLAGS: usize = 32;
const TAKEN: usize = 48;
/// The offsets of the number of messages in the peer's queue so far ([`Queued`]), and of the address at which
/// the queue begins in the peer's memory.
const QUEUED: usize = 56;
const QUEUE: usize = 112;
const OFFER: usize = 64;

/// The first word of a flag shares a cache line with the header; only offers have further words.
pub(in crate::area) fn flag(n: u64) -> Words {
    let place = (n % OFFERS) as usize;
    Words { first: FLAGS + 8 * place, rest: OFFER + 24 * place }
}

impl<'a> Channel<'a> {
    #[inline(always)]
    pub(crate) fn new(fabric: &'a Fabric, ends: &'a Ends, channel: usize) -> Self {
        Channel { fabric, ends, at: Layout::channel(channel), deps: Deps::One(ends.there.rank()) }
    }

    /// Returns the head of two areas, before their channels.
    pub(in crate::area) fn at_head(fabric: &'a Fabric, ends: &'a Ends) -> Self {
        Channel { fabric, ends, at: 0, deps: Deps::One(ends.there.rank()) }
    }

    /// Returns the channel for a step of a collective, in which the peer waits for others of these
    /// ranks; `None` means all ranks.
    pub(crate) fn within(self, group: Option<&'a [Rank]>) -> Self {
        Channel { deps: Deps::Step { writer: self.peer(), group }, ..self }
    }

    /// Returns the offset of a channel's first flag in an area.
    pub(crate) fn first_flag(channel: usize) -> usize {
        Layout::channel(channel) + FLAGS
    }

    pub(crate) fn peer(&self) -> Rank {
        self.ends.there.rank()
    }
}
