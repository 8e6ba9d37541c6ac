//! Memory without a public key.

use crate::{AccessPolicy, Fabric, FabricError, Mapped, Rank, Region, RegionKey, Result};

/// Protected memory that others could use: see [`Fabric::protected`].
pub trait Protected {
    /// Creates another handle of the rank of `like`, which allocates such memory.
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric>;
    /// Returns whether a region is memory that its rank allocated by itself through a handle whose
    /// access policy is that of this one.
    ///
    /// # Errors
    /// As [`Provider::resolve`](super::Provider::resolve).
    fn holds(&self, rank: Rank, region: RegionKey) -> Result<bool> {
        let _ = (rank, region);
        Ok(false)
    }
    /// Deregisters memory that this handle's rank allocated by itself; its bytes are never reused.
    fn abandon(&self, region: Region) {
        drop(region);
    }
    /// Returns the location at which `rank`'s part of a region of this handle is mapped.
    fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped> {
        Err(FabricError::NotMapped { rank, region: region.key() })
    }
}
