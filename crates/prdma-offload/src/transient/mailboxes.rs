//! Mailboxes: memory through which neighbours exchange messages without a previous agreement.
//!
//! For each channel a member has an offer (written by the receiver, read by the sender) and an
//! answer (the other way round), both in its own memory, so that it waits only for local words.
//! Their locations are exchanged once.

use super::edge::Offer;
use crate::{
    PrdmaError, Result, Side,
    buffer::{Memory, Width},
    init::{Channel, EdgeEnd, Name, all_succeed, contacts},
};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::{
    Fabric, Group, GroupMemory, LocalSpan, LocalWord, Rank, RegionKey, RemoteAddr, RemoteSpan, RemoteWord,
};

/// Set in a word that its writer will never write again. The other bits keep their last value,
/// because the reader may not have read them yet.
pub(super) const CLOSED: u64 = 1 << 63;

/// The size that a sender declares for a missing block.
pub(super) const NO_BLOCK: u64 = u64::MAX;

/// Bytes of a channel: number and body of an offer; the answer, and its detail.
const CHANNEL: u64 = 8 + 8 * Offer::WORDS as u64 + 16;

/// A member's record about a channel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Address {
    name: Name,
    /// 1 + label of the outgoing edge, 0 for none.
    sends: u64,
    /// 1 + label of the incoming edge, 0 for none.
    receives: u64,
    /// The region of the words.
    region: u64,
    /// The offset of the channel's words in that memory.
    start: u64,
}

/// One member's mailboxes of a neighbourhood.
pub(crate) struct Mailboxes {
    pub(super) outs: Vec<OutBox>,
    pub(super) ins: Vec<InBox>,
    /// The last exchange that was started, from 1.
    pub(super) iteration: u64,
    /// Whether an exchange was dropped half-way, which has been reported to neighbours.
    pub(super) closed: bool,
    /// Kept alive so that it stays registered.
    #[allow(dead_code)]
    words: Memory,
}

/// The box of an outgoing edge.
pub(super) struct OutBox {
    pub(super) slot: usize,
    pub(super) member: usize,
    pub(super) to: Rank,
    /// The number of the last offer that has arrived.
    pub(super) offered: LocalWord<u64>,
    pub(super) offer: LocalSpan<u64>,
    /// The word for the answer: twice the exchange's number, plus 1 if nothing was sent.
    pub(super) answer: RemoteWord<u64>,
    /// The word for the number of bytes that would have been sent in that case.
    pub(super) about: RemoteWord<u64>,
    /// The last answer of a finished exchange.
    pub(super) answered: u64,
}

/// The box of an incoming edge.
pub(super) struct InBox {
    pub(super) slot: usize,
    pub(super) member: usize,
    pub(super) from: Rank,
    pub(super) offered: RemoteWord<u64>,
    pub(super) offer: RemoteSpan<u64>,
    pub(super) answer: LocalWord<u64>,
    pub(super) about: LocalWord<u64>,
}

impl Mailboxes {
    /// Makes a member's mailboxes. Collective over the group.
    ///
    /// # Errors
    /// [`PrdmaError::Unmatched`]; [`PrdmaError::ElsewhereFailed`]; as [`Fabric::alloc`] and
    /// [`Group::barrier`].
    pub(super) async fn new(group: &mut Group, headers: &GroupMemory, channels: &[Channel]) -> Result<Mailboxes> {
        let fabric = group.fabric().clone();
        let words = Memory::new(&fabric, channels.len() * CHANNEL as usize, Width::Eight);
        let mine = words.as_ref().map_err(Clone::clone).map(|words| addresses(channels, words));
        let all: Vec<&Channel> = channels.iter().collect();
        let theirs = contacts(group, headers, &all, mine, |address| address.name, None).await;
        let made = words.and_then(|words| {
            let theirs = theirs?;
            let (mut outs, mut ins) = (Vec::new(), Vec::new());
            for (channel, address) in channels.iter().zip(&theirs) {
                let (out, inn) = boxes(&fabric, channel, address, &words)?;
                outs.extend(out);
                ins.extend(inn);
            }
            Ok(Mailboxes { outs, ins, iteration: 0, closed: false, words })
        });
        all_succeed(group, made).await
    }
}

fn addresses(channels: &[Channel], words: &Memory) -> Vec<Address> {
    let address = |channel: &Channel| Address {
        name: Name::of(channel),
        sends: EdgeEnd::to_word(channel.out),
        receives: EdgeEnd::to_word(channel.inn),
        region: words.region().key().to_bits(),
        start: channel.place as u64 * CHANNEL,
    };
    channels.iter().map(address).collect()
}

/// The boxes of one channel: of the outgoing edge, and of the incoming one.
type Both = (Option<OutBox>, Option<InBox>);

fn boxes(fabric: &Fabric, channel: &Channel, theirs: &Address, words: &Memory) -> Result<Both> {
    let Channel { member, rank, .. } = *channel;
    let unmatched = |side, slot| PrdmaError::Unmatched { side, slot, member };
    let answer = 8 + 8 * Offer::WORDS as u64;
    let here = channel.place as u64 * CHANNEL;
    let mine = words.region();
    let own = |offset: u64| mine.word::<u64>(fabric, (here + offset) as usize);
    let there = |offset: u64| RemoteAddr {
        rank,
        region: RegionKey::from_bits(theirs.region),
        offset: theirs.start.saturating_add(offset),
    };
    let out = match channel.out {
        None => None,
        Some(end) if theirs.receives != EdgeEnd::to_word(channel.out) => {
            return Err(unmatched(Side::Destination, end.slot));
        }
        Some(end) => Some(OutBox {
            slot: end.slot,
            member,
            to: rank,
            offered: own(0)?,
            offer: mine.span(fabric, (here + 8) as usize, Offer::WORDS)?,
            answer: fabric.remote_word(there(answer))?,
            about: fabric.remote_word(there(answer + 8))?,
            answered: 0,
        }),
    };
    let inn = match channel.inn {
        None => None,
        Some(end) if theirs.sends != EdgeEnd::to_word(channel.inn) => return Err(unmatched(Side::Source, end.slot)),
        Some(end) => Some(InBox {
            slot: end.slot,
            member,
            from: rank,
            offered: fabric.remote_word(there(0))?,
            offer: fabric.remote_span(there(8), Offer::WORDS)?,
            answer: own(answer)?,
            about: own(answer + 8)?,
        }),
    };
    Ok((out, inn))
}
