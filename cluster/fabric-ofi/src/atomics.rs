//! The atomics of an endpoint.

use crate::Amo;
use fabric_ofi_sys as sys;

/// The operation of an atomic on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    /// Load, which is always fetching.
    Read,
    /// Addition.
    Sum,
    /// Store.
    Swap,
    /// Store if the word equals an operand.
    CompareSwap,
    /// Bitwise or.
    Or,
    /// Bitwise and.
    And,
    /// Bitwise exclusive or.
    Xor,
}

impl AtomicKind {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Read, Self::Sum, Self::Swap, Self::CompareSwap, Self::Or, Self::And, Self::Xor];

    /// Returns the operation of an atomic.
    pub fn of<W>(amo: Amo<W>) -> Self {
        match amo {
            Amo::Add(_) => Self::Sum,
            Amo::Swap(_) => Self::Swap,
            Amo::CompareSwap { .. } => Self::CompareSwap,
            Amo::Or(_) => Self::Or,
            Amo::And(_) => Self::And,
            Amo::Xor(_) => Self::Xor,
        }
    }

    /// Returns its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Sum => "sum",
            Self::Swap => "swap",
            Self::CompareSwap => "compare-swap",
            Self::Or => "or",
            Self::And => "and",
            Self::Xor => "xor",
        }
    }
}

/// The type of a word in atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
}

impl WordKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::U32, Self::I32, Self::U64, Self::I64];

    /// Returns its name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::U64 => "u64",
            Self::I64 => "i64",
        }
    }
}

/// Returns libfabric's number for an operation.
pub(crate) fn operation(kind: AtomicKind) -> sys::fi_op {
    match kind {
        AtomicKind::Read => sys::FI_ATOMIC_READ,
        AtomicKind::Sum => sys::FI_SUM,
        AtomicKind::Swap => sys::FI_ATOMIC_WRITE,
        AtomicKind::CompareSwap => sys::FI_CSWAP,
        AtomicKind::Or => sys::FI_BOR,
        AtomicKind::And => sys::FI_BAND,
        AtomicKind::Xor => sys::FI_BXOR,
    }
}

/// Returns libfabric's number for a kind of word.
pub(crate) fn datatype(word: WordKind) -> sys::fi_datatype {
    match word {
        WordKind::U32 => sys::FI_UINT32,
        WordKind::I32 => sys::FI_INT32,
        WordKind::U64 => sys::FI_UINT64,
        WordKind::I64 => sys::FI_INT64,
    }
}

/// The atomics of an endpoint, each of which was queried separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Atomics(u64);

impl Atomics {
    fn bit(word: WordKind, kind: AtomicKind, fetching: bool) -> u64 {
        1 << ((word as u32 * 7 + kind as u32) * 2 + u32::from(fetching))
    }

    /// Returns the atomics for which `is_there` returns `true`.
    pub(crate) fn found(mut is_there: impl FnMut(WordKind, AtomicKind, bool) -> bool) -> Self {
        let mut all = Self::default();
        for word in WordKind::ALL {
            for kind in AtomicKind::ALL {
                for fetching in [false, true] {
                    all.set(word, kind, fetching, is_there(word, kind, fetching));
                }
            }
        }
        all
    }

    pub(crate) fn set(&mut self, word: WordKind, kind: AtomicKind, fetching: bool, there: bool) {
        let bit = Self::bit(word, kind, fetching);
        self.0 = if there { self.0 | bit } else { self.0 & !bit };
    }

    /// Returns whether this operation on this kind of word is supported; `fetching` if it must
    /// return the previous value. A read and a compare-swap always return it.
    pub fn has(self, word: WordKind, kind: AtomicKind, fetching: bool) -> bool {
        self.0 & Self::bit(word, kind, fetching) != 0
    }

    /// Returns the first missing atomic of those that words of 4 and 8 bytes need: loads and
    /// fetching changes, of which a swap is a store as well.
    pub(crate) fn lacks(self) -> Option<(AtomicKind, usize)> {
        let both = |kind| [(kind, WordKind::U32, 4), (kind, WordKind::U64, 8)];
        let missing = |(kind, word, _): &(AtomicKind, WordKind, usize)| !self.has(*word, *kind, true);
        let missing = AtomicKind::ALL.into_iter().flat_map(both).find(missing);
        missing.map(|(kind, _, width)| (kind, width))
    }

    /// Returns the fetching operations on this kind of word.
    pub fn fetching(self, word: WordKind) -> impl Iterator<Item = AtomicKind> {
        AtomicKind::ALL.into_iter().filter(move |kind| self.has(word, *kind, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_bit_of_its_own() {
        let mut all = Atomics::default();
        for word in WordKind::ALL {
            for kind in AtomicKind::ALL {
                for fetching in [false, true] {
                    assert!(!all.has(word, kind, fetching));
                    all.set(word, kind, fetching, true);
                    assert!(all.has(word, kind, fetching));
                }
            }
        }
        all.set(WordKind::U64, AtomicKind::Or, true, false);
        assert_eq!(all.fetching(WordKind::U64).count(), 6);
        assert_eq!(all.fetching(WordKind::I64).count(), 7);
    }

    #[test]
    fn each_that_words_need_is_asked_for_by_itself() {
        let all = Atomics::found(|_, _, _| true);
        assert_eq!(all.lacks(), None);
        for (word, width) in [(WordKind::U32, 4), (WordKind::U64, 8)] {
            for kind in AtomicKind::ALL {
                let mut less = all;
                less.set(word, kind, true, false);
                assert_eq!(less.lacks(), Some((kind, width)));
            }
        }
        let mut less = all;
        less.set(WordKind::I64, AtomicKind::Sum, true, false);
        less.set(WordKind::U64, AtomicKind::Sum, false, false);
        assert_eq!(less.lacks(), None, "of those that nobody uses, none is missed");
    }
}
