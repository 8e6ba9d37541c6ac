//! The values that members contribute and receive.

use super::GateError;
use core::fmt;

/// The operation that gates apply to the values of their inputs. The numbers are those of Tofu's
/// interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ReduceOp {
    /// No values: completes when every member has started.
    Barrier = 1,
    /// Bitwise and; `u64`.
    BitAnd = 2,
    /// Bitwise or; `u64`.
    BitOr = 3,
    /// Bitwise exclusive or; `u64`.
    BitXor = 4,
    /// The largest. For `f64`, −0 is below +0, and any NaN makes the result a NaN.
    Max = 5,
    /// Pairs of a value and its location: the largest value and, among equal ones, the smallest
    /// location.
    MaxLoc = 6,
    /// The sum, wrapping; `u64`.
    Sum = 7,
    /// The exact sum, rounded once; `f64`. See [`ExactSum`](super::ExactSum).
    BfpSum = 8,
}

impl ReduceOp {
    pub(super) fn from_code(code: u8) -> Option<Self> {
        use ReduceOp::*;
        [Barrier, BitAnd, BitOr, BitXor, Max, MaxLoc, Sum, BfpSum].into_iter().find(|op| *op as u8 == code)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for f64 {}
}

/// A type that barrier units reduce: `u64`, at most 6 values, or `f64`, at most 3.
pub trait GateValue: Copy + Default + PartialEq + fmt::Debug + Send + Sync + Unpin + 'static + sealed::Sealed {
    /// The largest number of values that a signal carries.
    const MOST: usize;
    /// The type's name.
    const NAME: &'static str;
    #[doc(hidden)]
    const FLOAT: bool;
    #[doc(hidden)]
    fn bits(self) -> u64;
    #[doc(hidden)]
    fn of_bits(bits: u64) -> Self;
}

impl GateValue for u64 {
    const MOST: usize = 6;
    const NAME: &'static str = "u64";
    const FLOAT: bool = false;
    fn bits(self) -> u64 {
        self
    }
    fn of_bits(bits: u64) -> Self {
        bits
    }
}

impl GateValue for f64 {
    const MOST: usize = 3;
    const NAME: &'static str = "f64";
    const FLOAT: bool = true;
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn of_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

/// An operation and its values: those contributed by a member, or those of the result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Values {
    pub(super) op: ReduceOp,
    pub(super) float: bool,
    pub(super) count: u8,
    /// Bits of the values; zero after the last.
    pub(super) words: [u64; u64::MOST],
}

impl Values {
    /// The values of a barrier: none.
    pub const BARRIER: Values = Values { op: ReduceOp::Barrier, float: false, count: 0, words: [0; u64::MOST] };

    /// Creates values of type `T` for `op`.
    ///
    /// # Errors
    /// [`GateError::NoSuchReduction`], [`GateError::TooManyValues`], [`GateError::NoPairs`].
    pub fn new<T: GateValue>(op: ReduceOp, values: &[T]) -> Result<Self, GateError> {
        use ReduceOp::*;
        let exists = match op {
            Barrier => values.is_empty(),
            Max | MaxLoc => true,
            BitAnd | BitOr | BitXor | Sum => !T::FLOAT,
            BfpSum => T::FLOAT,
        };
        if !exists {
            return Err(GateError::NoSuchReduction { op, on: T::NAME });
        }
        let given = values.len();
        if given > T::MOST {
            return Err(GateError::TooManyValues { given, limit: T::MOST });
        }
        if op == MaxLoc && !given.is_multiple_of(2) {
            return Err(GateError::NoPairs { given });
        }
        if op == Barrier {
            return Ok(Self::BARRIER);
        }
        let mut words = [0; u64::MOST];
        words.iter_mut().zip(values).for_each(|(word, value)| *word = value.bits());
        Ok(Values { op, float: T::FLOAT, count: given as u8, words })
    }

