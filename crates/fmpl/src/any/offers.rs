//! The offers of one peer that its receiver sees.

use crate::{
    Result,
    area::{Channel, Ends, Slot},
    state::Peer,
};
use rdma_fabric::Fabric;

/// The offers that were taken out of a channel.
#[derive(Debug, Default)]
pub(crate) struct TakenOffers {
    count: u64,
    /// The number of the last one's message.
    last: Option<u64>,
}

impl TakenOffers {
    pub(crate) fn add(&mut self, n: u64) {
        (self.count, self.last) = (self.count + 1, Some(n));
    }
}

/// The offers of a peer in some channels.
#[derive(Debug, Default)]
pub(super) struct Offers {
    /// The number of offers seen so far, including those that were taken.
    pub(super) seen: u64,
    /// Whether one that is not taken states that the header in the slot was used before it.
    pub(super) is_header_used: bool,
    /// The lowest channel whose next message is offered and has no receive of its own.
    pub(super) free: Option<usize>,
    /// A channel whose queue has to be read.
    pub(super) unread: Option<usize>,
    /// Whether a message waits behind another one of its index.
    is_any_behind: bool,
    /// What changes if there is another offer.
    pub(super) next: Vec<Awaited>,
}

/// A record of the peer for which a receive of any index waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// The flag of message `n`.
    Flag { channel: usize, n: u64 },
    /// More queued messages than `known`.
    Queued { channel: usize, known: u64 },
    /// A flag of the slot.
    Slot { n: u64 },
}

impl Awaited {
    pub(super) async fn arrived(self, fabric: &Fabric, ends: &Ends) -> Result<()> {
        match self {
            Awaited::Flag { channel, n } => Channel::new(fabric, ends, channel).until_flag(n).await.map(drop),
            Awaited::Queued { channel, known } => Channel::new(fabric, ends, channel).until_queued(known).await,
            Awaited::Slot { n } => Slot::new(fabric, ends).until_flag(n).await,
        }
    }
}

impl Offers {
    pub(super) fn of(peer: &Peer, fabric: &Fabric, channels: impl IntoIterator<Item = usize>) -> Result<Self> {
        let mut offers = Offers::default();
        for channel in channels {
            offers.add(peer, fabric, channel)?;
        }
        Ok(offers)
    }

    /// Returns whether no header may be posted: the message that used it could overtake an offered one
    /// of its index, or an offered message is to be received first.
    pub(super) fn block_header(&self) -> bool {
        self.free.is_some() || self.unread.is_some() || self.is_any_behind
    }

    fn add(&mut self, peer: &Peer, fabric: &Fabric, channel: usize) -> Result<()> {
        let (known, end) = (&peer.channels[channel], Channel::new(fabric, &peer.ends, channel));
        let next = known.received;
        let (mut waiting, mut is_next) = (0, known.reading.record(next).is_some());
        for n in [next, next + 1].into_iter().filter(|n| known.offers.last != Some(*n)) {
            match end.flag(n)? {
                Some(flag) if flag.kind.is_offer() => {
                    (waiting, is_next) = (waiting + 1, is_next || n == next);
                    self.is_header_used |= peer.slot.is_used_before(flag.before);
                }
                Some(_) => {}
                None => self.next.push(Awaited::Flag { channel, n }),
            }
        }
        let (queued, taken) = (end.queued()?, known.reading.taken());
        let in_queue = queued.after(taken);
        if in_queue > 0 {
            // The last message of the queue states at least what the others do.
            self.is_header_used |= peer.slot.is_used_before(queued.before());
            if known.reading.known().is_some() {
                self.unread = self.unread.or(Some(channel));
            }
        }
        self.next.push(Awaited::Queued { channel, known: taken + in_queue });
        waiting += in_queue;
        self.seen += known.offers.count + waiting;
        let is_reserved = known.receiving || known.abandoned;
        if is_next && !is_reserved {
            self.free = self.free.or(Some(channel));
        }
        self.is_any_behind |= waiting > u64::from(is_next);
        Ok(())
    }
}
