//! Reductions by the barrier unit, which combines unsigned numbers: how elements are converted to
//! numbers so that the result is bitwise that of the tree (except for NaN payloads).
//!
//! * Sums of integers: the low 32 bits of a sum that wraps at 64 bits equal the sum that wraps at
//!   32. Sums of floating-point numbers depend on the order of the additions, which the unit does
//!   not define.
//! * The greatest magnitude of real numbers: the maximum of magnitude and sign. The least
//!   magnitude: the maximum of the difference between the greatest possible magnitude and the
//!   magnitude. A NaN exceeds all other values.
//! * Magnitudes of `[f32; 2]`: likewise and, among equal ones, the least "location", which is
//!   smaller the greater the real part is, then the imaginary part. `[f64; 2]` does not fit into
//!   two numbers.

use super::Op;
use crate::Result;
use rdma_fabric::{
    Fabric, LocalSpan, Pod,
    barrier::{GateValue, ReduceOp},
};

/// The maximum number of values that the unit combines in one operation.
pub(crate) const MOST: usize = <u64 as GateValue>::MOST;

/// How the unit executes an operation on a type.
pub(crate) struct ByUnit {
    pub(crate) op: ReduceOp,
    of: Op,
    /// The maximum number of elements.
    pub(crate) most: usize,
    /// The bytes of an element.
    pub(crate) size: usize,
    encode: fn(&Fabric, &LocalSpan<u8>, Op, &mut [u64; MOST]) -> Result<usize>,
    decode: fn(&Fabric, &LocalSpan<u8>, Op, &[u64]) -> Result<()>,
}

impl ByUnit {
    /// Returns how the unit executes an operation; `None` if it can't.
    pub(crate) fn new<T: Numbers>(of: Op) -> Option<Self> {
        let (op, numbers) = T::unit(of)?;
        Some(ByUnit { op, of, most: MOST / numbers, size: size_of::<T>(), encode: encode::<T>, decode: decode::<T> })
    }

    /// Converts elements to numbers; returns how many.
    pub(crate) fn encode(&self, fabric: &Fabric, span: &LocalSpan<u8>, numbers: &mut [u64; MOST]) -> Result<usize> {
        (self.encode)(fabric, span, self.of, numbers)
    }

    /// Converts numbers to elements.
    pub(crate) fn decode(&self, fabric: &Fabric, span: &LocalSpan<u8>, numbers: &[u64]) -> Result<()> {
        (self.decode)(fabric, span, self.of, numbers)
    }
}

fn encode<T: Numbers>(fabric: &Fabric, span: &LocalSpan<u8>, op: Op, numbers: &mut [u64; MOST]) -> Result<usize> {
    let (Some((_, each)), elements) = (T::unit(op), span.len() / size_of::<T>()) else { return Ok(0) };
    let mut all = [T::zeroed(); MOST];
    fabric.read(&*span.part_as::<T>(0, elements)?, &mut all[..elements])?;
    for (numbers, element) in numbers.chunks_exact_mut(each).zip(&all[..elements]) {
        element.put(op, numbers);
    }
    Ok(each * elements)
}

fn decode<T: Numbers>(fabric: &Fabric, span: &LocalSpan<u8>, op: Op, numbers: &[u64]) -> Result<()> {
    let (Some((_, each)), elements) = (T::unit(op), span.len() / size_of::<T>()) else { return Ok(()) };
    let mut all = [T::zeroed(); MOST];
    all.iter_mut().zip(numbers.chunks_exact(each)).for_each(|(element, numbers)| *element = T::take(op, numbers));
    Ok(fabric.write(&*span.part_as::<T>(0, elements)?, &all[..elements])?)
}

/// A type's elements as numbers.
pub trait Numbers: Pod {
    /// Returns the unit's operation, and the number of values per element; `None` if there is none.
    fn unit(op: Op) -> Option<(ReduceOp, usize)>;
    /// Converts an element.
    fn put(self, op: Op, numbers: &mut [u64]);
    /// Converts an element back.
    fn take(op: Op, numbers: &[u64]) -> Self;
}

/// Orders by magnitude as `op` requires, then by sign, positive last; the greatest magnitude is
/// `most`.
fn key(op: Op, magnitude: u64, most: u64, positive: bool) -> u64 {
    let wanted = if op == Op::AbsMin { most - magnitude } else { magnitude };
    wanted << 1 | u64::from(positive)
}

/// Returns the magnitude of a key, and whether the sign is positive.
fn of_key(op: Op, key: u64, most: u64) -> (u64, bool) {
    let wanted = key >> 1;
    (if op == Op::AbsMin { most - wanted } else { wanted }, key & 1 == 1)
}

impl Numbers for i32 {
    fn unit(op: Op) -> Option<(ReduceOp, usize)> {
        Some((if op == Op::Sum { ReduceOp::Sum } else { ReduceOp::Max }, 1))
    }

    fn put(self, op: Op, numbers: &mut [u64]) {
        numbers[0] = match op {
            Op::Sum => u64::from(self as u32),
            _ => key(op, self.unsigned_abs().into(), 1 << 31, self >= 0),
        };
    }

