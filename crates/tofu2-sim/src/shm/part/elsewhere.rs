//! What ranks of other nodes are told: of a symmetric allocation, the card that a rank holds up in
//! each of its phases; of gates, their [`News`].

use super::gates::bytes_of;
use crate::shm::{
    endpoint::Endpoint,
    gates::far::News,
    job::Job,
    memory::{Mapping, layout},
    queues::far::{Cargo, FarCommand},
};
use core::{
    fmt,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rdma_fabric::{FabricError, Rank, Region, Result};
use std::sync::{Arc, OnceLock};

/// What a rank says in one phase of a symmetric allocation, for the ranks of other nodes, which do
/// not see its control block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Number of the phase, from 1.
    phase: u64,
    /// The words of the side that the phase uses.
    words: Box<[u64; WORDS]>,
}

const WORDS: usize = layout::SIDE / 8;

impl Card {
    /// Number of bytes of [`Card::to_bytes`].
    pub const BYTES: usize = 8 + 8 * WORDS;

    /// Returns the card as bytes, to be sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        core::iter::once(&self.phase).chain(self.words.iter()).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Restores a card; `None` if these are not as many bytes as a card has.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let (phase, words) = words.split_first()?;
        let words: &[[u8; 8]; WORDS] = words.try_into().ok()?;
        Some(Card { phase: u64::from_le_bytes(*phase), words: Box::new(words.map(u64::from_le_bytes)) })
    }

    /// Returns where a card keeps what is said in `phase`.
    fn side(phase: u64) -> usize {
        layout::CARD_SIDES[(phase % 2) as usize]
    }
}

/// Passes a card on to other nodes.
type Tell = Box<dyn Fn(Card) + Send + Sync>;

/// Drops a region that ranks of other nodes may know.
type Discard = Box<dyn Fn(Region) + Send + Sync>;

/// Takes a command to another node.
type Carry = Box<dyn Fn(FarCommand, Cargo) + Send + Sync>;

/// Passes news of a gate on to a rank of another node.
type TellGate = Box<dyn Fn(Rank, Vec<u8>) + Send + Sync>;

/// Has news of gates confirmed by ranks of other nodes.
type ConfirmGates = Box<dyn Fn(Vec<(Rank, Vec<u8>)>) -> Result<()> + Send + Sync>;

/// A node's connection to the others: whoever moves bytes between nodes sets it, once.
pub(crate) struct Elsewhere {
    /// By rank, whether it is on another node.
    far: Box<[bool]>,
    tell: OnceLock<Tell>,
    discard: OnceLock<Discard>,
    carrier: OnceLock<Carrier>,
    gates: OnceLock<(TellGate, ConfirmGates)>,
    /// The mirrors of gates of other nodes that each rank of this node keeps, in rank order.
    mirrors: Box<[(Rank, Arc<Mapping>)]>,
}

