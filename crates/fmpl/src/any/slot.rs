//! The state of the slot for receives of any index, at both of its ends.

use super::offers::{Awaited, Offers};
use crate::{
    Result,
    area::{Ends, Record, Slot, SlotFlag},
    point::posted,
    state::{ChannelId, State},
};
use rdma_fabric::{Fabric, LocalSpan};
use std::collections::VecDeque;

/// The slots of a peer and of this member.
#[derive(Debug, Default)]
pub(crate) struct AnySlot {
    /// The number of messages offered to the peer.
    offers: u64,
    /// The number of messages that have used headers of the peer.
    used: u64,
    /// The number of the peer's last header that was used or void.
    dead: Option<u16>,
    /// The number of receives made so far.
    made: u64,
    queue: VecDeque<Entry>,
    /// The number of messages that have used headers of this member.
    received: u64,
    /// The number of headers posted so far.
    headers: u64,
    /// The header of the first receive of the queue, unless it was used or is void.
    live: Option<Live>,
    /// Whether a header that is not live may be in flight.
    unseen: bool,
}

/// A receive of any index.
#[derive(Debug)]
struct Entry {
    ticket: u64,
    into: LocalSpan<u8>,
    /// Whether its future was dropped after its header was posted.
    abandoned: bool,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    header: PostedHeader,
    /// The number of offers seen when it was posted.
    offers: u64,
    /// Whether an offer that was taken states that the header was used before.
    is_used: bool,
    /// How often it was put: again if a future was dropped that put it.
    puts: u32,
    /// Whether the last put has been sent.
    is_sent: bool,
}

/// A header to be put into the slot of a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostedHeader {
    pub(super) n: u64,
    pub(super) record: Record,
    /// Whether other headers must be visible first.
    pub(super) after_flush: bool,
}

/// A header of the peer that a message uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotHeader {
    pub(crate) record: Record,
    /// The number of its flag.
    pub(crate) n: u64,
}

/// The next step of a receive of any index.
#[derive(Debug)]
pub(super) enum Step {
    /// A message has arrived in its buffer.
    Arrived(SlotFlag),
    /// It takes the next message of this channel, which is offered.
    Take(ChannelId),
    /// It reads the queue of this channel.
    Read(ChannelId),
    /// It posts its header.
    Post,
    /// It waits for one of these records, or until another receive completes.
    Wait(Ends, Vec<Awaited>),
}

impl AnySlot {
    // ----- at the sender -------------------------------------------------------------------------

    /// Returns the number of the peer's headers that messages have used.
    pub(crate) fn used(&self) -> u32 {
        self.used as u32
    }

    /// Counts a message that was offered.
    pub(crate) fn count_offer(&mut self) {
        self.offers += 1;
    }

    /// Uses this header of the peer for a message, if it is valid.
    pub(crate) fn take(&mut self, (number, record): (u16, Record)) -> Option<SlotHeader> {
        if self.dead == Some(number) {
            return None;
        }
        self.dead = Some(number);
        if record.before != self.offers as u32 {
            return None;
        }
        self.used += 1;
        Some(SlotHeader { record, n: self.used - 1 })
    }

    // ----- at the receiver -----------------------------------------------------------------------

    /// Adds a receive; returns its ticket.
    pub(super) fn add(&mut self, into: LocalSpan<u8>) -> u64 {
        self.made += 1;
        self.queue.push_back(Entry { ticket: self.made, into, abandoned: false });
        self.made
    }

    /// Removes a receive, unless a message may be on its way into its buffer.
    pub(super) fn drop_receive(&mut self, ticket: u64) {
        match self.queue.front_mut() {
            Some(front) if front.ticket == ticket && self.live.is_some() => front.abandoned = true,
            _ => self.queue.retain(|entry| entry.ticket != ticket),
        }
    }

    /// Returns whether a header is in the peer's slot that a message may use.
    #[inline(always)]
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Records that a header has been sent.
    pub(super) fn sent(&mut self, n: u64) {
        if let Some(live) = self.live.as_mut().filter(|live| live.header.n == n) {
            live.is_sent = true;
        }
    }