    fn take(op: Op, numbers: &[u64]) -> Self {
        match (op, of_key(op, numbers[0], 1 << 31)) {
            (Op::Sum, _) => numbers[0] as i32,
            (_, (magnitude, true)) => magnitude as i32,
            (_, (magnitude, false)) => (magnitude as i32).wrapping_neg(),
        }
    }
}

const NAN: u64 = u64::MAX;

macro_rules! real {
    ($($float:ty: $bits:ty),*) => {$(
        impl Numbers for $float {
            fn unit(op: Op) -> Option<(ReduceOp, usize)> {
                (op != Op::Sum).then_some((ReduceOp::Max, 1))
            }

            fn put(self, op: Op, numbers: &mut [u64]) {
                let (magnitude, most) = (u64::from(self.abs().to_bits()), u64::from(<$float>::INFINITY.to_bits()));
                numbers[0] = if self.is_nan() { NAN } else { key(op, magnitude, most, self.is_sign_positive()) };
            }

            fn take(op: Op, numbers: &[u64]) -> Self {
                if numbers[0] == NAN {
                    return <$float>::NAN;
                }
                let (magnitude, positive) = of_key(op, numbers[0], <$float>::INFINITY.to_bits().into());
                let magnitude = <$float>::from_bits(magnitude as $bits);
                if positive { magnitude } else { -magnitude }
            }
        }
    )*};
}
real!(f32: u32, f64: u64);

const SIGN: u32 = 1 << 31;

/// Returns a number that is greater the greater `value` is in the order of [`f32::total_cmp`].
fn ordered(value: f32) -> u32 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn of_ordered(number: u32) -> f32 {
    f32::from_bits(if number & SIGN == 0 { !number } else { number ^ SIGN })
}

impl Numbers for [f32; 2] {
    fn unit(op: Op) -> Option<(ReduceOp, usize)> {
        (op != Op::Sum).then_some((ReduceOp::MaxLoc, 2))
    }

    fn put(self, op: Op, numbers: &mut [u64]) {
        let magnitude = self[0].abs() + self[1].abs();
        let bits = magnitude.to_bits().into();
        numbers[0] = if magnitude.is_nan() { NAN } else { key(op, bits, f32::INFINITY.to_bits().into(), true) };
        numbers[1] = !(u64::from(ordered(self[0])) << 32 | u64::from(ordered(self[1])));
    }

    fn take(_: Op, numbers: &[u64]) -> Self {
        let place = !numbers[1];
        [of_ordered((place >> 32) as u32), of_ordered(place as u32)]
    }
}

impl Numbers for [f64; 2] {
    fn unit(_: Op) -> Option<(ReduceOp, usize)> {
        None
    }

    fn put(self, _: Op, _: &mut [u64]) {}

    fn take(_: Op, _: &[u64]) -> Self {
        [0.0; 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;
    use core::fmt::Debug;

    /// Applies the unit's operation to two elements.
    fn by_unit<T: Numbers>(op: Op, one: T, two: T) -> Option<T> {
        let (unit, each) = T::unit(op)?;
        let (mut a, mut b) = ([0; 2], [0; 2]);
        one.put(op, &mut a[..each]);
        two.put(op, &mut b[..each]);
        let a_first = (a[0], !a[1]) >= (b[0], !b[1]);
        let result = match unit {
            ReduceOp::Sum => [a[0].wrapping_add(b[0]), 0],
            ReduceOp::Max => [a[0].max(b[0]), 0],
            _ => [a, b][usize::from(!a_first)],
        };
        Some(T::take(op, &result[..each]))
    }

    fn same<T: Scalar + Debug + Numbers>(values: &[T]) {
        for op in [Op::Sum, Op::AbsMax, Op::AbsMin] {
            for (one, two) in values.iter().flat_map(|one| values.iter().map(move |two| (*one, *two))) {
                let mut expected = [one];
                op.combine(&mut expected, &[two]);
                if let Some(found) = by_unit(op, one, two) {
                    let (found, expected) = (bytemuck::bytes_of(&found), bytemuck::bytes_of(&expected[0]));
                    assert_eq!(found, expected, "{op:?} of {one:?} and {two:?}");
                }
            }
        }
    }

    #[test]
    fn the_unit_gives_the_bits_of_the_tree() {
        same(&[0, 1, -1, 2, -2, 7, i32::MAX, -i32::MAX, i32::MIN]);
        let reals =
            [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, f64::MIN_POSITIVE, 5e-324, f64::MAX, -f64::INFINITY, f64::INFINITY];
        same(&reals);
        let short = reals.map(|real| real as f32);
        same(&short);
        let pairs = short.iter().flat_map(|re| short.map(|im| [*re, im])).filter(|[re, im]| !(re + im).is_nan());
        same(&pairs.collect::<Vec<[f32; 2]>>());
    }

    #[test]
    fn a_nan_is_the_result() {
        for op in [Op::AbsMax, Op::AbsMin] {
            for other in [0.0, f64::INFINITY, -1.0] {
                assert!(by_unit(op, f64::NAN, other).expect("it can").is_nan());
                assert!(by_unit(op, other as f32, -f32::NAN).expect("it can").is_nan());
                let pair = by_unit(op, [1.0, f32::NAN], [other as f32, 3.0]).expect("it can");
                assert!(pair.iter().any(|part| part.is_nan()));
            }
        }
    }
}
