//! Typed pointers to resolved places in registered memory.
//!
//! Key, bounds and alignment are checked once, when a pointer is resolved; an operation through the
//! pointer then checks only that the region is still registered.

#![deny(clippy::arithmetic_side_effects)]

use crate::{AtomicWord, FabricError, Rank, RemoteAddr, Result, provider::Place};
use bytemuck::Pod;
use core::{fmt, marker::PhantomData, ops::Range};

macro_rules! pointer {
    ($(#[$doc:meta])* $name:ident<$elem:ident: $bound:ident> { $($field:ident: $ty:ty),* }) => {
        $(#[$doc])*
        pub struct $name<$elem: $bound> {
            place: Place,
            $($field: $ty,)*
            element: PhantomData<fn() -> $elem>,
        }

        impl<$elem: $bound> Clone for $name<$elem> {
            #[inline]
            fn clone(&self) -> Self {
                $name { place: self.place.clone(), $($field: self.$field,)* element: PhantomData }
            }
        }

        impl<$elem: $bound> fmt::Debug for $name<$elem> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let a = self.place.addr();
                write!(f, concat!(stringify!($name), "({} {:?}+{}, {} bytes)"), a.rank, a.region, a.offset, self.place.len())
            }
        }

        impl<$elem: $bound> $name<$elem> {
            /// Returns the place, for providers.
            #[inline(always)]
            pub fn place(&self) -> &Place {
                &self.place
            }

            /// Returns the rank to whose memory this points.
            #[inline]
            pub fn rank(&self) -> Rank {
                self.place.rank()
            }

            /// Returns the address from which this was resolved.
            #[inline]
            pub fn addr(&self) -> RemoteAddr {
                self.place.addr()
            }
        }
    };
}

pointer! {
    /// A word of any rank's memory, the target of atomics. Aligned to its size.
    RemoteWord<W: AtomicWord> {}
}
pointer! {
    /// Consecutive elements of any rank's memory, the target of puts and the source of gets.
    RemoteSpan<T: Pod> { elements: usize }
}
pointer! {
    /// A word of *local* registered memory, which a rank may load, store and wait on.
    LocalWord<W: AtomicWord> {}
}
pointer! {
    /// Consecutive elements of *local* registered memory.
    LocalSpan<T: Pod> { elements: usize }
}

impl<W: AtomicWord> RemoteWord<W> {
    pub(crate) fn new(place: Place) -> Self {
        RemoteWord { place, element: PhantomData }
    }

    /// Returns the word as a span of one element, for [`crate::Fabric::get`] and
    /// [`crate::Fabric::put`].
    #[inline]
    pub fn as_span(&self) -> RemoteSpan<W> {
        RemoteSpan { place: self.place.clone(), elements: 1, element: PhantomData }
    }
}

impl<W: AtomicWord> LocalWord<W> {
    pub(crate) fn new(place: Place) -> Self {
        LocalWord { place, element: PhantomData }
    }

    /// Returns whether peers' CPUs may write the word while this rank polls it: if so, polling
    /// briefly may avoid a wait.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.place.load(W::BYTES).is_some()
    }

    /// Returns this word as others see it, for atomics by this rank itself.
    #[inline]
    pub fn as_remote(&self) -> RemoteWord<W> {
        RemoteWord::new(self.place.clone())
    }
}

macro_rules! span {
    ($name:ident) => {
        impl<T: Pod> $name<T> {
            pub(crate) fn new(place: Place, elements: usize) -> Self {
                $name { place, elements, element: PhantomData }
            }

            /// Returns the number of elements.
            #[inline]
            #[allow(clippy::len_without_is_empty)]
            pub fn len(&self) -> usize {
                self.elements
            }

            /// Returns the elements in `range` of this span.
            ///
            /// # Errors
            /// [`FabricError::OutOfBounds`] if `range` is not inside.
            pub fn slice(&self, range: Range<usize>) -> Result<Self> {
                let elements = range.end.saturating_sub(range.start);
                let [start, len] = [range.start, elements].map(|n| n.saturating_mul(size_of::<T>()));
                (range.start <= range.end && range.end <= self.elements)
                    .then(|| self.place.part(start, len))
                    .flatten()
                    .map(|place| $name { place, elements, element: PhantomData })
                    .ok_or_else(|| {
                        let all = self.place.addr();
                        let addr = crate::RemoteAddr { offset: all.offset.saturating_add(start as u64), ..all };
                        FabricError::out_of_bounds(addr, len as u64, all.offset.saturating_add(self.place.len() as u64))
                    })
            }
        }
    };
}
span!(RemoteSpan);
span!(LocalSpan);

impl<T: Pod> LocalSpan<T> {
    /// Returns these elements as others see them.
    #[inline]
    pub fn as_remote(&self) -> RemoteSpan<T> {
        RemoteSpan::new(self.place.clone(), self.elements)
    }

    /// Returns these elements as bytes.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], which is possible only for a span that is not inside its
    /// region.
    pub fn as_bytes(&self) -> Result<LocalSpan<u8>> {
        Ok(LocalSpan::clone(&*self.part_as::<u8>(0, self.elements.saturating_mul(size_of::<T>()))?))
    }
}
