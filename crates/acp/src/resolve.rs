//! From addresses to memory, reading the owner's directory where need be.

use crate::{
    Acp, AcpError, GlobalAddress, Result,
    starter::{Entry, KEY, LENGTH},
};
use core::future::Future;
use rdma_fabric::{AtomicWord, FabricError, RegionKey, RemoteSpan, RemoteWord};

impl Acp {
    /// Resolves the region of an address.
    pub(crate) async fn resolve(&self, address: GlobalAddress) -> Result<()> {
        // A region may be dropped and another one registered at any time.
        while !self.try_with(|state| state.resolve(self.fabric(), address))? {
            self.read_directory(address).await?;
        }
        Ok(())
    }

    /// Reads what the owner's directory says of the region of an address.
    async fn read_directory(&self, address: GlobalAddress) -> Result<()> {
        let fabric = self.fabric();
        let unknown = AcpError::NoSuchRegion { address };
        let [length, key] = self.try_with(|state| {
            let at = state.entry_of(address.tag()).ok_or(AcpError::NoSuchRegion { address })?;
            let rank = state.place_of(fabric, address.rank())?;
            Ok([LENGTH, KEY].map(|word| state.world.at(rank, at + word)))
        })?;
        let (length, key) = (fabric.remote_word::<u64>(length)?, fabric.remote_word::<u64>(key)?);
        loop {
            let bytes = fabric.get_word(&length).await?;
            let bits = fabric.get_word(&key).await?;
            if fabric.get_word(&length).await? == bytes {
                let bytes = bytes.checked_sub(1).ok_or(unknown)?;
                let entry = Entry { key: RegionKey::from_bits(bits), bytes };
                return self.with(|state| state.cache.keep_entry(address.id(), entry));
            }
        }
    }

    /// Returns the `bytes` bytes at an address.
    pub(crate) async fn span(&self, address: GlobalAddress, bytes: usize) -> Result<RemoteSpan<u8>> {
        self.resolve(address).await?;
        self.try_with(|state| state.bytes_at(address, bytes).map(|part| RemoteSpan::clone(&part)))
    }

    /// Returns the word at an address.
    pub(crate) async fn word<W: AtomicWord>(&self, address: GlobalAddress) -> Result<RemoteWord<W>> {
        self.resolve(address).await?;
        self.try_with(|state| state.word_at(address).map(|part| RemoteWord::clone(&part)))
    }

    /// Does something that uses the memory at `addresses`. If one of their regions turns out to be
    /// gone, does it once more, in case another one has taken its place meanwhile.
    pub(crate) async fn retried<const N: usize, Out, Trial>(
        &self,
        addresses: [GlobalAddress; N],
        mut attempt: impl FnMut() -> Trial,
    ) -> Result<Out>
    where
        Trial: Future<Output = Result<Out>>,
    {
        let first = attempt().await;
        if !first.as_ref().is_err_and(is_stale) {
            return first;
        }
        self.with(|state| addresses.iter().for_each(|address| state.forget(address.id())))?;
        match attempt().await {
            Err(AcpError::Fabric(FabricError::StaleRegion { rank, region })) => {
                let stale = addresses
                    .into_iter()
                    .find(|address| self.try_with(|state| state.place_of(self.fabric(), address.rank())) == Ok(rank));
                Err(match stale {
                    Some(address) => AcpError::NoSuchRegion { address },
                    None => FabricError::StaleRegion { rank, region }.into(),
                })
            }
            second => second,
        }
    }
}

fn is_stale(error: &AcpError) -> bool {
    matches!(error, AcpError::Fabric(FabricError::StaleRegion { .. }))
}
