//! Calls on one element or a range of a list.

use super::{List, ListIter, ListPosition, boxed, node::RawList, value_of};
use crate::{GlobalAddress, Result, container::Stored};
use core::future::Future;
use rdma_fabric::Rank;

/// Elements and positions.
impl<T: Stored + ?Sized> List<T> {
    /// Returns an iterator.
    ///
    /// # Errors
    /// As all calls.
    pub async fn iter(&self) -> Result<ListIter<T>> {
        Ok(self.iter_from(self.begin().await?))
    }

    /// Returns an iterator that starts at a position of this list.
    pub fn iter_from(&self, position: ListPosition) -> ListIter<T> {
        ListIter::new(&self.raw, position)
    }

    /// Returns the position of the first element; the end if there is none.
    pub fn begin(&self) -> impl Future<Output = Result<ListPosition>> {
        boxed(self.raw.begin())
    }

    /// Returns the end, which is after all elements.
    pub fn end(&self) -> ListPosition {
        self.raw.position(self.raw.at)
    }

    /// Returns the position after another one.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement) for the end, and for positions of other lists.
    pub fn next(&self, position: ListPosition) -> impl Future<Output = Result<ListPosition>> {
        boxed(self.raw.next(position))
    }

    /// Returns the position before another one, which may be the end.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement) for the first, and for positions of other lists.
    pub fn previous(&self, position: ListPosition) -> impl Future<Output = Result<ListPosition>> {
        boxed(self.raw.previous(position))
    }

    /// Returns the position `steps` steps after another one, or before it if `steps` is negative.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement), beyond both ends.
    pub fn advance(&self, position: ListPosition, steps: i64) -> impl Future<Output = Result<ListPosition>> {
        boxed(self.raw.advance(position, steps))
    }

    /// Returns the number of steps from one position to a later one.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement) if it is not a later one.
    pub fn distance(&self, first: ListPosition, last: ListPosition) -> impl Future<Output = Result<usize>> {
        boxed(self.raw.distance(first, last))
    }

    /// Returns the address and size of the value at a position, which any rank may access there.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement).
    pub async fn element(&self, position: ListPosition) -> Result<(GlobalAddress, u64)> {
        let element = self.raw.element(position)?;
        Ok((RawList::value_at(element)?, boxed(self.raw.links(element)).await?.count))
    }

    /// Returns the value at a position.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement);
    /// [`AcpError::OtherType`](crate::AcpError::OtherType).
    pub async fn get(&self, position: ListPosition) -> Result<T::Owned> {
        value_of::<T>(&boxed(self.raw.node(self.raw.element(position)?)).await?)
    }

    /// Returns the first value.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType).
    pub async fn front(&self) -> Result<Option<T::Owned>> {
        let first = self.begin().await?;
        if first.is_end() { Ok(None) } else { self.get(first).await.map(Some) }
    }

    /// Returns the last value.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType).
    pub async fn back(&self) -> Result<Option<T::Owned>> {
        let last = boxed(self.raw.last()).await?;
        if last.is_end() { Ok(None) } else { self.get(last).await.map(Some) }
    }
}

/// Changes.
impl<T: Stored + ?Sized> List<T> {
    /// Inserts a value before a position, in the heap of `rank`; returns its position.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted),
    /// [`AcpError::NoSuchRank`](crate::AcpError::NoSuchRank) and
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement), and nothing has changed.
    pub fn insert<'a>(
        &'a self,
        before: ListPosition,
        value: &'a T,
        rank: Rank,
    ) -> impl Future<Output = Result<ListPosition>> + 'a {
        boxed(self.raw.insert(before, value.stored(), rank))
    }

    /// Inserts copies of the elements of `from` in `start..end`, each at the rank of the original;
    /// returns the position of the first copy, or `before` if there is none.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted) and
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement), and nothing has changed.
    pub fn insert_range<'a>(
        &'a self,
        before: ListPosition,
        from: &'a Self,
        start: ListPosition,
        end: ListPosition,
    ) -> impl Future<Output = Result<ListPosition>> + 'a {
        boxed(self.raw.insert_range(before, &from.raw, start, end))
    }

    /// Appends a value, in the heap of `rank`.
    ///
    /// # Errors
    /// As [`List::insert`].
    pub async fn push_back(&self, value: &T, rank: Rank) -> Result<()> {
        self.insert(self.end(), value, rank).await.map(drop)
    }

    /// Inserts a value before all others, in the heap of `rank`.
    ///
    /// # Errors
    /// As [`List::insert`].
    pub async fn push_front(&self, value: &T, rank: Rank) -> Result<()> {
        self.insert(self.begin().await?, value, rank).await.map(drop)
    }

    /// Erases the last element; returns its value.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType), and the element is gone.
    pub async fn pop_back(&self) -> Result<Option<T::Owned>> {
        self.pop(boxed(self.raw.last()).await?).await
    }

    /// Erases the first element; returns its value.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType), and the element is gone.
    pub async fn pop_front(&self) -> Result<Option<T::Owned>> {
        self.pop(self.begin().await?).await
    }

    async fn pop(&self, position: ListPosition) -> Result<Option<T::Owned>> {
        if position.is_end() {
            return Ok(None);
        }
        value_of::<T>(&boxed(self.raw.erase_one(position)).await?.0).map(Some)
    }

    /// Erases an element; returns the position after it.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement).
    pub async fn erase(&self, position: ListPosition) -> Result<ListPosition> {
        Ok(boxed(self.raw.erase_one(position)).await?.1)
    }

    /// Erases the elements in `start..end`; returns `end`.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement), and nothing has changed.
    pub fn erase_range(&self, start: ListPosition, end: ListPosition) -> impl Future<Output = Result<ListPosition>> {
        boxed(self.raw.erase_range(start, end))
    }

    /// Moves an element of `from`, which may be this list, to before a position in this list. Its
    /// memory location does not change.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement).
    pub async fn splice(&self, before: ListPosition, from: &Self, position: ListPosition) -> Result<()> {
        let end = from.next(position).await?;
        self.splice_range(before, from, position, end).await
    }

    /// Moves the elements of `from` in `start..end` to before a position in this list. If the
    /// position is one of them, or `end`, nothing changes.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`](crate::AcpError::NoSuchElement), and nothing has changed.
    pub fn splice_range<'a>(
        &'a self,
        before: ListPosition,
        from: &'a Self,
        start: ListPosition,
        end: ListPosition,
    ) -> impl Future<Output = Result<()>> + 'a {
        boxed(self.raw.splice_range(before, &from.raw, start, end))
    }
}
