//! Messages to ranks of other nodes: for a symmetric allocation, the [`ControlRecord`] that a rank
//! publishes in each of its phases; for gates, their updates ([`GateUpdate`]).

use super::gates::bytes_of;
use crate::{
    endpoint::Endpoint,
    gates::remote::GateUpdate,
    job::Job,
    memory::{Mapping, layout},
    queues::remote::{Payload, RemoteCommand},
};
use core::{
    fmt,
    sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rdma_fabric::{FabricError, Rank, Region, Result};
use std::sync::{Arc, OnceLock};

/// The words that a rank publishes in one phase of a symmetric allocation, for the ranks of other
/// nodes, which have no access to its control block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlRecord {
    /// Number of the phase, from 1.
    phase: u64,
    /// The words of the side that the phase uses.
    words: Box<[u64; WORDS]>,
}

const WORDS: usize = layout::SIDE / 8;

impl ControlRecord {
    /// Number of bytes of [`ControlRecord::to_bytes`].
    pub const BYTES: usize = 8 + 8 * WORDS;

    /// Returns the control record as bytes, to be sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        core::iter::once(&self.phase).chain(self.words.iter()).flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Restores a control record; `None` if the number of bytes is not [`ControlRecord::BYTES`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let (phase, words) = words.split_first()?;
        let words: &[[u8; 8]; WORDS] = words.try_into().ok()?;
        Some(ControlRecord { phase: u64::from_le_bytes(*phase), words: Box::new(words.map(u64::from_le_bytes)) })
    }

    /// Returns the offset of the side of a control record that `phase` uses.
    fn side(phase: u64) -> usize {
        layout::RECORD_SIDES[(phase % 2) as usize]
    }
}

/// Sends a control record to the other nodes.
type Tell = Box<dyn Fn(ControlRecord) + Send + Sync>;

/// Drops a region whose key ranks of other nodes may have.
type Discard = Box<dyn Fn(Region) + Send + Sync>;

/// Sends a command to another node.
type Carry = Box<dyn Fn(RemoteCommand, Payload) + Send + Sync>;

/// Sends a gate's update to a rank of another node.
type TellGate = Box<dyn Fn(Rank, Vec<u8>) + Send + Sync>;

/// Requests confirmation of gate updates from ranks of other nodes.
type ConfirmGates = Box<dyn Fn(Vec<(Rank, Vec<u8>)>) -> Result<()> + Send + Sync>;

/// A node's connection to the other nodes. The layer that moves bytes between nodes sets its
/// functions, once.
pub(crate) struct Internode {
    /// By rank, whether it is on another node.
    remote: Box<[bool]>,
    tell: OnceLock<Tell>,
    discard: OnceLock<Discard>,
    carrier: OnceLock<Carrier>,
    gates: OnceLock<(TellGate, ConfirmGates)>,
    /// The mirrors of gates of other nodes that each rank of this node keeps, in rank order.
    mirrors: Box<[(Rank, Arc<Mapping>)]>,
}

