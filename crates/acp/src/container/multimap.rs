//! Multimaps.

use super::{
    Entry, Iter, Position, Stored, TableRef,
    iter::decoded,
    table::{Amount, Element, Kind, Part, Table},
    table_api::table_front,
};
use crate::{Acp, GlobalAddress, Result};
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Rank, provider::Boxed};

/// A map in the memory of several ranks that keeps any number of values per key, in the order of
/// their insertion.
///
/// ACP 3.0 has no multimap. The layout is that of a [`Map`](crate::Map), with one element for each
/// value.
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
pub struct Multimap<K: ?Sized, V: ?Sized> {
    table: Table,
    types: PhantomData<fn(&K, &V)>,
}

table_front!(Multimap<K, V>, Kind::Multimap, (K::Owned, V::Owned), decode::<K, V>);

fn decode<K: Stored + ?Sized, V: Stored + ?Sized>(element: &Element) -> Result<(K::Owned, V::Owned)> {
    Ok((decoded::<K>(element, element.key())?, value_of::<V>(element)?))
}

fn value_of<V: Stored + ?Sized>(element: &Element) -> Result<V::Owned> {
    decoded::<V>(element, element.value())
}

impl<K: Stored + ?Sized, V: Stored + ?Sized> Multimap<K, V> {
    /// Adds a value to the values of a key.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), and nothing has changed;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn insert(&self, key: &K, value: &V) -> Result<()> {
        self.table.insert(key.stored(), value.stored()).await.map(drop)
    }

    /// Returns a copy of the oldest value of a key.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType); [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        self.table.get(key.stored()).await?.as_ref().map(value_of::<V>).transpose()
    }

    /// Returns copies of all values of a key, oldest first.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType); [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn get_all(&self, key: &K) -> Result<Vec<V::Owned>> {
        self.table.get_all_boxed(key.stored()).await?.iter().map(value_of::<V>).collect()
    }

    /// Copies the oldest value of a key into `into`, truncated to its length; returns the length of
    /// the whole value.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub fn retrieve<'a>(&'a self, key: &'a K, into: &'a mut [u8]) -> impl Future<Output = Result<Option<usize>>> + 'a {
        let retrieved: Boxed<'a, Result<Option<usize>>> = Box::pin(self.table.retrieve(key.stored(), into));
        retrieved
    }

    /// Returns the number of values of a key.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn count(&self, key: &K) -> Result<usize> {
        Ok(self.table.get_all_boxed(key.stored()).await?.len())
    }

    /// Removes the oldest value of a key, and returns it.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType), and the value is gone;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove(&self, key: &K) -> Result<Option<V::Owned>> {
        let removed = self.table.remove_boxed(key.stored(), Amount::One).await?;
        removed.first.as_ref().map(value_of::<V>).transpose()
    }

    /// Removes all values of a key; returns their number.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove_all(&self, key: &K) -> Result<usize> {
        Ok(self.table.remove_boxed(key.stored(), Amount::All).await?.count as usize)
    }
}
