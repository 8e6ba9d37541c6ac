//! The signals that travel from gate to gate: values on their way to a result, or faults.

use super::{ExactSum, GateError, GateId, ReduceOp, Values, values::GateValue};
use crate::{FabricError, Rank};

/// A fault of a round, as it travels from gate to gate. When two faults arrive at a gate, the
/// lesser one is forwarded, so that all members receive the same fault for the same set of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoundFault {
    /// Signals that do not match arrived at this gate.
    Mismatch(GateId),
    /// A gate that does not point back.
    PointsElsewhere {
        /// The gate that is named.
        gate: GateId,
        /// The gate that names it.
        by: GateId,
    },
    /// A gate that was freed.
    Freed(GateId),
    /// The record of a gate of this rank contains a value that no well-behaved rank writes.
    Corrupt(Rank),
}

impl From<RoundFault> for FabricError {
    fn from(fault: RoundFault) -> Self {
        match fault {
            RoundFault::Mismatch(gate) => GateError::Mismatch(gate).into(),
            RoundFault::PointsElsewhere { gate, by } => GateError::PointsElsewhere { gate, by }.into(),
            RoundFault::Freed(gate) => GateError::Freed(gate).into(),
            RoundFault::Corrupt(rank) => FabricError::Corrupt { rank, what: &"a gate of the barrier unit" },
        }
    }
}

/// A signal, in the form stored in a gate's output for a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wave {
    /// Values, except sums of `f64`.
    Values(Values),
    /// Exact sums, not yet rounded.
    Sums(Vec<ExactSum>),
    /// A fault.
    Fault(RoundFault),
}

const VALUES: u8 = 1;
const SUMS: u8 = 2;
const FAULT: u8 = 3;

impl Wave {
    /// The maximum number of words that [`Wave::encode`] writes.
    pub const WORDS: usize = 1 + <f64 as GateValue>::MOST * ExactSum::WORDS;

    /// Converts a member's values when they enter.
    pub fn enter(values: &Values) -> Self {
        if values.op == ReduceOp::BfpSum {
            let bits = &values.words[..values.len()];
            Wave::Sums(bits.iter().map(|bits| ExactSum::new(f64::from_bits(*bits))).collect())
        } else {
            Wave::Values(*values)
        }
    }

    /// Converts the signal to the values of the result.
    ///
    /// # Errors
    /// The fault, if the signal is one.
    pub fn leave(&self) -> Result<Values, RoundFault> {
        match self {
            Wave::Values(values) => Ok(values.canonical()),
            Wave::Sums(sums) => {
                let mut words = [0; <u64 as GateValue>::MOST];
                words.iter_mut().zip(sums).for_each(|(word, sum)| *word = sum.round().to_bits());
                Ok(Values { op: ReduceOp::BfpSum, float: true, count: sums.len() as u8, words })
            }
            Wave::Fault(fault) => Err(*fault),
        }
    }

    /// Combines two inputs of `gate`. The order does not matter.
    #[must_use]
    pub fn merge(self, other: Wave, gate: GateId) -> Wave {
        match (self, other) {
            (Wave::Fault(a), Wave::Fault(b)) => Wave::Fault(a.min(b)),
            (Wave::Fault(fault), _) | (_, Wave::Fault(fault)) => Wave::Fault(fault),
            (Wave::Values(mut a), Wave::Values(b)) if a.form() == b.form() => {
                a.merge(&b);
                Wave::Values(a)
            }
            (Wave::Sums(mut a), Wave::Sums(b)) if a.len() == b.len() => {
                a.iter_mut().zip(&b).for_each(|(a, b)| a.add(b));
                Wave::Sums(a)
            }
            _ => Wave::Fault(RoundFault::Mismatch(gate)),
        }
    }

    /// Writes the signal as words: `put` is called with 0, 1, … and the word.
    pub fn encode(&self, mut put: impl FnMut(usize, u64)) {
        let head = |form: u8, code: u8, float: bool, count: u8| {
            u64::from_le_bytes([form, code, u8::from(float), count, 0, 0, 0, 0])
        };
        match self {
            Wave::Values(values) => {
                put(0, head(VALUES, values.op as u8, values.float, values.count));
                (1..).zip(&values.words[..values.len()]).for_each(|(at, word)| put(at, *word));
            }
            Wave::Sums(sums) => {
                put(0, head(SUMS, ReduceOp::BfpSum as u8, true, sums.len() as u8));
                (1..).zip(sums.iter().flat_map(ExactSum::words)).for_each(|(at, word)| put(at, word));
            }
            Wave::Fault(fault) => {
                let (code, words) = match *fault {
                    RoundFault::Mismatch(gate) => (1, [gate.to_bits(), 0]),
                    RoundFault::PointsElsewhere { gate, by } => (2, [gate.to_bits(), by.to_bits()]),
                    RoundFault::Freed(gate) => (3, [gate.to_bits(), 0]),
                    RoundFault::Corrupt(rank) => (4, [rank.number().into(), 0]),
                };
                put(0, head(FAULT, code, false, 0));
                put(1, words[0]);
                put(2, words[1]);
            }
        }
    }

