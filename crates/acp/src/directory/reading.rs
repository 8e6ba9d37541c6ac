//! Reading other ranks' directories.

use super::Resolver;
use crate::{AcpError, GlobalAddress, Result, starter::Entry};
use rdma_fabric::{AtomicWord, Fabric, FabricError, RegionKey, RemoteAddr, RemoteSpan, RemoteWord};

/// Reads the entry whose length and key are at these addresses; `None` if there is no region.
pub(crate) async fn read_entry(fabric: &Fabric, [length, key]: [RemoteAddr; 2]) -> Result<Option<Entry>> {
    let (length, key) = (fabric.remote_word::<u64>(length)?, fabric.remote_word::<u64>(key)?);
    loop {
        let bytes = fabric.get_word(&length).await?;
        let bits = fabric.get_word(&key).await?;
        if fabric.get_word(&length).await? == bytes {
            return Ok(bytes.checked_sub(1).map(|bytes| Entry { key: RegionKey::from_bits(bits), bytes }));
        }
    }
}

/// For a task with its own resolver.
impl Resolver {
    async fn resolve_fully(&mut self, address: GlobalAddress) -> Result<()> {
        // A region may be dropped and another one registered at any time.
        while !self.resolve(address)? {
            let entry = read_entry(self.fabric(), self.entry_of(address)?).await?;
            self.keep_entry(address.id(), entry.ok_or(AcpError::NoSuchRegion { address })?);
        }
        Ok(())
    }

    /// Returns the `bytes` bytes at an address.
    pub(crate) async fn span(&mut self, address: GlobalAddress, bytes: usize) -> Result<RemoteSpan<u8>> {
        self.resolve_fully(address).await?;
        self.bytes_at(address, bytes).map(|part| RemoteSpan::clone(&part))
    }

    /// Returns the word at an address.
    pub(crate) async fn word<W: AtomicWord>(&mut self, address: GlobalAddress) -> Result<RemoteWord<W>> {
        self.resolve_fully(address).await?;
        self.word_at(address).map(|part| RemoteWord::clone(&part))
    }

    /// Returns the error with the address whose region did not exist.
    pub(crate) fn name_stale(&self, error: AcpError, addresses: &[GlobalAddress]) -> AcpError {
        let AcpError::Fabric(FabricError::StaleRegion { rank, .. }) = error else { return error };
        let stale = addresses.iter().find(|address| self.place_of(address.rank()) == Ok(rank));
        stale.map_or(error, |&address| AcpError::NoSuchRegion { address })
    }
}

/// Returns whether an error shows that a region no longer exists, so that its directory should be
/// read again.
pub(crate) fn is_stale(error: &AcpError) -> bool {
    matches!(error, AcpError::Fabric(FabricError::StaleRegion { .. }))
}
