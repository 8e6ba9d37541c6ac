//! Machines as tables of constants, each with its source.
//!
//! A constant that was set from a published figure lists that figure in [`Constant::from`]. Figures
//! that the model is meant to *predict* never appear there; a test checks this. For every other
//! constant, [`Constant::note`] states whether it is a hardware fact, an external measurement or an
//! assumption.
//!
//! | prefix | paper |
//! |---|---|
//! | L | MPI RMA lock on remote atomics (FX100, FX10) |
//! | A | ACP base layer (FX100) |
//! | M | FMPL, messages with matching at the sender (SR8000) |
//! | R | persistent neighbour collective, session mode (FX100) |
//! | X | XcalableMP's reflect (K): orderings only, which set no constant |
//!
//! A machine may lack parts that other machines have. Each of these parts has a first constant, and
//! others that describe it further. If the first is 0 or absent, the machine lacks the part, and
//! the others have no meaning; if it is not 0, all of them are needed. It is also an error if only
//! some of the others are given. An error names the constant that is missing.
//!
//! | part | first constant | without it |
//! |---|---|---|
//! | atomics | `atomics` | every atomic is [`rdma_fabric::FabricError::NoAtomics`] |
//! | barrier unit | `barrier_gates` | `GateUnit::alloc` of `fabric-offload` is `Unsupported` |
//! | hardware barriers | `barrier_colours` | `ColourBarrier::colours` of `fabric-offload` is 0 |
//! | control queues | `queue_depth` | `ControlQueue::open` of `fabric-offload` is `Unsupported` |
//! | order of puts | `ordered_puts` | [`rdma_fabric::Caps::puts_in_order`] is false |
//! | crossbars | `crossbar_row` | jobs that do not specify a network have a torus |

#![deny(clippy::arithmetic_side_effects)]

mod bounds;
mod k;
mod parts;
mod software;
mod sr8000;
mod tables;
mod timing;

pub(super) use timing::{LONGEST, MOST_ENGINES, QueueTable, Timing};

use rdma_fabric::FabricError;
use std::borrow::Cow;

/// The unit of a constant's value. Values are integers: no floating point enters the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Picoseconds.
    Picoseconds,
    /// Femtoseconds per byte: 80,000 fs per byte is 12.5 GB/s.
    FemtosecondsPerByte,
    /// Bytes.
    Bytes,
    /// A dimensionless count.
    Count,
    /// Bits.
    Bits,
    /// Ten-thousandths.
    PerTenThousand,
}

/// One number of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Constant {
    /// The name that [`Platform::with`] takes.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: u64,
    /// The unit of `value`.
    pub unit: Unit,
    /// Identifiers of the published figures from which it was set; empty if there are none.
    pub from: &'static [&'static str],
    /// The derivation of the value from the figures in `from`, or its other source.
    pub note: Cow<'static, str>,
}

/// A machine: a name and its constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    name: Cow<'static, str>,
    constants: Vec<Constant>,
}

/// The prefix of software layers' names in the table. [`rdma_fabric::Fabric::charge`] takes the
/// rest of the name.
pub(super) const SOFTWARE: &str = "software.";

/// The software layer that builds a descriptor: for a plain operation each time it is posted, for a
/// prepared one when it is prepared ([`rdma_fabric::Prepared::new`]).
pub(super) const DESCRIPTOR: &str = "software.descriptor";

impl Platform {
    /// Returns PRIMEHPC FX100: Tofu interconnect 2, atomics in the network interface.
    pub fn fx100() -> Self {
        Platform { name: "FX100".into(), constants: tables::fx100() }
    }

    /// Returns PRIMEHPC FX10: Tofu interconnect 1, atomics by a software service.
    pub fn fx10() -> Self {
        Platform { name: "FX10".into(), constants: tables::fx10() }
    }

    /// Returns the K computer: Tofu interconnect 1 as FX10's, with 8 threads to a rank and layers of
    /// MPI, extended RDMA and XcalableMP to charge. No published figure sets any of its constants.
    pub fn k() -> Self {
        Platform { name: "K".into(), constants: k::k() }
    }

    /// Returns Fugaku (and PRIMEHPC FX1000): Tofu interconnect D. It has a separate table, because
    /// figures of TofuD do not apply to Tofu2.
    pub fn tofud() -> Self {
        Platform { name: "TofuD".into(), constants: tables::tofud() }
    }

    /// Returns the Hitachi SR8000: crossbars between its nodes, no atomics, gates or control queues.
    pub fn sr8000() -> Self {
        Platform { name: "SR8000".into(), constants: sr8000::sr8000() }
    }

    /// Returns the payload's share of the bytes that full packets put on a link, in
    /// ten-thousandths: `packet_payload / (packet_payload + packet_overhead)`.
    ///
    /// Short packets have a smaller share; the network models charge each packet its overhead. Of
    /// `link_byte`'s rate, 93 % is left on FX100 (92 % recalled as measured), 95 % on FX10 (95 %)
    /// and 93.4 % on TofuD (about 93 %).
    pub fn link_efficiency(&self) -> u64 {
        let [payload, overhead] = ["packet_payload", "packet_overhead"].map(|name| self.value(name).unwrap_or(0));
        let whole = u128::from(payload).saturating_add(overhead.into());
        (10_000 * u128::from(payload)).checked_div(whole).map_or(0, |share| share as u64)
    }

