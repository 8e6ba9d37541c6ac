//! Lists.

mod bulk;
mod calls;
mod change;
mod iter;
mod node;

pub use iter::ListIter;

use super::Stored;
use crate::{Acp, AcpError, GlobalAddress, Result};
use core::{cmp::Ordering, fmt, future::Future, marker::PhantomData};
use node::{Node, RawList};
use rdma_fabric::{Rank, provider::Boxed};

/// A position in a list: an element, or the end. Plain data, valid at all ranks until the element
/// is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// The address of the list.
    pub list: GlobalAddress,
    /// The address of the element; that of the list for the end.
    pub element: GlobalAddress,
}

impl ListPosition {
    /// Returns whether this is the end of its list, after all elements.
    pub fn is_end(self) -> bool {
        self.element == self.list
    }
}

/// An element of a list, with the location of its value, which any rank may access there until the
/// element is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListElement {
    /// The position of the element.
    pub position: ListPosition,
    /// The address of the value.
    pub value: GlobalAddress,
    /// Bytes of the value.
    pub bytes: u64,
}

/// A doubly linked list in the memory of any number of ranks, as in ACP 3.0: each element is in the
/// heap of the rank that its insertion names, and keeps its address until it is erased.
///
/// # Layout
/// The list consists of three words: the addresses of head and tail, and the count. An element
/// consists of next, previous, size in bytes, and value. The list itself follows the tail and
/// precedes the head.
///
/// # Concurrent use
/// Any rank may use the list, but only one at a time: there is no lock, so callers have to order
/// calls that change a list with all other calls on it. When a call returns, its effect is visible
/// to all ranks.
///
/// # Errors
/// In addition to the errors listed for each method: [`AcpError::Fabric`] if a rank is lost, and
/// [`AcpError::Damaged`] if the memory does not hold a list because other code has written to it.
///
/// # Dropped futures
/// A change that has started is completed; memory may stay allocated.
pub struct List<T: ?Sized> {
    raw: RawList,
    types: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Clone for List<T> {
    fn clone(&self) -> Self {
        List { raw: self.raw.clone(), types: PhantomData }
    }
}

impl<T: ?Sized> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List({:?})", self.raw.at)
    }
}

fn value_of<T: Stored + ?Sized>(node: &Node) -> Result<T::Owned> {
    T::from_bytes(&node.value).ok_or(AcpError::OtherType { address: node.address })
}

/// Boxes a future, which is compiled in this crate.
fn boxed<'a, Out>(future: impl Future<Output = Result<Out>> + Send + 'a) -> Boxed<'a, Result<Out>> {
    Box::pin(future)
}

/// The list as a whole.
impl<T: Stored + ?Sized> List<T> {
    /// Creates an empty list, whose words are in a rank's heap.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`]; [`AcpError::NoSuchRank`].
    pub async fn create(acp: &Acp, rank: Rank) -> Result<Self> {
        Ok(List { raw: boxed(RawList::create(acp, rank)).await?, types: PhantomData })
    }

    /// Opens an existing list by its [address](List::address).
    pub fn from_address(acp: &Acp, address: GlobalAddress) -> Self {
        List { raw: RawList { acp: acp.clone(), at: address }, types: PhantomData }
    }

    /// Returns the address, by which other ranks open it.
    pub fn address(&self) -> GlobalAddress {
        self.raw.at
    }

    /// Frees all memory.
    pub fn destroy(self) -> impl Future<Output = Result<()>> {
        boxed(self.raw.destroy())
    }

    /// Returns the number of elements.
    pub fn len(&self) -> impl Future<Output = Result<usize>> {
        boxed(self.raw.len())
    }

    /// Returns whether there are no elements.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Erases all elements.
    pub fn clear(&self) -> impl Future<Output = Result<()>> {
        boxed(self.raw.clear())
    }

    /// Exchanges the elements with those of another list, without moving any in memory.
    pub fn swap<'a>(&'a self, other: &'a Self) -> impl Future<Output = Result<()>> + 'a {
        boxed(self.raw.swap(&other.raw))
    }

    /// Replaces the elements with copies of another list's elements, each at the rank of the
    /// original.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`], and nothing has changed.
    pub async fn assign(&self, from: &Self) -> Result<()> {
        self.assign_range(from, from.begin().await?, from.end()).await
    }

