//! The calls of vectors and deques.

use super::{Arrangement, Cursor, Deque, Sequence, bytes::Source, raw::Raw};
use crate::{Acp, GlobalAddress, Result};
use core::{future::Future, marker::PhantomData, ops::Range};
use rdma_fabric::{Pod, Rank};

impl<T: Pod, A: Arrangement> Sequence<T, A> {
    const UNIT: usize = {
        assert!(size_of::<T>() > 0, "elements must have bytes");
        size_of::<T>()
    };

    /// Creates an empty sequence in a rank's heap, with room for `capacity` elements.
    ///
    /// # Errors
    /// As [`Acp::malloc`].
    pub fn create(acp: &Acp, capacity: usize, rank: Rank) -> impl Future<Output = Result<Self>> {
        let made = Raw::create(acp, capacity, rank, A::FORM, Self::UNIT);
        async move { Ok(Sequence { raw: made.await?, of: PhantomData }) }
    }

    /// Creates a sequence of `len` elements whose bytes are 0, in a rank's heap.
    ///
    /// # Errors
    /// As [`Acp::malloc`], with nothing allocated.
    pub async fn create_zeroed(acp: &Acp, len: usize, rank: Rank) -> Result<Self> {
        let made = Self::create(acp, len, rank).await?;
        // Only after the heap allocation has succeeded, because nothing else limits the length.
        match made.extend_from_slice(&vec![T::zeroed(); len]).await {
            Ok(()) => Ok(made),
            Err(error) => made.destroy().await.and(Err(error)),
        }
    }

    /// Returns the sequence at an [address](Sequence::address). Nothing is checked here: each call
    /// reads the words at the address.
    pub fn from_address(acp: &Acp, address: GlobalAddress) -> Self {
        Sequence { raw: Raw::new(acp, address, A::FORM, Self::UNIT), of: PhantomData }
    }

    /// Returns the address of the sequence's words: all that another rank needs to open it.
    pub fn address(&self) -> GlobalAddress {
        self.raw.object
    }