/// Whoever takes commands to other nodes.
struct Carrier {
    /// The most bytes that go with a command.
    most_inline: usize,
    carry: Carry,
    /// Works a little, for a thread that waits for replies.
    work: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl Elsewhere {
    /// The connection of a node that has the ranks of `local`, of so many.
    pub(crate) fn new(ranks: usize, local: &[Rank], mirrors: Box<[(Rank, Arc<Mapping>)]>) -> Self {
        let far = (0..ranks).map(|rank| !local.contains(&Rank::new(rank as u32))).collect();
        let (tell, discard, carrier, gates) = (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        Elsewhere { far, tell, discard, carrier, gates, mirrors }
    }

    /// Returns whether a rank is on another node.
    #[inline]
    pub(crate) fn has(&self, rank: Rank) -> bool {
        self.far.get(rank.index()) == Some(&true)
    }

    /// Returns the first rank of this node.
    pub(crate) fn first_here(&self) -> Option<Rank> {
        self.far.iter().position(|far| !far).map(|rank| Rank::new(rank as u32))
    }

    /// Sets who takes commands to other nodes, with at most so many bytes each, and works for those
    /// who wait. The first counts.
    pub(crate) fn set_carrier(&self, most_inline: usize, carry: Carry, work: Box<dyn Fn() + Send + Sync>) {
        let _ = self.carrier.set(Carrier { most_inline, carry, work });
    }

    /// Returns the most bytes that go with a command; `None` if nobody takes any.
    pub(crate) fn most_inline(&self) -> Option<usize> {
        self.carrier.get().map(|carrier| carrier.most_inline)
    }

    /// Gives a command to whoever takes it to its node.
    pub(crate) fn carry(&self, command: FarCommand, cargo: Cargo) {
        if let Some(carrier) = self.carrier.get() {
            (carrier.carry)(command, cargo);
        }
    }

    /// Works a little on what is under way between nodes.
    pub(crate) fn work(&self) {
        if let Some(carrier) = self.carrier.get() {
            (carrier.work)();
        }
    }

    /// Returns the mirrors of gates that a rank of this node keeps.
    pub(crate) fn mirrors(&self, rank: Rank) -> Option<&Mapping> {
        let index = self.mirrors.binary_search_by_key(&rank, |(rank, _)| *rank).ok()?;
        self.mirrors.get(index).map(|(_, mapping)| &**mapping)
    }

    /// Sets who passes on news of gates, and has them confirmed. The first counts.
    pub(super) fn set_gates(&self, tell: TellGate, confirm: ConfirmGates) {
        let _ = self.gates.set((tell, confirm));
    }

    /// Passes news of a gate on.
    pub(crate) fn tell_gate(&self, news: &News) {
        if let Some((tell, _)) = self.gates.get() {
            tell(news.to.rank(), bytes_of(news));
        }
    }

    /// Waits until ranks of other nodes have confirmed these news.
    pub(crate) fn confirm_gates(&self, news: &[News]) -> Result<()> {
        let all = || news.iter().map(|news| (news.to.rank(), bytes_of(news))).collect();
        self.gates.get().map_or(Ok(()), |(_, confirm)| confirm(all()))
    }

    /// Sets who passes on cards. The first counts.
    pub(crate) fn set(&self, tell: Tell) {
        let _ = self.tell.set(tell);
    }

    /// Sets who drops regions that no program has. The first counts.
    pub(crate) fn set_discard(&self, discard: Discard) {
        let _ = self.discard.set(discard);
    }

    /// Drops the region of an allocation whose future was dropped: others have theirs, and may have
    /// looked this one up.
    pub(crate) fn discard(&self, region: Region) {
        match self.discard.get() {
            Some(discard) => discard(region),
            None => drop(region),
        }
    }

    /// Passes on what `endpoint`'s rank has just said in `phase`.
    pub(crate) fn tell(&self, endpoint: &Endpoint, phase: u64) {
        let Some(tell) = self.tell.get() else { return };
        let (control, me) = (&endpoint.job().control, endpoint.me().index());
        let word = |word| control.card(me, Card::side(phase) + 8 * word).load(Relaxed);
        tell(Card { phase, words: Box::new(core::array::from_fn(word)) });
    }
}

impl Job {
    /// Notes what `rank`, of another node, has said in a phase, and wakes those that wait for it.
    ///
    /// Only one thread of the node does this at a time, for any one rank.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub(crate) fn arrived(&self, rank: Rank, card: &Card) -> Result<()> {
        if rank.index() >= self.plan.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.plan.ranks });
        }
        let word = |at| self.control.card(rank.index(), at);
        // Acquire: pairs with the release below; the thread may have changed.
        if word(layout::CARD_PHASE).load(Acquire) >= card.phase {
            return Ok(());
        }
        for (index, value) in card.words.iter().enumerate() {
            word(Card::side(card.phase) + 8 * index).store(*value, Relaxed);
        }
        // Release: pairs with the acquire in `symmetric::all_arrived`.
        word(layout::CARD_PHASE).store(card.phase, Release);
        self.control.word(layout::ARRIVALS).fetch_add(1, AcqRel);
        self.wake_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lead_back_to_the_card() {
        let card = Card { phase: 7, words: Box::new(core::array::from_fn(|word| word as u64 * 3)) };
        let bytes = card.to_bytes();
        assert_eq!((bytes.len(), Card::from_bytes(&bytes)), (Card::BYTES, Some(card)));
        assert!(Card::from_bytes(&bytes[1..]).is_none() && Card::from_bytes(&[]).is_none());
    }
}
