//! Names of gates, and their wiring.

use super::GateError;
use crate::{FabricError, Rank, Result};
use bytemuck::{Pod, Zeroable};
use core::fmt;

/// Identifies a gate of a rank. Plain 64-bit data: send it like any other value.
///
/// The generation changes when a gate is freed, so that an identifier that has outlived its gate is
/// an error ([`GateError::Freed`]) and never another gate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct GateId(u64);

const RANK_BITS: u32 = 32;
const INDEX_BITS: u32 = 12;

impl GateId {
    /// No gate: all ones, as in Tofu.
    pub const NULL: GateId = GateId(u64::MAX);
    /// Generations are below this.
    pub const GENERATIONS: u32 = 1 << (u64::BITS - RANK_BITS - INDEX_BITS);
    /// Indices in a rank's or node's table are below this.
    pub const INDICES: u32 = 1 << INDEX_BITS;

    /// Creates the identifier of a gate in `rank`'s table; the meaning of indices is up to the
    /// provider.
    ///
    /// # Panics
    /// If `index` or `generation` is out of range.
    pub fn new(rank: Rank, index: u32, generation: u32) -> Self {
        assert!(index < Self::INDICES && generation < Self::GENERATIONS, "a gate's name has room for that");
        let high = u64::from(generation) << INDEX_BITS | u64::from(index);
        GateId(high << RANK_BITS | u64::from(rank.number()))
    }

    /// Returns the name as a number, for exchange.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Restores the identifier from [`GateId::to_bits`]. Any number is accepted; whether it
    /// identifies a gate is checked on use.
    pub const fn from_bits(bits: u64) -> Self {
        GateId(bits)
    }

    /// Returns whether this is [`GateId::NULL`].
    pub const fn is_null(self) -> bool {
        self.0 == u64::MAX
    }

    /// Returns the gate, unless this is [`GateId::NULL`].
    pub fn gate(self) -> Option<GateId> {
        (!self.is_null()).then_some(self)
    }

    /// Returns the rank that owns the gate.
    pub const fn rank(self) -> Rank {
        Rank::new(self.0 as u32)
    }

    /// Returns the gate's index in the table.
    pub const fn index(self) -> u32 {
        (self.0 >> RANK_BITS) as u32 % Self::INDICES
    }

    /// Returns the number of times the entry had been used or freed when the gate was allocated.
    pub const fn generation(self) -> u32 {
        (self.0 >> (RANK_BITS + INDEX_BITS)) as u32
    }
}

impl fmt::Debug for GateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gate() {
            Some(_) => write!(f, "gate {}.{} of {}", self.index(), self.generation(), self.rank()),
            None => f.write_str("no gate"),
        }
    }
}

impl fmt::Display for GateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The connections of a gate: the sources of its inputs and the destinations of its outputs.
///
/// For a start/end gate the destinations belong to its start half, the sources to its end half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The gate, one of this rank's own.
    pub gate: GateId,
    /// A gate of the same rank that signals it.
    pub source_local: Option<GateId>,
    /// A gate anywhere that signals it.
    pub source_remote: Option<GateId>,
    /// A gate of the same rank that it signals.
    pub destination_local: Option<GateId>,
    /// A gate anywhere that it signals.
    pub destination_remote: Option<GateId>,
}

impl Wiring {
    /// Creates the wiring of a gate with no wires.
    pub const fn none(gate: GateId) -> Self {
        Wiring { gate, source_local: None, source_remote: None, destination_local: None, destination_remote: None }
    }
}

