//! Errors of gates.

use super::{GateId, ReduceOp};
use crate::Rank;

/// An error of a barrier unit, or of a round, with the gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The unit has fewer free gates than requested.
    #[error(
        "{rank} cannot have {wanted} gates, one of them a start/end gate: its unit has {starts} start/end and {relays} relay gates left"
    )]
    NoGates {
        /// The rank that owns the unit.
        rank: Rank,
        /// Number of gates requested, including the start/end gate; 0 at peers that do not know it.
        wanted: usize,
        /// Start/end gates left.
        starts: usize,
        /// Relay gates left.
        relays: usize,
    },
    /// The gate belongs to another rank, or does not exist.
    #[error("{gate} is not a gate of {rank}")]
    NotOwn {
        /// The gate.
        gate: GateId,
        /// The rank that used it.
        rank: Rank,
    },
    /// No such gate ever existed.
    #[error("there is no {0}")]
    NoSuchGate(GateId),
    /// The gate was freed.
    #[error("{0} was freed")]
    Freed(GateId),
    /// Only start/end gates can be started and awaited.
    #[error("{0} is a relay gate")]
    NotStart(GateId),
    /// An operation of the gate is in flight: a gate has one at a time. Wait for it first.
    #[error("an operation of {0} is in progress")]
    Outstanding(GateId),
    /// Nothing was started on the gate.
    #[error("nothing was started on {0}")]
    Idle(GateId),
    /// The gate's wires were never set.
    #[error("{0} was never set")]
    NotSet(GateId),
    /// A relay gate needs a source and a destination, other than itself.
    #[error("{0} has no source or no destination")]
    Dangling(GateId),
    /// A local wire leads to another rank's gate.
    #[error("{gate} has a local wire to {other}, which is not a gate of its rank")]
    NotLocal {
        /// The gate.
        gate: GateId,
        /// The other end of the connection.
        other: GateId,
    },
    /// A gate is connected to a gate that is not connected back; the latter may not have been set
    /// in time.
    #[error("{by} is wired to {gate}, which does not point back")]
    PointsElsewhere {
        /// The gate that is named.
        gate: GateId,
        /// The gate that names it.
        by: GateId,
    },
    /// Members passed different operations, types or numbers of values. Tofu's
    /// `UTOFU_ERR_BARRIER_MISMATCH`.
    #[error("signals of different operations, types or numbers of values met at {0}")]
    Mismatch(GateId),
    /// The group's members requested different shapes or owners.
    #[error("members of the group asked for different reductions")]
    Disagreement,
    /// More values than a signal carries.
    #[error("{given} values; a signal carries {limit}")]
    TooManyValues {
        /// Values given.
        given: usize,
        /// Values that fit.
        limit: usize,
    },
    /// `MaxLoc` takes pairs of a value and its location.
    #[error("{given} values do not form pairs")]
    NoPairs {
        /// Values given.
        given: usize,
    },
    /// The operation does not exist for that type.
    #[error("{op:?} is not an operation on {on}")]
    NoSuchReduction {
        /// The operation.
        op: ReduceOp,
        /// The type.
        on: &'static str,
    },
}
