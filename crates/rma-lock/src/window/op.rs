//! The effect of accumulates on an element, and the types of elements.

use rdma_fabric::{Amo, Pod};

/// The effect of an accumulate on each element (MPI's predefined operations).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Add; integers wrap (`MPI_SUM`).
    Sum,
    /// Multiply; integers wrap (`MPI_PROD`).
    Prod,
    /// Keep the minimum; of a number and a NaN, the number (`MPI_MIN`).
    Min,
    /// Keep the maximum; of a number and a NaN, the number (`MPI_MAX`).
    Max,
    /// Bitwise and (`MPI_BAND`). Integers only.
    BitAnd,
    /// Bitwise or (`MPI_BOR`). Integers only.
    BitOr,
    /// Bitwise exclusive or (`MPI_BXOR`). Integers only.
    BitXor,
    /// 1 if neither is 0, else 0 (`MPI_LAND`). Integers only.
    And,
    /// 1 if at least one of them is not 0, else 0 (`MPI_LOR`). Integers only.
    Or,
    /// 1 if exactly one of them is 0, else 0 (`MPI_LXOR`). Integers only.
    Xor,
    /// Store (`MPI_REPLACE`).
    Replace,
    /// Change nothing: an atomic read, if the previous value is requested (`MPI_NO_OP`).
    NoOp,
}

/// The way in which an element is changed.
#[derive(Clone, Copy, Debug)]
pub enum UpdateForm {
    /// By an atomic of the fabric with this operand.
    Atomic(fn(u64) -> Amo<u64>),
    /// By compare-and-swap, repeated until no other rank has intervened: computes the new bits from
    /// the old bits and the operand.
    Compute(fn(u64, u64) -> u64),
    /// By a single compare-and-swap that expects these bits.
    Exchange(u64),
}

mod sealed {
    pub trait Sealed {}
}

/// The element types that accumulates support: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "a window has no elements of type `{Self}`",
    note = "its elements are `u32`, `i32`, `u64`, `i64`, `f32` and `f64`; memory of other types is under a lock in `Locked`, or is reached by `RemoteSpan`s"
)]
pub trait WindowElement: Pod + Unpin + sealed::Sealed {
    /// Returns the bits, zero-extended.
    fn bits(self) -> u64;

    /// Returns the element with these low bits.
    fn of_bits(bits: u64) -> Self;

    /// Returns the form in which the fabric executes `op`; `None` if it is not defined for these
    /// elements.
    #[doc(hidden)]
    fn form(op: Op) -> Option<UpdateForm>;
}

/// Returns the form of an operation that is the same for all elements.
fn common(op: Op) -> Option<UpdateForm> {
    match op {
        Op::Replace => Some(UpdateForm::Atomic(Amo::Swap)),
        Op::NoOp => Some(UpdateForm::Atomic(|_| Amo::Or(0))),
        _ => None,
    }
}

macro_rules! integers {
    ($($element:ty: $unsigned:ty),*) => {$(
        impl sealed::Sealed for $element {}
        impl WindowElement for $element {
            #[inline]
            fn bits(self) -> u64 { self as $unsigned as u64 }
            #[inline]
            fn of_bits(bits: u64) -> Self { bits as $element }
            fn form(op: Op) -> Option<UpdateForm> {
                let compute: fn(u64, u64) -> u64 = match op {
                    Op::Sum => return Some(UpdateForm::Atomic(Amo::Add)),
                    Op::BitAnd => return Some(UpdateForm::Atomic(Amo::And)),
                    Op::BitOr => return Some(UpdateForm::Atomic(Amo::Or)),
                    Op::BitXor => return Some(UpdateForm::Atomic(Amo::Xor)),
                    Op::Prod => |a, b| Self::of_bits(a).wrapping_mul(Self::of_bits(b)).bits(),
                    Op::Min => |a, b| Self::of_bits(a).min(Self::of_bits(b)).bits(),
                    Op::Max => |a, b| Self::of_bits(a).max(Self::of_bits(b)).bits(),
                    Op::And => |a, b| (a != 0 && b != 0).into(),
                    Op::Or => |a, b| (a != 0 || b != 0).into(),
                    Op::Xor => |a, b| ((a != 0) != (b != 0)).into(),
                    Op::Replace | Op::NoOp => return common(op),
                };
                Some(UpdateForm::Compute(compute))
            }
        }
    )*};
}
integers!(u32: u32, i32: u32, u64: u64, i64: u64);

macro_rules! floats {
    ($($element:ty: $unsigned:ty),*) => {$(
        impl sealed::Sealed for $element {}
        impl WindowElement for $element {
            #[inline]
            fn bits(self) -> u64 { self.to_bits().into() }
            #[inline]
            fn of_bits(bits: u64) -> Self { <$element>::from_bits(bits as $unsigned) }
            fn form(op: Op) -> Option<UpdateForm> {
                let compute: fn(u64, u64) -> u64 = match op {
                    Op::Sum => |a, b| (Self::of_bits(a) + Self::of_bits(b)).bits(),
                    Op::Prod => |a, b| (Self::of_bits(a) * Self::of_bits(b)).bits(),
                    Op::Min => |a, b| Self::of_bits(a).min(Self::of_bits(b)).bits(),
                    Op::Max => |a, b| Self::of_bits(a).max(Self::of_bits(b)).bits(),
                    Op::Replace | Op::NoOp => return common(op),
                    Op::BitAnd | Op::BitOr | Op::BitXor | Op::And | Op::Or | Op::Xor => return None,
                };
                Some(UpdateForm::Compute(compute))
            }
        }
    )*};
}
floats!(f32: u32, f64: u64);

impl Op {
    /// Returns the result of the operation on `old` and `operand`; `None` if it is not defined for
    /// these elements.
    pub fn apply<T: WindowElement>(self, old: T, operand: T) -> Option<T> {
        T::form(self).map(|form| {
            T::of_bits(match form {
                UpdateForm::Atomic(amo) => amo(operand.bits()).apply(old.bits()),
                UpdateForm::Compute(compute) => compute(old.bits(), operand.bits()),
                UpdateForm::Exchange(expected) if expected == old.bits() => operand.bits(),
                UpdateForm::Exchange(_) => old.bits(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_element() {
        assert_eq!(Op::Sum.apply(i32::MAX, 1), Some(i32::MIN));
        assert_eq!(Op::Prod.apply(-3i64, 5), Some(-15));
        assert_eq!(Op::Min.apply(-1i32, 1), Some(-1));
        assert_eq!(Op::Min.apply(u32::MAX, 1), Some(1));
        assert_eq!(Op::Max.apply(1.5f32, -2.0), Some(1.5));
        assert_eq!(Op::Max.apply(f64::NAN, -2.0), Some(-2.0));
        assert_eq!(Op::Sum.apply(0.25f64, 0.5), Some(0.75));
        assert_eq!(Op::And.apply(4u32, 2), Some(1));
        assert_eq!(Op::Xor.apply(4i64, 2), Some(0));
        assert_eq!(Op::BitXor.apply(6u64, 3), Some(5));
        assert_eq!(Op::Replace.apply(6.0f32, 3.0), Some(3.0));
        assert_eq!(Op::NoOp.apply(6i32, 3), Some(6));
        assert_eq!(Op::BitOr.apply(6.0f64, 3.0), None);
    }
}