    /// Returns the operation.
    pub fn op(&self) -> ReduceOp {
        self.op
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// Returns whether there are no values, as is the case in a barrier.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns value `index`; `None` if it does not exist or has a different type.
    pub fn get<T: GateValue>(&self, index: usize) -> Option<T> {
        (self.float == T::FLOAT && index < self.len()).then(|| T::of_bits(self.words[index]))
    }

    /// Returns the properties that must agree among members: operation, type, number.
    pub(super) fn form(&self) -> (ReduceOp, bool, u8) {
        (self.op, self.float, self.count)
    }

    /// Combines values of the same form; not for sums of `f64`.
    pub(super) fn merge(&mut self, other: &Values) {
        use ReduceOp::*;
        let float = self.float;
        let larger = |a: u64, b: u64| if rank(a, float) >= rank(b, float) { a } else { b };
        let pairs = self.words.iter_mut().zip(&other.words).take(self.count.into());
        match self.op {
            Barrier | BfpSum => {}
            BitAnd => pairs.for_each(|(a, b)| *a &= b),
            BitOr => pairs.for_each(|(a, b)| *a |= b),
            BitXor => pairs.for_each(|(a, b)| *a ^= b),
            Sum => pairs.for_each(|(a, b)| *a = a.wrapping_add(*b)),
            Max => pairs.for_each(|(a, b)| *a = larger(*a, *b)),
            MaxLoc => {
                let theirs = other.words.chunks_exact(2);
                for (mine, theirs) in self.words.chunks_exact_mut(2).zip(theirs).take(usize::from(self.count) / 2) {
                    // The largest value, then the smallest location.
                    let key = |pair: &[u64]| (rank(pair[0], float), !rank(pair[1], float));
                    if key(theirs) > key(mine) {
                        mine.copy_from_slice(theirs);
                    }
                }
            }
        }
    }

    /// Converts values to the canonical form of results: all NaNs become the same one.
    pub(super) fn canonical(mut self) -> Self {
        if self.float {
            self.words.iter_mut().filter(|word| f64::from_bits(**word).is_nan()).for_each(|word| *word = 0x7ff8 << 48);
        }
        self
    }
}

/// Returns a value's rank in its type's order. For `f64` that is IEEE 754's total order of numbers,
/// with all NaNs equal and above them.
fn rank(bits: u64, float: bool) -> u64 {
    match float {
        false => bits,
        true if f64::from_bits(bits).is_nan() => u64::MAX,
        true if bits >> 63 == 1 => !bits,
        true => bits | 1 << 63,
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.op)?;
        let words = &self.words[..self.len()];
        match (self.op, self.float) {
            (ReduceOp::Barrier, _) => Ok(()),
            (_, false) => f.debug_list().entries(words).finish(),
            (_, true) => f.debug_list().entries(words.iter().map(|bits| f64::from_bits(*bits))).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReduceOp::*, *};

    fn merged<T: GateValue>(op: ReduceOp, a: &[T], b: &[T]) -> Vec<T> {
        let (a, b) = (Values::new(op, a).unwrap(), Values::new(op, b).unwrap());
        let (mut ab, mut ba) = (a, b);
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!(ab.canonical(), ba.canonical(), "the order of arrival");
        (0..ab.len()).map(|i| ab.get(i).unwrap()).collect()
    }

    #[test]
    fn integers() {
        assert_eq!(merged(BitAnd, &[6u64, 1], &[3, 1]), [2, 1]);
        assert_eq!(merged(BitOr, &[6u64], &[3]), [7]);
        assert_eq!(merged(BitXor, &[6u64], &[3]), [5]);
        assert_eq!(merged(Max, &[6u64, 0, 1 << 63], &[3, 9, 1]), [6, 9, 1 << 63]);
        assert_eq!(merged(Sum, &[u64::MAX; 6], &[2; 6]), [1; 6]);
        assert_eq!(merged(MaxLoc, &[6u64, 7, 5, 5, 1, 1], &[6, 3, 4, 1, 2, 9]), [6, 3, 5, 5, 2, 9]);
    }

    #[test]
    fn floats() {
        assert_eq!(merged(Max, &[-1.0, -0.0, f64::NEG_INFINITY], &[-2.0, 0.0, -1e308]), [-1.0, 0.0, -1e308]);
        assert!(merged(Max, &[-0.0], &[0.0])[0].is_sign_positive());
        assert!(merged(Max, &[f64::NAN], &[f64::INFINITY])[0].is_nan());
        assert_eq!(merged(MaxLoc, &[2.5, 4.0], &[2.5, 3.0]), [2.5, 3.0]);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        assert_eq!(Values::new(Sum, &[1.0]), Err(GateError::NoSuchReduction { op: Sum, on: "f64" }));
        assert_eq!(Values::new(BfpSum, &[1u64]), Err(GateError::NoSuchReduction { op: BfpSum, on: "u64" }));
        assert_eq!(Values::new(Barrier, &[1u64]), Err(GateError::NoSuchReduction { op: Barrier, on: "u64" }));
        assert_eq!(Values::new(Sum, &[1u64; 7]), Err(GateError::TooManyValues { given: 7, limit: 6 }));
        assert_eq!(Values::new(BfpSum, &[1.0; 4]), Err(GateError::TooManyValues { given: 4, limit: 3 }));
        assert_eq!(Values::new(MaxLoc, &[1u64; 3]), Err(GateError::NoPairs { given: 3 }));
        assert_eq!(Values::new::<f64>(Barrier, &[]), Ok(Values::BARRIER));
        assert_eq!(Values::new(Sum, &[1u64]).unwrap().get::<f64>(0), None);
    }
}