/// The functions that send commands to other nodes.
struct Carrier {
    /// The maximum number of bytes sent with a command.
    most_inline: usize,
    carry: Carry,
    /// Makes some progress, for a thread that waits for replies.
    work: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Internode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl Internode {
    /// Creates the connection of a node that has the ranks `local`, in a job of `ranks` ranks.
    pub(crate) fn new(ranks: usize, local: &[Rank], mirrors: Box<[(Rank, Arc<Mapping>)]>) -> Self {
        let remote = (0..ranks).map(|rank| !local.contains(&Rank::new(rank as u32))).collect();
        let (tell, discard, carrier, gates) = (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        Internode { remote, tell, discard, carrier, gates, mirrors }
    }

    /// Returns whether a rank is on another node.
    #[inline]
    pub(crate) fn has(&self, rank: Rank) -> bool {
        self.remote.get(rank.index()) == Some(&true)
    }

    /// Returns the first rank of this node.
    pub(crate) fn first_here(&self) -> Option<Rank> {
        self.remote.iter().position(|remote| !remote).map(|rank| Rank::new(rank as u32))
    }

    /// Sets the functions that send commands to other nodes, with at most `most_inline` bytes each,
    /// and make progress for waiting threads. Only the first call has an effect.
    pub(crate) fn set_carrier(&self, most_inline: usize, carry: Carry, work: Box<dyn Fn() + Send + Sync>) {
        let _ = self.carrier.set(Carrier { most_inline, carry, work });
    }

    /// Returns the maximum number of bytes sent with a command; `None` if there is no carrier.
    pub(crate) fn most_inline(&self) -> Option<usize> {
        self.carrier.get().map(|carrier| carrier.most_inline)
    }

    /// Passes a command to the carrier, which sends it to its node.
    pub(crate) fn carry(&self, command: RemoteCommand, payload: Payload) {
        if let Some(carrier) = self.carrier.get() {
            (carrier.carry)(command, payload);
        }
    }

    /// Makes some progress on transfers between nodes.
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

    /// Sets the functions that send updates of gates and have them confirmed. Only the first call
    /// has an effect.
    pub(super) fn set_gates(&self, tell: TellGate, confirm: ConfirmGates) {
        let _ = self.gates.set((tell, confirm));
    }

    /// Sends an update of a gate.
    pub(crate) fn send_gate_update(&self, update: &GateUpdate) {
        if let Some((tell, _)) = self.gates.get() {
            tell(update.to.rank(), bytes_of(update));
        }
    }

    /// Waits until ranks of other nodes have confirmed these updates.
    pub(crate) fn confirm_gates(&self, update: &[GateUpdate]) -> Result<()> {
        let all = || update.iter().map(|update| (update.to.rank(), bytes_of(update))).collect();
        self.gates.get().map_or(Ok(()), |(_, confirm)| confirm(all()))
    }

    /// Sets the function that sends control records. Only the first call has an effect.
    pub(crate) fn set(&self, tell: Tell) {
        let _ = self.tell.set(tell);
    }

    /// Sets the function that drops regions that no program owns. Only the first call has an
    /// effect.
    pub(crate) fn set_discard(&self, discard: Discard) {
        let _ = self.discard.set(discard);
    }

    /// Drops the region of an allocation whose future was dropped: other ranks have their regions
    /// of the allocation, and may have looked this one up.
    pub(crate) fn discard(&self, region: Region) {
        match self.discard.get() {
            Some(discard) => discard(region),
            None => drop(region),
        }
    }

    /// Sends the words that `endpoint`'s rank has just published in `phase`.
    pub(crate) fn send_control_record(&self, endpoint: &Endpoint, phase: u64) {
        let Some(tell) = self.tell.get() else { return };
        let (control, me) = (&endpoint.job().control, endpoint.me().index());
        let word = |word| control.control_record(me, ControlRecord::side(phase) + 8 * word).load(Relaxed);
        tell(ControlRecord { phase, words: Box::new(core::array::from_fn(word)) });
    }
}

impl Job {
    /// Records the words that `rank`, of another node, has published in a phase, and wakes the
    /// ranks that wait for them.
    ///
    /// At most one thread of the node does this at a time for any one rank.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub(crate) fn arrived(&self, rank: Rank, control_record: &ControlRecord) -> Result<()> {
        if rank.index() >= self.plan.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.plan.ranks });
        }
        let word = |at| self.control.control_record(rank.index(), at);
        // Acquire: pairs with the release below; the thread may have changed.
        if word(layout::RECORD_PHASE).load(Acquire) >= control_record.phase {
            return Ok(());
        }
        for (index, value) in control_record.words.iter().enumerate() {
            word(ControlRecord::side(control_record.phase) + 8 * index).store(*value, Relaxed);
        }
        // Release: pairs with the acquire in `symmetric::all_arrived`.
        word(layout::RECORD_PHASE).store(control_record.phase, Release);
        self.control.word(layout::ARRIVALS).fetch_add(1, AcqRel);
        self.wake_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lead_back_to_the_control_record() {
        let control_record = ControlRecord { phase: 7, words: Box::new(core::array::from_fn(|word| word as u64 * 3)) };
        let bytes = control_record.to_bytes();
        assert_eq!((bytes.len(), ControlRecord::from_bytes(&bytes)), (ControlRecord::BYTES, Some(control_record)));
        assert!(ControlRecord::from_bytes(&bytes[1..]).is_none() && ControlRecord::from_bytes(&[]).is_none());
    }
}
