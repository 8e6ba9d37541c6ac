//! Iterators over hash tables.

use super::table::{Element, Part, Scan, Table};
use crate::{AcpError, Result};
use core::fmt;
use rdma_fabric::provider::Boxed;

/// An iterator over a [`Set`](crate::Set), [`Multiset`](crate::Multiset), [`Map`](crate::Map) or
/// [`Multimap`](crate::Multimap): a cursor that is awaited. Elements are in the order of the slots,
/// and within a slot in the order of insertion.
///
/// It copies one slot at a time, atomically. So while other tasks insert and remove, it yields each
/// element that is present throughout exactly once, and none that was never present; elements
/// inserted, removed or [moved](crate::Map::append) in the meantime may or may not be yielded.
pub struct Iter<T> {
    scan: Scan,
    decode: fn(&Element) -> Result<T>,
}

impl<T> fmt::Debug for Iter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt(f)
    }
}

impl<T> Iter<T> {
    pub(super) fn new(table: &Table, asked: Part, decode: fn(&Element) -> Result<T>) -> Self {
        Iter { scan: Scan::new(table, asked), decode }
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// [`AcpError::OtherType`], after which iteration can continue; [`AcpError::Damaged`];
    /// [`AcpError::Fabric`], among others if a rank was lost while it held a slot.
    pub async fn next(&mut self) -> Result<Option<T>> {
        loop {
            if let Some(element) = self.scan.take() {
                return (self.decode)(&element).map(Some);
            }
            if !fill(&mut self.scan).await? {
                return Ok(None);
            }
        }
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    /// As [`Iter::next`].
    pub async fn collect<Out: Default + Extend<T>>(mut self) -> Result<Out> {
        let mut out = Out::default();
        while let Some(item) = self.next().await? {
            out.extend(Some(item));
        }
        Ok(out)
    }
}

fn fill(scan: &mut Scan) -> Boxed<'_, Result<bool>> {
    Box::pin(scan.fill())
}

/// Returns a value of an element from its bytes.
pub(super) fn decoded<T: super::Stored + ?Sized>(element: &Element, bytes: &[u8]) -> Result<T::Owned> {
    T::from_bytes(bytes).ok_or(AcpError::OtherType { address: element.address() })
}
