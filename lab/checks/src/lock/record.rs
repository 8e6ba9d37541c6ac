//! Two words at the home that a lock keeps equal. A writer that dies between writing them leaves
//! them torn.

use super::program::HOME;
use rdma_fabric::{Fabric, ProgramResult, Region, RemoteWord};
use rma_lock::{
    LockError,
    locks::{RecoverableLock, RecoverableWriteGuard},
};

/// A version number, stored twice.
#[derive(Debug)]
pub struct Record {
    fabric: Fabric,
    halves: [RemoteWord<u64>; 2],
}

impl Record {
    /// Returns the record in the first 16 bytes of the home's part of `region`.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn new(fabric: &Fabric, region: &Region) -> ProgramResult<Self> {
        let half = |offset| fabric.remote_word(region.at(HOME, offset));
        Ok(Record { fabric: fabric.clone(), halves: [half(0)?, half(8)?] })
    }

    /// Gets both halves.
    ///
    /// # Errors
    /// Those of the fabric.
    pub async fn halves(&self) -> ProgramResult<[u64; 2]> {
        Ok([self.fabric.get_word(&self.halves[0]).await?, self.fabric.get_word(&self.halves[1]).await?])
    }

    /// Gets the version; a panic or error contains the caller's name.
    ///
    /// # Errors
    /// If the record is torn.
    pub async fn version(&self, who: &str) -> ProgramResult<u64> {
        let [a, b] = self.halves().await?;
        if a == b { Ok(a) } else { Err(format!("{who} saw a torn record, {a} and {b}").into()) }
    }

    /// Changes one half.
    ///
    /// # Errors
    /// Those of the fabric.
    pub async fn set_half(&self, half: usize, version: u64) -> ProgramResult<()> {
        Ok(self.fabric.put_word(&self.halves[half], version).await?)
    }

    /// Changes one half, then the other.
    ///
    /// # Errors
    /// Those of the fabric.
    pub async fn set(&self, version: u64) -> ProgramResult<()> {
        self.set_half(0, version).await?;
        self.set_half(1, version).await
    }

    /// Acquires the lock for writing, and repairs the record if it is torn. Returns the guard, and
    /// whether the record was torn.
    ///
    /// # Errors
    /// The errors of the lock, except [`LockError::Torn`], and those of the fabric.
    pub async fn write<'a>(&self, lock: &'a RecoverableLock) -> ProgramResult<(RecoverableWriteGuard<'a>, bool)> {
        match lock.write().await {
            Err(LockError::Torn { .. }) => self.mend(lock).await,
            guard => Ok((guard?, false)),
        }
    }

    /// Acquires the lock for writing although the record may be torn, and repairs it if it is.
    /// Returns the guard, and whether the record was torn.
    ///
    /// # Errors
    /// The errors of the lock and of the fabric.
    pub async fn mend<'a>(&self, lock: &'a RecoverableLock) -> ProgramResult<(RecoverableWriteGuard<'a>, bool)> {
        let mut guard = lock.mend().await?;
        let torn = guard.torn().is_some();
        if torn {
            let [a, b] = self.halves().await?;
            self.set(a.max(b)).await?;
            self.fabric.flush(HOME).await?;
            guard.clear_torn().await?;
        }
        Ok((guard, torn))
    }
}
