//! The operations of reductions.

use core::cmp::Ordering::{self, Equal, Less};
use rdma_fabric::Pod;

/// An operation on each element (`fmpl_vsum`, `fmpl_vmax`, `fmpl_vmin`; paper, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The sum; integers wrap around on overflow.
    Sum,
    /// The element of the greatest magnitude, which is the absolute value, and of a complex number
    /// |re| + |im|. Among those of the same magnitude it is the greatest, among complex numbers the
    /// one with the greatest real part, then imaginary part, whichever members they come from. If
    /// there is a NaN, the result is one.
    AbsMax,
    /// The element of the least magnitude; among those of the same magnitude, again the greatest.
    /// If there is a NaN, the result is one.
    AbsMin,
}

/// The elements that an [`Op`] works on: `i32`, `f32`, `f64`, and complex numbers as `[f32; 2]` and
/// `[f64; 2]`, the real part first (`I`, `S`, `D`, `C` and `Z` of the BLACS).
pub trait Scalar: Pod + Send + Sync + sealed::Arithmetic {}

mod sealed {
    use core::cmp::Ordering;

    pub trait Arithmetic: Copy + super::super::unit::Numbers {
        fn plus(self, other: Self) -> Self;
        /// Compares magnitudes; `None` if either is a NaN.
        fn compare(self, other: Self) -> Option<Ordering>;
        /// Orders values of the same magnitude.
        fn order(self, other: Self) -> Ordering;
    }
}

use sealed::Arithmetic;

impl Op {
    pub(crate) fn combine<T: Scalar>(self, mine: &mut [T], theirs: &[T]) {
        let pairs = mine.iter_mut().zip(theirs);
        match self {
            Op::Sum => pairs.for_each(|(mine, theirs)| *mine = mine.plus(*theirs)),
            Op::AbsMax => pairs.for_each(|(mine, theirs)| *mine = choose(*mine, *theirs, Ordering::Greater)),
            Op::AbsMin => pairs.for_each(|(mine, theirs)| *mine = choose(*mine, *theirs, Less)),
        }
    }
}

fn choose<T: Arithmetic>(mine: T, theirs: T, wanted: Ordering) -> T {
    let keep = match mine.compare(theirs) {
        Some(Equal) => mine.order(theirs) != Less,
        Some(order) => order == wanted,
        None => mine.compare(mine).is_none(),
    };
    if keep { mine } else { theirs }
}

impl Scalar for i32 {}

impl Arithmetic for i32 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn compare(self, other: Self) -> Option<Ordering> {
        Some(self.unsigned_abs().cmp(&other.unsigned_abs()))
    }

    fn order(self, other: Self) -> Ordering {
        self.cmp(&other)
    }
}

macro_rules! floating {
    ($($float:ty),*) => {$(
        impl Scalar for $float {}

        impl Arithmetic for $float {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn compare(self, other: Self) -> Option<Ordering> {
                self.abs().partial_cmp(&other.abs())
            }

            fn order(self, other: Self) -> Ordering {
                self.total_cmp(&other)
            }
        }

        impl Scalar for [$float; 2] {}

        impl Arithmetic for [$float; 2] {
            fn plus(self, other: Self) -> Self {
                [self[0] + other[0], self[1] + other[1]]
            }

            fn compare(self, other: Self) -> Option<Ordering> {
                (self[0].abs() + self[1].abs()).partial_cmp(&(other[0].abs() + other[1].abs()))
            }

            fn order(self, other: Self) -> Ordering {
                self[0].total_cmp(&other[0]).then(self[1].total_cmp(&other[1]))
            }
        }
    )*};
}
floating!(f32, f64);

#[cfg(test)]
mod tests {
    use super::{Op, Scalar};
    use core::fmt::Debug;

    fn both<T: Scalar + PartialEq + Debug>(op: Op, one: T, two: T, result: T) {
        for (mine, theirs) in [(one, two), (two, one)] {
            let mut values = [mine];
            op.combine(&mut values, &[theirs]);
            assert_eq!(values, [result], "{op:?} of {mine:?} and {theirs:?}");
        }
    }

    #[test]
    fn magnitudes_decide_and_then_values() {
        both(Op::AbsMax, -3, 2, -3);
        both(Op::AbsMin, -3, 2, 2);
        both(Op::AbsMax, i32::MIN, i32::MAX, i32::MIN);
        both(Op::Sum, i32::MAX, 1, i32::MIN);
        for op in [Op::AbsMax, Op::AbsMin] {
            both(op, -3, 3, 3);
            both(op, -2.5f32, 2.5, 2.5);
            both(op, [1.0f64, -4.0], [2.0, 3.0], [2.0, 3.0]);
            both(op, [2.0f32, -3.0], [2.0, 3.0], [2.0, 3.0]);
        }
        both(Op::AbsMax, [0.0f32, -6.0], [4.0, 1.0], [0.0, -6.0]);
        both(Op::AbsMin, [0.0f64, -6.0], [4.0, 1.0], [4.0, 1.0]);
        both(Op::Sum, [0.5f64, -6.0], [4.0, 1.0], [4.5, -5.0]);
    }

    #[test]
    fn a_nan_is_the_result() {
        for op in [Op::Sum, Op::AbsMax, Op::AbsMin] {
            for (mine, theirs) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
                let mut values = [mine];
                op.combine(&mut values, &[theirs]);
                assert!(values[0].is_nan(), "{op:?}");
            }
        }
    }
}