    /// Restores the signal from [`Wave::encode`]; `None` for words that it never writes. Reads only
    /// words below [`Wave::WORDS`].
    pub fn decode(get: impl Fn(usize) -> u64) -> Option<Wave> {
        let [form, code, float, count, 0, 0, 0, 0] = get(0).to_le_bytes() else { return None };
        match (form, float) {
            (VALUES, 0 | 1) => {
                let op = ReduceOp::from_code(code)?;
                if usize::from(count) > <u64 as GateValue>::MOST {
                    return None;
                }
                let mut words = [0; <u64 as GateValue>::MOST];
                (1..).zip(words.iter_mut().take(count.into())).for_each(|(at, word)| *word = get(at));
                let bits = &words[..count.into()];
                let values = match float {
                    0 => Values::new(op, bits),
                    _ => {
                        let mut floats = [0.0; <u64 as GateValue>::MOST];
                        floats.iter_mut().zip(bits).for_each(|(float, bits)| *float = f64::from_bits(*bits));
                        Values::new(op, &floats[..count.into()])
                    }
                };
                values.ok().filter(|values| values.op != ReduceOp::BfpSum).map(Wave::Values)
            }
            (SUMS, 1) if code == ReduceOp::BfpSum as u8 && usize::from(count) <= <f64 as GateValue>::MOST => {
                let sum = |index: usize| {
                    let mut words = [0; ExactSum::WORDS];
                    let first = 1 + index * ExactSum::WORDS;
                    (first..).zip(&mut words).for_each(|(at, word)| *word = get(at));
                    ExactSum::from_words(&words)
                };
                (0..count.into()).map(sum).collect::<Option<Vec<_>>>().map(Wave::Sums)
            }
            (FAULT, 0) => {
                let (gate, second) = (GateId::from_bits(get(1)), get(2));
                let fault = match code {
                    1 => RoundFault::Mismatch(gate),
                    2 => RoundFault::PointsElsewhere { gate, by: GateId::from_bits(second) },
                    3 => RoundFault::Freed(gate),
                    4 => RoundFault::Corrupt(gate.rank()),
                    _ => return None,
                };
                Some(Wave::Fault(fault))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATE: GateId = GateId::NULL;

    fn all() -> Vec<Wave> {
        let gate = GateId::new(Rank::new(3), 2, 1);
        let values = [
            Values::BARRIER,
            Values::new(ReduceOp::Sum, &[1u64, 2, 3, 4, 5, 6]).unwrap(),
            Values::new(ReduceOp::MaxLoc, &[1.5, -0.0]).unwrap(),
            Values::new(ReduceOp::BfpSum, &[1e300, -1e-300, f64::NAN]).unwrap(),
        ];
        let faults = [
            RoundFault::Mismatch(gate),
            RoundFault::PointsElsewhere { gate, by: GateId::new(Rank::new(9), 0, 7) },
            RoundFault::Freed(gate),
            RoundFault::Corrupt(Rank::new(70_000)),
        ];
        values.iter().map(Wave::enter).chain(faults.map(Wave::Fault)).collect()
    }

    #[test]
    fn waves_come_round_and_garbage_does_not() {
        for wave in all() {
            let mut words = [0; Wave::WORDS];
            wave.encode(|at, word| words[at] = word);
            assert_eq!(Wave::decode(|at| words[at]), Some(wave));
            for bit in 0..64 {
                // Decoding succeeds or fails, but never reads beyond the words.
                words[0] ^= 1 << bit;
                let _ = Wave::decode(|at| words[at]);
                words[0] ^= 1 << bit;
            }
        }
        assert_eq!(Wave::decode(|_| 0), None);
        assert_eq!(Wave::decode(|_| u64::MAX), None);
    }

    #[test]
    fn different_waves_are_a_mismatch_and_faults_win() {
        let all = all();
        for a in &all {
            for b in &all {
                let (ab, ba) = (a.clone().merge(b.clone(), GATE), b.clone().merge(a.clone(), GATE));
                assert_eq!(ab, ba);
                match (a, b) {
                    (Wave::Fault(x), Wave::Fault(y)) => assert_eq!(ab, Wave::Fault(*x.min(y))),
                    (fault @ Wave::Fault(_), _) | (_, fault @ Wave::Fault(_)) => assert_eq!(ab, *fault),
                    _ if a == b => assert!(ab.leave().is_ok()),
                    _ => assert_eq!(ab, Wave::Fault(RoundFault::Mismatch(GATE))),
                }
            }
        }
        let one = |n: usize| Wave::enter(&Values::new(ReduceOp::BfpSum, &[1.0; 3][..n]).unwrap());
        assert_eq!(one(1).merge(one(2), GATE), Wave::Fault(RoundFault::Mismatch(GATE)));
        let dropped = Wave::Values(Values::BARRIER);
        assert_ne!(one(1).merge(dropped.clone(), GATE), dropped, "a dropped mismatch");
    }
}
