//! Multisets.

use super::{
    Entry, Iter, Position, Stored, TableRef,
    iter::decoded,
    table::{Amount, Element, Kind, Part, Table},
    table_api::table_front,
};
use crate::{Acp, GlobalAddress, Result};
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Rank, provider::Boxed};

/// A multiset of keys in the memory of several ranks: a [set](crate::Set) with a count for each
/// key, as in ACP 3.0.
///
/// # Concurrent use
/// Any rank that has [opened](Self::from_address) it may use it at any time, with any number of
/// tasks. A call that names a key locks the key's slot, so it is atomic with respect to other calls
/// on that key. Calls on all elements proceed slot by slot.
///
/// # Deaths
/// If a rank is lost while it holds a slot, every later call on that slot returns
/// [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost) of that rank, in bounded time.
///
/// # Dropped futures
/// A change that has started is completed. No slot stays locked; memory may stay allocated.
pub struct Multiset<K: ?Sized> {
    table: Table,
    types: PhantomData<fn(&K)>,
}

table_front!(Multiset<K>, Kind::Multiset, (K::Owned, u64), decode::<K>);

fn decode<K: Stored + ?Sized>(element: &Element) -> Result<(K::Owned, u64)> {
    Ok((decoded::<K>(element, element.key())?, element.count))
}

impl<K: Stored + ?Sized> Multiset<K> {
    /// Adds one to the count of a key; returns whether the key is new.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), and nothing has changed;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub fn insert<'a>(&'a self, key: &'a K) -> impl Future<Output = Result<bool>> + 'a {
        self.table.insert(key.stored(), &[])
    }

    /// Subtracts one from the count of a key; returns whether the key was present.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove(&self, key: &K) -> Result<bool> {
        Ok(self.table.remove_boxed(key.stored(), Amount::One).await?.count > 0)
    }

    /// Removes a key with its whole count; returns the count.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove_all(&self, key: &K) -> Result<u64> {
        Ok(self.table.remove_boxed(key.stored(), Amount::All).await?.count)
    }

    /// Returns the count of a key.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn count(&self, key: &K) -> Result<u64> {
        Ok(self.find(key).await?.map_or(0, |entry| entry.count))
    }
}