    /// Returns the machine's name. "What if" machines have their changes appended.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns all constants, for reports.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Returns the value of a constant, in its unit.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.constants.iter().find(|c| c.name == name).map(|c| c.value)
    }

    /// Returns this machine with one constant changed: a "what if" machine. A job rejects times of
    /// more than a second, or of more than ten microseconds per byte.
    ///
    /// # Errors
    /// [`FabricError::Setting`] if there is no such constant.
    pub fn with(mut self, name: &str, value: u64) -> Result<Self, FabricError> {
        let at = self.constants.iter().position(|c| c.name == name).ok_or_else(|| self.has_none(name))?;
        let constant = &mut self.constants[at];
        if constant.value != value {
            constant.note = format!("what if; {} on the real machine", constant.value).into();
            constant.from = &[];
            constant.value = value;
            self.name = format!("{} with {name} = {value}", self.name).into();
        }
        Ok(self)
    }

    fn need(&self, name: &str) -> Result<u64, FabricError> {
        self.value(name).ok_or_else(|| self.has_none(name))
    }

    fn has_none(&self, name: &str) -> FabricError {
        FabricError::setting("platform constant", format!("{} has none named {name:?}", self.name))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// Figures that the model predicts; none may set a constant.
    const HELD_OUT: &str = "L1, L2, L3, L5, L6, L8, L9, L10, L12, A1 remote, A2 remote, A3 remote, A4 remote, A5 remote, A6, A6 local, A6 \
        remote, A7 remote, A8, A8 local, A8 remote, A14, R3, R3 upper, R4, R5, M1, M8 data, M9 gap, M11, M12, M15, \
        M18, M19, M20, M21, M22, X6, X7, X8, X9";
    /// Partly held-out figures must state which part they mean.
    const PARTLY_HELD_OUT: &[&str] = &["A1", "A2", "A3", "A4", "A5", "A7", "M8", "M9"];

    #[test]
    fn no_prediction_is_a_source() {
        for platform in [Platform::fx100(), Platform::fx10(), Platform::k(), Platform::tofud(), Platform::sr8000()] {
            for constant in platform.constants() {
                for source in constant.from {
                    assert!(
                        HELD_OUT.split(", ").all(|held_out| held_out != *source),
                        "{} of {} is set by {source}",
                        constant.name,
                        platform.name()
                    );
                    assert!(!PARTLY_HELD_OUT.contains(source), "{}: which part of {source}?", constant.name);
                }
                assert!(!constant.note.is_empty(), "{} has no note", constant.name);
            }
        }
    }

    #[test]
    fn tables_with_tofu_are_complete_and_agree_in_their_names() {
        let names = |p: &Platform| p.constants.iter().map(|c| c.name).collect::<Vec<_>>();
        let first = Platform::fx100();
        for platform in [Platform::fx100(), Platform::fx10(), Platform::tofud()] {
            assert_eq!(names(&platform).iter().filter(|n| !n.starts_with(SOFTWARE)).count(), 39);
            assert!(names(&platform).iter().all(|n| names(&first).contains(n)));
            Timing::new(&platform, 4).unwrap();
        }
    }

    #[test]
    fn links_are_as_efficient_as_measured() {
        for (platform, percent) in [(Platform::fx100(), 92), (Platform::fx10(), 95), (Platform::tofud(), 93)] {
            let modelled = platform.link_efficiency();
            assert!(modelled.abs_diff(100 * percent) <= 105, "{}: {modelled}", platform.name());
        }
    }

    /// A single stream of full packets reaches the measured bandwidth, even if links are modelled.
    #[test]
    fn one_stream_fits_through_a_link() {
        for platform in [Platform::fx100(), Platform::fx10(), Platform::tofud(), Platform::sr8000()] {
            let [link, stream] = ["link_byte", "payload_byte"].map(|name| platform.value(name).unwrap());
            let on_link = link * 10_000 / platform.link_efficiency();
            assert!(on_link * 1000 <= stream * 1003, "{}: {on_link} and {stream} fs per byte", platform.name());
        }
    }

    /// Fugaku's link is slower than Tofu2's. No value may have slipped from one table into the
    /// other.
    #[test]
    fn tofud_stands_apart() {
        let (tofu2, tofud) = (Platform::fx100(), Platform::tofud());
        for name in ["put_one_way", "hop", "link_byte", "payload_byte", "engines"] {
            assert_ne!(tofu2.value(name), tofud.value(name), "{name}");
        }
    }

    #[test]
    fn what_if_machines_say_so() {
        let p = Platform::fx100().with("hop", 50_000).unwrap();
        assert_eq!(p.value("hop"), Some(50_000));
        assert_eq!(p.name(), "FX100 with hop = 50000");
        assert!(p.with("warp", 1).is_err());
    }
}
