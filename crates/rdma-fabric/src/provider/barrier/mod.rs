//! The interface of a provider with barrier units or hardware barriers: the traits, the values and
//! wiring that they exchange, and the signals of gates. Programs use `fabric_offload::barrier`.
//!
//! A unit has *gates*. A rank's values enter a *start/end gate* at its start half, and the result
//! leaves it at its end half; *relay gates* are in between. Every gate has two inputs, *source
//! local* and *source remote*, and two outputs, *destination local* and *destination remote*; any
//! of them may be null. A gate *fires* when each input that is not null has a signal of the gate's
//! next round: it combines them, and signals its outputs that are not null. *Local* means another
//! gate of the same rank, *remote* a gate anywhere. Gates that the members set up in this way form
//! a dataflow graph; `fabric_offload::barrier` builds the usual ones for a [`Group`](crate::Group).
//!
//! # Rounds
//! Signals are numbered by the count of a gate's signals since it was set, so the signal of a
//! member that is ahead is never mistaken for one of this round. An output holds the signals of two
//! rounds, until the gates it leads to have fired; a third round waits. An operation is complete
//! when its start half has signalled and its end half has fired; at a start/end gate without
//! sources it therefore completes when the signal has been sent.
//!
//! # Errors
//! Faults travel like values: a gate whose inputs differ in operation, type or number of values
//! signals [`GateError::Mismatch`] instead, and every operation that depends on it ends with that
//! error. So does a connection to a gate that does not point back ([`GateError::PointsElsewhere`]),
//! or that was freed ([`GateError::Freed`]). The round is then complete, and the next one may be
//! started. All gates must be set before the first of them is started: synchronise in between.
//!
//! Source: Tofu's barrier interface, gates called BG and VBG there (`utofu_set_vbg`,
//! `utofu_barrier`, `utofu_reduce_*`).

mod colour;
mod error;
mod exact_sum;
mod gate;
mod unit;
mod values;
mod wave;

pub use colour::{ColourError, Colours};
pub use error::GateError;
pub use exact_sum::ExactSum;
pub use gate::{GateId, Wiring, check_wirings};
pub use unit::{BarrierLimits, BarrierUnit, Progress};
pub use values::{GateValue, ReduceOp, Values};
pub use wave::{RoundFault, Wave};
