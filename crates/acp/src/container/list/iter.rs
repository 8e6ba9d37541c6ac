//! Iterators over lists.

use super::{
    ListPosition,
    node::{Node, RawList},
    value_of,
};
use crate::{Result, container::Stored};
use core::{fmt, marker::PhantomData};
use rdma_fabric::provider::Boxed;

/// An iterator over a [`List`](crate::List): a cursor that is awaited. An element may be erased once
/// the iterator has passed it.
pub struct ListIter<T: ?Sized> {
    list: RawList,
    next: ListPosition,
    types: PhantomData<fn(&T)>,
}

impl<T: ?Sized> fmt::Debug for ListIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListIter({:?})", self.next)
    }
}

impl<T: Stored + ?Sized> ListIter<T> {
    pub(super) fn new(list: &RawList, next: ListPosition) -> Self {
        ListIter { list: list.clone(), next, types: PhantomData }
    }

    /// Returns the position of the next value that [`ListIter::next`] will yield.
    pub fn position(&self) -> ListPosition {
        self.next
    }

    /// Returns the next value; `None` at the end.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType), after which iteration can continue;
    /// [`AcpError::Damaged`](crate::AcpError::Damaged); [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn next(&mut self) -> Result<Option<T::Owned>> {
        if self.next.is_end() {
            return Ok(None);
        }
        let node = read(&self.list, self.next).await?;
        self.next = self.list.position(node.links.next);
        value_of::<T>(&node).map(Some)
    }

    /// Returns all remaining values.
    ///
    /// # Errors
    /// As [`ListIter::next`].
    pub async fn collect<Out: Default + Extend<T::Owned>>(mut self) -> Result<Out> {
        let mut out = Out::default();
        while let Some(value) = self.next().await? {
            out.extend(Some(value));
        }
        Ok(out)
    }
}

fn read(list: &RawList, position: ListPosition) -> Boxed<'_, Result<Node>> {
    Box::pin(list.node(position.element))
}
