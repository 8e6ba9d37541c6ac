//! The integers on which remote atomics operate.

use bytemuck::Pod;
use core::fmt::Debug;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// An integer of 4 or 8 bytes that every provider's atomics support: `u32` or `u64`.
///
/// Providers see the bits zero-extended to 64; arithmetic wraps at the word's own width, so adding
/// `n.wrapping_neg()` subtracts. Signed integers are not words: a bare `1` would be an `i32`, and a
/// word without an explicit width would silently have 4 bytes. As it is, this is an error:
///
/// ```compile_fail,E0277
/// # use rdma_fabric::{Fabric, RemoteAddr, Result};
/// async fn raise(fabric: Fabric, flag: RemoteAddr) -> Result<()> {
///     fabric.put_word(&fabric.remote_word(flag)?, 1).await
/// }
/// ```
///
/// Specify the width where the word is resolved, or by the value:
///
/// ```
/// # use rdma_fabric::{Fabric, RemoteAddr, Result};
/// async fn raise(fabric: Fabric, flag: RemoteAddr) -> Result<()> {
///     let word = fabric.remote_word::<u64>(flag)?;
///     fabric.put_word(&word, 1).await?;
///     fabric.put_word(&fabric.remote_word(flag)?, 2u64).await
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a word that can be read, written and changed as a whole",
    label = "a word is a `u32` or a `u64`",
    note = "name the width where the word is resolved, as in `remote_word::<u64>(…)`, or by the value, as in `1u64`: a bare `1` is an `i32`"
)]
pub trait AtomicWord: Pod + Eq + Ord + Debug + Send + Sync + Unpin + sealed::Sealed {
    /// Size and required alignment in bytes: 4 or 8.
    const BYTES: usize;

    /// Returns the bits, zero-extended.
    fn to_bits(self) -> u64;

    /// Returns the word with these low bits; higher bits are ignored.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! atomic_word {
    ($($word:ty),*) => {$(
        impl AtomicWord for $word {
            const BYTES: usize = size_of::<$word>();
            #[inline(always)]
            fn to_bits(self) -> u64 { self.into() }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $word }
        }
    )*};
}
atomic_word!(u32, u64);

/// A read-modify-write on one word. Every kind returns the previous value.
///
/// The operations are the ARMW operations of the Tofu2 NIC (Hatanaka et al., section 4.1) plus the
/// exclusive or of its programming interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amo<W> {
    /// Add, wrapping.
    Add(W),
    /// Store, and fetch the previous value.
    Swap(W),
    /// Store `new` if the word equals `expected`.
    CompareSwap {
        /// The value that the word must hold.
        expected: W,
        /// The value to store in that case.
        new: W,
    },
    /// Bitwise or.
    Or(W),
    /// Bitwise and.
    And(W),
    /// Bitwise exclusive or.
    Xor(W),
}

impl<W> Amo<W> {
    /// Converts the operands.
    #[inline(always)]
    pub fn map<V>(self, f: impl Fn(W) -> V) -> Amo<V> {
        match self {
            Amo::Add(v) => Amo::Add(f(v)),
            Amo::Swap(v) => Amo::Swap(f(v)),
            Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: f(expected), new: f(new) },
            Amo::Or(v) => Amo::Or(f(v)),
            Amo::And(v) => Amo::And(f(v)),
            Amo::Xor(v) => Amo::Xor(f(v)),
        }
    }
}

impl<W: AtomicWord> Amo<W> {
    /// Converts the operands to their [bits](AtomicWord::to_bits).
    #[inline(always)]
    pub fn to_bits(self) -> Amo<u64> {
        self.map(W::to_bits)
    }

    /// Returns the word's value after the operation on `old`: the arithmetic that every provider
    /// must agree on.
    #[inline]
    pub fn apply(self, old: W) -> W {
        let bits = |f: fn(u64, u64) -> u64, v: W| W::from_bits(f(old.to_bits(), v.to_bits()));
        match self {
            Amo::Add(v) => bits(u64::wrapping_add, v),
            Amo::Swap(v) => v,
            Amo::CompareSwap { expected, new } => {
                if old == expected {
                    new
                } else {
                    old
                }
            }
            Amo::Or(v) => bits(|a, b| a | b, v),
            Amo::And(v) => bits(|a, b| a & b, v),
            Amo::Xor(v) => bits(|a, b| a ^ b, v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_wraps_at_the_words_width() {
        assert_eq!(Amo::Add(1u32).apply(u32::MAX), 0);
        assert_eq!(Amo::Add(1u32.wrapping_neg()).apply(0), u32::MAX);
        assert_eq!(Amo::Add(4u64.wrapping_neg()).apply(3), u64::MAX);
        assert_eq!(Amo::And(!2u64).apply(7), 5);
        assert_eq!(Amo::CompareSwap { expected: 1, new: 9 }.apply(2u32), 2);
        assert_eq!(Amo::CompareSwap { expected: 2, new: 9 }.apply(2u32), 9);
    }
}