    /// Returns whether an offer was made after the peer has used the header that is live: no other
    /// header can have been used since the last flag.
    pub(super) fn is_used_before(&self, offer: u32) -> bool {
        offer == (self.received as u32).wrapping_add(1)
    }
}

impl State {
    /// Records what the offers of a channel state, one of which is about to be taken.
    pub(crate) fn note_offers(&mut self, fabric: &Fabric, id: ChannelId) -> Result<()> {
        let peer = &self.peers[id.peer];
        if id.channel < self.indices && peer.slot.is_live() {
            let is_used = Offers::of(peer, fabric, [id.channel])?.is_header_used;
            if let Some(live) = &mut self.peers[id.peer].slot.live {
                live.is_used |= is_used;
            }
        }
        Ok(())
    }

    /// Returns the header of the first receive of a peer's queue, if it is to be put now.
    pub(super) fn next_header(&mut self, fabric: &Fabric, at: usize) -> Result<Option<PostedHeader>> {
        let in_order = fabric.caps().puts_in_order;
        let peer = &mut self.peers[at];
        if let Some(live) = &mut peer.slot.live {
            if live.is_sent {
                return Ok(None);
            }
            live.puts += 1;
            return Ok(Some(live.header));
        }
        let offers = Offers::of(peer, fabric, 0..self.indices)?;
        let slot = &mut peer.slot;
        let Some(front) = slot.queue.front().filter(|_| !offers.block_header()) else { return Ok(None) };
        let record = Record { before: offers.seen as u32, ..posted(&front.into) };
        let mut named = peer.channels.first(self.indices);
        let is_named_unseen = !in_order && named.any(|channel| channel.receiving && channel.unseen);
        let after_flush = core::mem::take(&mut slot.unseen) || is_named_unseen;
        let header = PostedHeader { n: slot.headers, record, after_flush };
        slot.headers += 1;
        slot.live = Some(Live { header, offers: offers.seen, is_used: false, puts: 1, is_sent: false });
        Ok(Some(header))
    }

    /// Returns the next step of a receive of any index, and performs as much of it as needs no
    /// operation.
    pub(super) fn next_step(&mut self, fabric: &Fabric, at: usize, ticket: u64) -> Result<Step> {
        loop {
            let peer = &mut self.peers[at];
            let ends = peer.ends.clone();
            let (first, abandoned) = match peer.slot.queue.front() {
                Some(front) if front.ticket == ticket || front.abandoned => (front.ticket, front.abandoned),
                _ => return Ok(Step::Wait(ends, Vec::new())),
            };
            let n = peer.slot.received;
            if let Some(live) = peer.slot.live
                && let Some(flag) = Slot::new(fabric, &ends).flag(n)?
            {
                let slot = &mut peer.slot;
                (slot.received, slot.live, slot.unseen) = (n + 1, None, live.puts > 1);
                slot.queue.pop_front();
                self.changed();
                match first == ticket {
                    true => return Ok(Step::Arrived(flag)),
                    false => continue,
                }
            }
            let mut offers = Offers::of(peer, fabric, 0..self.indices)?;
            let slot = &mut peer.slot;
            if let Some(live) = slot.live {
                if offers.seen == live.offers || offers.is_header_used || live.is_used {
                    offers.next.push(Awaited::Slot { n });
                    return Ok(if live.is_sent { Step::Wait(ends, offers.next) } else { Step::Post });
                }
                (slot.live, slot.unseen) = (None, true);
            }
            if abandoned {
                slot.queue.pop_front();
                continue;
            }
            if let Some(channel) = offers.free {
                slot.queue.pop_front();
                peer.channels[channel].receiving = true;
                self.changed();
                return Ok(Step::Take(ChannelId { peer: at, channel }));
            }
            if let Some(channel) = offers.unread {
                return Ok(Step::Read(ChannelId { peer: at, channel }));
            }
            return Ok(if offers.block_header() { Step::Wait(ends, offers.next) } else { Step::Post });
        }
    }
}
