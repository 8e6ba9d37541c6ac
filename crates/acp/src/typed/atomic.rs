//! A word that is changed by atomics.

use super::GlobalPtr;
use crate::{Acp, GlobalAddress, Handle, Order, Result};
use core::{fmt, future::Future};
use rdma_fabric::{Amo, AtomicWord, Rank};

/// The address of an aligned `u32` or `u64` in any rank's memory, which ranks change by atomics: 8
/// bytes.
///
/// Each call completes when its effect is visible, and yields the word's previous value;
/// [`GlobalAtomic::update`] follows the order of [`Acp::copy`] instead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GlobalAtomic<W> {
    word: GlobalPtr<W>,
}

/// Defines the methods that change the word in one way.
macro_rules! changes {
    ($($(#[$doc:meta])* $method:ident($($arg:ident),*) = $amo:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As [`Acp::fetch`].
        #[inline]
        pub fn $method(self, acp: &Acp, $($arg: W),*) -> impl Future<Output = Result<W>> {
            acp.fetch_by(self.address(), move || $amo)
        }
    )*};
}

impl<W: AtomicWord> GlobalAtomic<W> {
    /// Makes an atomic of the word at an address.
    ///
    /// # Errors
    /// [`AcpError::Misaligned`](crate::AcpError::Misaligned) unless the address is aligned to the
    /// word's size.
    #[inline]
    pub fn new(address: GlobalAddress) -> Result<Self> {
        Ok(GlobalAtomic { word: GlobalPtr::new(address)? })
    }

    #[inline]
    pub(super) fn of(word: GlobalPtr<W>) -> Self {
        GlobalAtomic { word }
    }

    /// Returns the word as an element.
    #[inline]
    pub const fn as_ptr(self) -> GlobalPtr<W> {
        self.word
    }

    /// Returns the word's address.
    #[inline]
    pub const fn address(self) -> GlobalAddress {
        self.word.address()
    }

    /// Returns the rank whose memory contains the word.
    #[inline]
    pub const fn rank(self) -> Rank {
        self.address().rank()
    }

    /// Reads the word.
    ///
    /// # Errors
    /// As [`Acp::fetch`].
    #[inline]
    pub fn load(self, acp: &Acp) -> impl Future<Output = Result<W>> {
        acp.load(self.address())
    }

    /// Writes the word; returns when the write is visible.
    ///
    /// # Errors
    /// As [`Acp::fetch`].
    #[inline]
    pub fn store(self, acp: &Acp, value: W) -> impl Future<Output = Result<()>> {
        acp.store(self.address(), value)
    }

    changes! {
        /// Stores; returns the previous value.
        swap(new) = Amo::Swap(new);
        /// Stores `new` if the word equals `expected`; returns the previous value, which equals
        /// `expected` on success.
        compare_swap(expected, new) = Amo::CompareSwap { expected, new };
        /// Adds, wrapping around on overflow; returns the previous value.
        fetch_add(add) = Amo::Add(add);
        /// Subtracts, wrapping around on overflow; returns the previous value.
        fetch_sub(subtract) = Amo::Add(W::from_bits(subtract.to_bits().wrapping_neg()));
        /// Sets the bits that are set in `bits`; returns the previous value.
        fetch_or(bits) = Amo::Or(bits);
        /// Keeps the bits that are set in `bits`; returns the previous value.
        fetch_and(bits) = Amo::And(bits);
        /// Inverts bits; returns the previous value.
        fetch_xor(bits) = Amo::Xor(bits);
    }

    /// Changes the word, and stores its previous value at `to`, which must be this rank's own, as
    /// [`Acp::atomic`] does: returns when the operation is issued.
    ///
    /// # Errors
    /// As [`Acp::atomic`].
    #[inline]
    pub fn update(
        self,
        acp: &Acp,
        to: GlobalPtr<W>,
        amo: Amo<W>,
        order: impl Into<Order>,
    ) -> impl Future<Output = Result<Handle>> {
        acp.atomic(to.address(), self.address(), amo, order)
    }
}

impl<W> fmt::Debug for GlobalAtomic<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "atomic {:?}", self.word)
    }
}
