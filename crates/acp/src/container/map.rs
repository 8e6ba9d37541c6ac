//! Maps.

use super::{
    Entry, Iter, Position, Stored, TableRef,
    iter::decoded,
    table::{Amount, Element, Kind, Part, Table},
    table_api::table_front,
};
use crate::{Acp, AcpError, GlobalAddress, Result};
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Rank, provider::Boxed};

/// A map from keys to values in the memory of several ranks: a hash table, as in ACP 3.0.
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
///
/// ```
/// use acp::{Acp, Map, TableRef};
/// use rdma_fabric::{Fabric, ProgramResult, Rank};
///
/// /// Rank 0 creates a map over all ranks; each rank stores its name, and finds rank 1's.
/// async fn names(fabric: Fabric) -> ProgramResult<()> {
///     let acp = Acp::init(&fabric).await?;
///     let shared = acp.starter(Rank::new(0))?;
///     if acp.rank() == Rank::new(0) {
///         let ranks: Vec<Rank> = (0..acp.ranks() as u32).map(Rank::new).collect();
///         let map = Map::<u32, str>::create(&acp, &ranks, 16, Rank::new(0)).await?;
///         acp.write(shared, &map.at().to_words()).await?;
///     }
///     acp.sync().await?;
///     let mut words = [0; 3];
///     acp.read(shared, &mut words).await?;
///     let map = Map::<u32, str>::from_address(&acp, TableRef::from_words(words).ok_or("no map")?).await?;
///
///     let me = acp.rank().number();
///     map.insert(&me, &format!("rank {me}")).await?;
///     acp.sync().await?;
///     assert_eq!(map.get(&1).await?.as_deref(), Some("rank 1"));
///     acp.sync().await?;
///     Ok(acp.finalize().await?)
/// }
/// # checks::documented::run(3, &names);
/// ```
pub struct Map<K: ?Sized, V: ?Sized> {
    table: Table,
    types: PhantomData<fn(&K, &V)>,
}

table_front!(Map<K, V>, Kind::Map, (K::Owned, V::Owned), decode::<K, V>);

fn decode<K: Stored + ?Sized, V: Stored + ?Sized>(element: &Element) -> Result<(K::Owned, V::Owned)> {
    Ok((decoded::<K>(element, element.key())?, value_of::<V>(element)?))
}

fn value_of<V: Stored + ?Sized>(element: &Element) -> Result<V::Owned> {
    decoded::<V>(element, element.value())
}

impl<K: Stored + ?Sized, V: Stored + ?Sized> Map<K, V> {
    /// Inserts a key with a value; returns whether the key is new. Otherwise, nothing changes: the
    /// key keeps its value.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`](crate::AcpError::HeapExhausted), and nothing has changed;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub fn insert<'a>(&'a self, key: &'a K, value: &'a V) -> impl Future<Output = Result<bool>> + 'a {
        self.table.insert(key.stored(), value.stored())
    }

    /// Returns a copy of the value of a key.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType); [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn get(&self, key: &K) -> Result<Option<V::Owned>> {
        let of_bytes = |address, bytes: &[u8]| V::from_bytes(bytes).ok_or(AcpError::OtherType { address });
        match self.table.short_value(key.stored(), of_bytes) {
            Some(found) => found?.transpose(),
            None => self.table.get(key.stored()).await?.as_ref().map(value_of::<V>).transpose(),
        }
    }

    /// Copies the value of a key into `into`, truncated to its length; returns the length of the
    /// whole value.
    ///
    /// # Errors
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub fn retrieve<'a>(&'a self, key: &'a K, into: &'a mut [u8]) -> impl Future<Output = Result<Option<usize>>> + 'a {
        let retrieved: Boxed<'a, Result<Option<usize>>> = Box::pin(self.table.retrieve(key.stored(), into));
        retrieved
    }

    /// Removes a key; returns its value, if it was present.
    ///
    /// # Errors
    /// [`AcpError::OtherType`](crate::AcpError::OtherType), and the key is gone;
    /// [`AcpError::Fabric`](crate::AcpError::Fabric).
    pub async fn remove(&self, key: &K) -> Result<Option<V::Owned>> {
        let removed = self.table.remove_boxed(key.stored(), Amount::One).await?;
        removed.first.as_ref().map(value_of::<V>).transpose()
    }
}
