//! Resolved places in registered memory.
//!
//! Key, bounds and alignment are checked once, when a pointer is resolved; an operation through it then
//! checks only that the region is still registered.

use crate::{AtomicWord, FabricError, Rank, RemoteAddr, Result, fabric::Fabric};
use bytemuck::Pod;
use core::{fmt, marker::PhantomData, ops::Range};

/// A provider's own form of a resolved place: some bytes of one region.
///
/// A location is never longer than the part of the region that was checked.
pub trait Location: Clone + fmt::Debug + Unpin + 'static {
    /// Whose memory it is.
    fn rank(&self) -> Rank;

    /// The address it was resolved from.
    fn addr(&self) -> RemoteAddr;

    /// Length in bytes.
    fn len(&self) -> usize;

    /// Whether it covers no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part of `len` bytes from `offset` on, or `None` if it is not inside.
    fn part(&self, offset: usize, len: usize) -> Option<Self>;
}

macro_rules! pointer {
    ($(#[$doc:meta])* $name:ident<$elem:ident: $bound:ident> { $($field:ident: $ty:ty),* }) => {
        $(#[$doc])*
        pub struct $name<F: Fabric, $elem: $bound> {
            loc: F::Loc,
            $($field: $ty,)*
            element: PhantomData<fn() -> $elem>,
        }

        impl<F: Fabric, $elem: $bound> Clone for $name<F, $elem> {
            #[inline]
            fn clone(&self) -> Self {
                $name { loc: self.loc.clone(), $($field: self.$field,)* element: PhantomData }
            }
        }

        impl<F: Fabric, $elem: $bound> fmt::Debug for $name<F, $elem> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let a = self.loc.addr();
                write!(f, concat!(stringify!($name), "({} {:?}+{}, {} bytes)"), a.rank, a.region, a.offset, self.loc.len())
            }
        }

        impl<F: Fabric, $elem: $bound> $name<F, $elem> {
            /// The provider's location, for providers.
            #[inline(always)]
            pub fn loc(&self) -> &F::Loc {
                &self.loc
            }

            /// Whose memory it is.
            #[inline]
            pub fn rank(&self) -> Rank {
                self.loc.rank()
            }

            /// The address it was resolved from.
            #[inline]
            pub fn addr(&self) -> RemoteAddr {
                self.loc.addr()
            }

            /// The same place for another fabric with the same locations: a wrapper of this one, or what it wraps.
            #[inline]
            pub fn through<G: Fabric<Loc = F::Loc>>(&self) -> $name<G, $elem> {
                $name { loc: self.loc.clone(), $($field: self.$field,)* element: PhantomData }
            }
        }
    };
}

pointer! {
    /// One word of some rank's memory, the target of atomics. Aligned to its size.
    RemoteWord<W: AtomicWord> {}
}
pointer! {
    /// Consecutive elements of some rank's memory, the target of puts and the source of gets.
    RemoteSpan<T: Pod> { elements: usize }
}
pointer! {
    /// One word of *own* registered memory: what a rank may load, store and wait on.
    LocalWord<W: AtomicWord> {}
}
pointer! {
    /// Consecutive elements of *own* registered memory.
    LocalSpan<T: Pod> { elements: usize }
}

impl<F: Fabric, W: AtomicWord> RemoteWord<F, W> {
    pub(crate) fn new(loc: F::Loc) -> Self {
        RemoteWord { loc, element: PhantomData }
    }

    /// The word as a span of one element, for [`Fabric::get`] and [`Fabric::put`].
    #[inline]
    pub fn as_span(&self) -> RemoteSpan<F, W> {
        RemoteSpan { loc: self.loc.clone(), elements: 1, element: PhantomData }
    }
}

impl<F: Fabric, W: AtomicWord> LocalWord<F, W> {
    pub(crate) fn new(loc: F::Loc) -> Self {
        LocalWord { loc, element: PhantomData }
    }

    /// The same word as others see it, for atomics by this rank itself.
    #[inline]
    pub fn as_remote(&self) -> RemoteWord<F, W> {
        RemoteWord::new(self.loc.clone())
    }
}

macro_rules! span {
    ($name:ident) => {
        impl<F: Fabric, T: Pod> $name<F, T> {
            pub(crate) fn new(loc: F::Loc, elements: usize) -> Self {
                $name { loc, elements, element: PhantomData }
            }

            /// Number of elements.
            #[inline]
            #[allow(clippy::len_without_is_empty)]
            pub fn len(&self) -> usize {
                self.elements
            }

            /// The elements `range` of this span.
            ///
            /// # Errors
            /// [`FabricError::OutOfBounds`] if `range` is not inside.
            pub fn slice(&self, range: Range<usize>) -> Result<Self> {
                let elements = range.end.saturating_sub(range.start);
                (range.start <= range.end && range.end <= self.elements)
                    .then(|| self.loc.part(range.start * size_of::<T>(), elements * size_of::<T>()))
                    .flatten()
                    .map(|loc| $name { loc, elements, element: PhantomData })
                    .ok_or_else(|| {
                        let a = self.loc.addr();
                        FabricError::OutOfBounds {
                            rank: a.rank,
                            region: a.region,
                            offset: a.offset + (range.start * size_of::<T>()) as u64,
                            len: (elements * size_of::<T>()) as u64,
                            region_len: a.offset + self.loc.len() as u64,
                        }
                    })
            }
        }
    };
}
span!(RemoteSpan);
span!(LocalSpan);

impl<F: Fabric, T: Pod> LocalSpan<F, T> {
    /// The same elements as others see them.
    #[inline]
    pub fn as_remote(&self) -> RemoteSpan<F, T> {
        RemoteSpan::new(self.loc.clone(), self.elements)
    }
}
