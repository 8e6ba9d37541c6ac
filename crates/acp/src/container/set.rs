//! Sets.

use super::{
    Entry, Iter, Position, Stored, TableRef,
    iter::decoded,
    table::{Amount, Element, Kind, Part, Table},
    table_api::table_front,
};
use crate::{Acp, GlobalAddress, Result};
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Rank, provider::Boxed};

/// A set of keys in the memory of several ranks: a hash table, as in ACP 3.0.
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
pub struct Set<K: ?Sized> {
    table: Table,
    types: PhantomData<fn(&K)>,
}

table_front!(Set<K>, Kind::Set, K::Owned, decode::<K>);

fn decode<K: Stored + ?Sized>(element: &Element) -> Result<K::Owned> {
    decoded::<K>(element, element.key())
}

impl<K: Stored + ?Sized> Set<K> {
    /// Inserts a key; returns whether it is new. If it is not, nothing changes.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), and nothing has changed;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub fn insert<'a>(&'a self, key: &'a K) -> impl Future<Output = Result<bool>> + 'a {
        self.table.insert(key.stored(), &[])
    }

    /// Removes a key; returns whether it was present.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove(&self, key: &K) -> Result<bool> {
        Ok(self.table.remove_boxed(key.stored(), Amount::One).await?.count > 0)
    }

    /// Returns whether a key is present.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn contains(&self, key: &K) -> Result<bool> {
        self.contains_key(key).await
    }
}