    /// Replaces the elements with copies of the elements of `from` in `start..end`.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`] and [`AcpError::NoSuchElement`], and nothing has changed.
    pub fn assign_range<'a>(
        &'a self,
        from: &'a Self,
        start: ListPosition,
        end: ListPosition,
    ) -> impl Future<Output = Result<()>> + 'a {
        boxed(self.raw.assign_range(&from.raw, start, end))
    }

    /// Returns all elements, without reading their values.
    pub async fn elements(&self) -> Result<Vec<ListElement>> {
        let element = |(address, bytes)| {
            let value = RawList::value_at(address)?;
            Ok(ListElement { position: self.raw.position(address), value, bytes })
        };
        boxed(self.raw.sizes()).await?.into_iter().map(element).collect()
    }

    /// Arranges the elements in the order of `positions`, which has each of them once. No element
    /// moves in memory.
    ///
    /// # Errors
    /// [`AcpError::NoSuchElement`], and nothing has changed, if `positions` has anything else than
    /// each element once.
    pub fn arrange<'a>(&'a self, positions: &'a [ListPosition]) -> impl Future<Output = Result<()>> + 'a {
        boxed(self.raw.arrange(positions))
    }

    /// Reverses the order of the elements.
    pub fn reverse(&self) -> impl Future<Output = Result<()>> {
        boxed(self.raw.reverse())
    }

    /// Sorts the elements. The sort is stable; no element moves in memory.
    ///
    /// # Errors
    /// [`AcpError::OtherType`].
    pub async fn sort_by(&self, mut compare: impl FnMut(&T::Owned, &T::Owned) -> Ordering) -> Result<()> {
        let mut values = self.values().await?;
        values.sort_by(|(_, left), (_, right)| compare(left, right));
        boxed(self.raw.reorder(values.into_iter().map(|(address, _)| address).collect())).await
    }

    /// Sorts the elements.
    ///
    /// # Errors
    /// [`AcpError::OtherType`].
    pub async fn sort(&self) -> Result<()>
    where
        T::Owned: Ord,
    {
        self.sort_by(Ord::cmp).await
    }

    /// Moves the elements of another list into this one; the other list is empty afterwards. If
    /// both are sorted, so is the result. Of equal elements, those of this list come first.
    ///
    /// # Errors
    /// [`AcpError::OtherType`].
    pub async fn merge_by(
        &self,
        other: &Self,
        mut compare: impl FnMut(&T::Owned, &T::Owned) -> Ordering,
    ) -> Result<()> {
        if self.raw.at == other.raw.at {
            return Ok(());
        }
        let mut left = self.values().await?.into_iter().peekable();
        let mut right = other.values().await?.into_iter().peekable();
        let mut order = vec![];
        while let (Some((_, mine)), Some((_, theirs))) = (left.peek(), right.peek()) {
            let next = if compare(mine, theirs).is_gt() { right.next() } else { left.next() };
            order.extend(next.map(|(address, _)| address));
        }
        order.extend(left.chain(right).map(|(address, _)| address));
        boxed(self.raw.reorder_with(&other.raw, order)).await
    }

    /// Moves the elements of another list into this one; both have to be sorted.
    ///
    /// # Errors
    /// [`AcpError::OtherType`].
    pub async fn merge(&self, other: &Self) -> Result<()>
    where
        T::Owned: Ord,
    {
        self.merge_by(other, Ord::cmp).await
    }

    /// Erases each element that is byte-wise equal to the one before it; returns the number of
    /// erased elements. It is `unique` in ACP and C++.
    #[doc(alias = "unique")]
    pub fn dedup(&self) -> impl Future<Output = Result<usize>> {
        boxed(self.raw.dedup())
    }

    /// Erases all elements with a value; returns the number of erased elements.
    pub fn remove<'a>(&'a self, value: &'a T) -> impl Future<Output = Result<usize>> + 'a {
        boxed(self.raw.remove(value.stored()))
    }

    /// Returns all elements: address and value.
    async fn values(&self) -> Result<Vec<(GlobalAddress, T::Owned)>> {
        let nodes = boxed(self.raw.load()).await?;
        nodes.iter().map(|node| Ok((node.address, value_of::<T>(node)?))).collect()
    }
}