    /// Frees the sequence and its elements. No rank may use it afterwards.
    pub fn destroy(self) -> impl Future<Output = Result<()>> {
        self.raw.destroy()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> impl Future<Output = Result<usize>> {
        let lengths = self.raw.lengths();
        async move { Ok(lengths.await?.0) }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool>> {
        let lengths = self.raw.lengths();
        async move { Ok(lengths.await?.0 == 0) }
    }

    /// Returns the number of elements that fit without reallocation.
    pub fn capacity(&self) -> impl Future<Output = Result<usize>> {
        let lengths = self.raw.lengths();
        async move { Ok(lengths.await?.1) }
    }

    /// Reserves room for `capacity` elements in total. May move the elements.
    pub fn reserve(&self, capacity: usize) -> impl Future<Output = Result<()>> {
        self.raw.reserve(capacity)
    }

    /// Removes all elements; the capacity is unchanged.
    pub fn clear(&self) -> impl Future<Output = Result<()>> {
        self.raw.clear()
    }

    /// Returns the address of the element at a position, which is valid until an element is
    /// inserted or removed, or room is reserved.
    pub fn at(&self, at: usize) -> impl Future<Output = Result<GlobalAddress>> {
        let pieces = self.raw.pieces(at..at.saturating_add(1));
        async move { Ok(pieces.await?[0].0) }
    }

    /// Returns the locations of elements: none, one or, in a deque, two pairs of an address and a
    /// number of bytes.
    pub fn pieces(&self, range: Range<usize>) -> impl Future<Output = Result<Vec<(GlobalAddress, usize)>>> {
        self.raw.pieces(range)
    }

    /// Reads the element at a position.
    pub async fn get(&self, at: usize) -> Result<T> {
        let mut element = T::zeroed();
        self.raw.read(at, bytemuck::bytes_of_mut(&mut element)).await?;
        Ok(element)
    }

    /// Reads `into.len()` elements, starting at a position.
    pub fn read<'a>(&'a self, at: usize, into: &'a mut [T]) -> impl Future<Output = Result<()>> + 'a {
        self.raw.read(at, bytemuck::cast_slice_mut(into))
    }

    /// Reads all elements.
    pub async fn to_vec(&self) -> Result<Vec<T>> {
        let mut read = vec![T::zeroed(); self.len().await?];
        self.read(0, &mut read).await?;
        Ok(read)
    }

    /// Overwrites the element at a position.
    pub fn set<'a>(&'a self, at: usize, element: &'a T) -> impl Future<Output = Result<()>> + 'a {
        self.raw.write(at, bytemuck::bytes_of(element))
    }

    /// Overwrites elements, starting at a position.
    pub fn write<'a>(&'a self, at: usize, elements: &'a [T]) -> impl Future<Output = Result<()>> + 'a {
        self.raw.write(at, bytemuck::cast_slice(elements))
    }

    /// Appends an element.
    pub fn push_back(&self, element: &T) -> impl Future<Output = Result<()>> {
        self.raw.insert(None, given(core::slice::from_ref(element)))
    }

    /// Appends elements.
    pub fn extend_from_slice(&self, elements: &[T]) -> impl Future<Output = Result<()>> {
        self.raw.insert(None, given(elements))
    }

    /// Appends `count` elements from the global memory of any rank.
    pub fn extend_from(&self, from: GlobalAddress, count: usize) -> impl Future<Output = Result<()>> {
        self.raw.insert(None, Source::Global(vec![(from, count.saturating_mul(Self::UNIT))]))
    }

    /// Removes and returns the last element.
    pub async fn pop_back(&self) -> Result<Option<T>> {
        self.pop(false).await
    }

    /// Inserts an element before a position, which may be the end.
    pub fn insert(&self, at: usize, element: &T) -> impl Future<Output = Result<()>> {
        self.raw.insert(Some(at), given(core::slice::from_ref(element)))
    }

    /// Inserts elements before a position.
    pub fn insert_slice(&self, at: usize, elements: &[T]) -> impl Future<Output = Result<()>> {
        self.raw.insert(Some(at), given(elements))
    }

    /// Inserts `count` elements from the global memory of any rank, before a position.
    pub fn insert_from(&self, at: usize, from: GlobalAddress, count: usize) -> impl Future<Output = Result<()>> {
        self.raw.insert(Some(at), Source::Global(vec![(from, count.saturating_mul(Self::UNIT))]))
    }

    /// Inserts elements of a sequence, which may be this one, before a position.
    pub fn insert_range<B: Arrangement>(
        &self,
        at: usize,
        from: &Sequence<T, B>,
        range: Range<usize>,
    ) -> impl Future<Output = Result<()>> {
        let pieces = from.raw.pieces(range);
        async move { self.raw.insert(Some(at), Source::Global(pieces.await?)).await }
    }

    /// Removes elements.
    pub fn erase(&self, range: Range<usize>) -> impl Future<Output = Result<()>> {
        self.raw.erase(range)
    }

    /// Removes and returns an element.
    pub async fn remove(&self, at: usize) -> Result<T> {
        let element = self.get(at).await?;
        self.erase(at..at.saturating_add(1)).await?;
        Ok(element)
    }

    /// Replaces all elements with those of another sequence.
    pub fn assign<B: Arrangement>(&self, from: &Sequence<T, B>) -> impl Future<Output = Result<()>> {
        let (lengths, from) = (from.raw.lengths(), &from.raw);
        async move {
            let all = from.pieces(0..lengths.await?.0).await?;
            self.raw.assign(Source::Global(all)).await
        }
    }

    /// Replaces all elements with a range of a sequence, which may be this one.
    pub fn assign_range<B: Arrangement>(
        &self,
        from: &Sequence<T, B>,
        range: Range<usize>,
    ) -> impl Future<Output = Result<()>> {
        let pieces = from.raw.pieces(range);
        async move { self.raw.assign(Source::Global(pieces.await?)).await }
    }

    /// Exchanges the elements of two sequences, without moving any.
    pub fn swap<'a>(&'a self, other: &'a Self) -> impl Future<Output = Result<()>> + 'a {
        self.raw.swap(&other.raw)
    }

    /// Returns a cursor before the first element.
    pub fn begin(&self) -> Cursor<T, A> {
        Cursor::new(self.clone(), 0)
    }

    /// Returns a cursor behind the last element.
    pub async fn end(&self) -> Result<Cursor<T, A>> {
        Ok(Cursor::new(self.clone(), self.len().await?))
    }

    async fn pop(&self, first: bool) -> Result<Option<T>> {
        let mut element = T::zeroed();
        let popped = self.raw.pop(first, bytemuck::bytes_of_mut(&mut element)).await?;
        Ok(popped.then_some(element))
    }
}

impl<T: Pod> Deque<T> {
    /// Inserts an element before the first one.
    pub fn push_front(&self, element: &T) -> impl Future<Output = Result<()>> {
        self.insert(0, element)
    }

    /// Removes and returns the first element.
    pub async fn pop_front(&self) -> Result<Option<T>> {
        self.pop(true).await
    }
}

fn given<T: Pod>(elements: &[T]) -> Source {
    Source::Given(bytemuck::cast_slice(elements).to_vec())
}