/// Performs the checks of every provider before it sets gates of `me`. `alive` returns the current
/// wiring of a gate of this rank, and whether it is a start/end gate, or the reason why it can't be
/// used.
///
/// # Errors
/// [`GateError::NotOwn`], [`GateError::NotLocal`], [`GateError::PointsElsewhere`],
/// [`GateError::Dangling`], the errors of `alive`, and [`FabricError::NoSuchRank`].
pub fn check_wirings(
    me: Rank,
    ranks: usize,
    wirings: &[Wiring],
    alive: impl Fn(GateId) -> Result<(Wiring, bool)>,
) -> Result<()> {
    // The wiring after the change; among several settings of one gate the last one counts.
    let after = |gate: GateId| -> Result<Wiring> {
        let (now, _) = alive(gate)?;
        Ok(wirings.iter().rfind(|w| w.gate == gate).copied().unwrap_or(now))
    };
    for wiring in wirings {
        let gate = wiring.gate;
        if gate.is_null() || gate.rank() != me {
            return Err(GateError::NotOwn { gate, rank: me }.into());
        }
        let (_, is_start) = alive(gate)?;
        let ends = [wiring.source_local, wiring.destination_local];
        if let Some(other) = ends.into_iter().flatten().find(|other| other.is_null() || other.rank() != me) {
            return Err(GateError::NotLocal { gate, other }.into());
        }
        let far = [wiring.source_remote, wiring.destination_remote];
        if let Some(rank) = far.into_iter().flatten().map(GateId::rank).find(|rank| rank.index() >= ranks) {
            return Err(FabricError::NoSuchRank { rank, ranks });
        }
        if let Some(source) = wiring.source_local
            && after(source)?.destination_local != Some(gate)
        {
            return Err(GateError::PointsElsewhere { gate: source, by: gate }.into());
        }
        if let Some(destination) = wiring.destination_local
            && after(destination)?.source_local != Some(gate)
        {
            return Err(GateError::PointsElsewhere { gate: destination, by: gate }.into());
        }
        let source = wiring.source_local.or(wiring.source_remote);
        let destination = wiring.destination_local.or(wiring.destination_remote);
        let itself = wiring.source_local == Some(gate);
        if !is_start && (source.is_none() || destination.is_none() || itself) {
            return Err(GateError::Dangling(gate).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_round() {
        let gate = GateId::new(Rank::new(70_000), 4095, (1 << 20) - 1);
        assert_eq!((gate.rank().number(), gate.index(), gate.generation()), (70_000, 4095, (1 << 20) - 1));
        assert_eq!(GateId::from_bits(gate.to_bits()), gate);
        assert_eq!((gate.gate(), GateId::NULL.gate()), (Some(gate), None));
        assert_eq!(format!("{}", GateId::new(Rank::new(2), 3, 1)), "gate 3.1 of rank 2");
    }

    const ME: Rank = Rank::new(1);

    fn gate(index: u32) -> GateId {
        GateId::new(ME, index, 1)
    }

    /// Gate 0 is a start/end gate; gates below 4 exist and have no connections.
    fn alive(gate: GateId) -> Result<(Wiring, bool)> {
        if gate.index() < 4 { Ok((Wiring::none(gate), gate.index() == 0)) } else { Err(GateError::Freed(gate).into()) }
    }

    #[test]
    fn wrong_wires_are_named() {
        let check = |wirings: &[Wiring]| check_wirings(ME, 3, wirings, alive);
        let (start, relay) = (Wiring::none(gate(0)), Wiring::none(gate(1)));
        let out = Wiring { destination_local: Some(gate(1)), source_local: Some(gate(1)), ..start };
        let back = Wiring { destination_local: Some(gate(0)), source_local: Some(gate(0)), ..relay };
        assert_eq!(check(&[out, back]), Ok(()));
        assert_eq!(check(&[start]), Ok(()));
        assert_eq!(check(&[out]), Err(GateError::PointsElsewhere { gate: gate(1), by: gate(0) }.into()));
        assert_eq!(check(&[relay]), Err(GateError::Dangling(gate(1)).into()));
        let far = GateId::new(Rank::new(2), 0, 1);
        let only_in = Wiring { source_remote: Some(far), ..relay };
        assert_eq!(check(&[only_in]), Err(GateError::Dangling(gate(1)).into()));
        let itself = Wiring { source_local: Some(gate(1)), destination_local: Some(gate(1)), ..relay };
        assert_eq!(check(&[itself]), Err(GateError::Dangling(gate(1)).into()));
        let not_local = Wiring { source_local: Some(far), ..relay };
        assert_eq!(check(&[not_local]), Err(GateError::NotLocal { gate: gate(1), other: far }.into()));
        let nobody = Wiring { source_remote: Some(GateId::new(Rank::new(3), 0, 1)), ..start };
        assert_eq!(check(&[nobody]), Err(FabricError::NoSuchRank { rank: Rank::new(3), ranks: 3 }));
        let theirs = Wiring::none(far);
        assert_eq!(check(&[theirs]), Err(GateError::NotOwn { gate: far, rank: ME }.into()));
        let gone = Wiring { destination_local: Some(gate(4)), ..start };
        assert_eq!(check(&[gone]), Err(GateError::Freed(gate(4)).into()));
    }
}
