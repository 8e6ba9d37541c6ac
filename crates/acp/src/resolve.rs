//! Finding the memory at an address, for a rank's calls.

use crate::{
    Acp, AcpError, GlobalAddress, Result,
    directory::{Resolver, is_stale, read_entry},
};
use core::future::Future;
use rdma_fabric::{AtomicWord, RemoteSpan, RemoteWord};

impl Acp {
    /// Resolves the region of an address.
    pub(crate) async fn resolve(&self, address: GlobalAddress) -> Result<()> {
        // A region may be dropped and another one registered at any time.
        while !self.try_with(|state| state.memory.resolve(address))? {
            let at = self.try_with(|state| state.memory.entry_of(address))?;
            let entry = read_entry(self.fabric(), at).await?.ok_or(AcpError::NoSuchRegion { address })?;
            self.with(|state| state.memory.keep_entry(address.id(), entry))?;
        }
        Ok(())
    }

    /// Returns the `bytes` bytes at an address.
    pub(crate) async fn span(&self, address: GlobalAddress, bytes: usize) -> Result<RemoteSpan<u8>> {
        self.part(address, |memory| memory.bytes_at(address, bytes).map(|part| RemoteSpan::clone(&part))).await
    }

    /// Returns the word at an address.
    pub(crate) async fn word<W: AtomicWord>(&self, address: GlobalAddress) -> Result<RemoteWord<W>> {
        self.part(address, |memory| memory.word_at(address).map(|part| RemoteWord::clone(&part))).await
    }

    /// Resolves the region of an address, and returns what `find` finds in it.
    async fn part<P>(&self, address: GlobalAddress, find: impl Fn(&Resolver) -> Result<P>) -> Result<P> {
        loop {
            self.resolve(address).await?;
            // Another thread may have put another region into this one's place in the cache since.
            let is_kept = |memory: &Resolver| memory.mapped(address).is_some();
            let found = self.try_with(|state| is_kept(&state.memory).then(|| find(&state.memory)).transpose())?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// Renumbers a lost rank. Every error that this crate returns, or that channels and containers
    /// use, passes through this function once.
    #[cold]
    pub(crate) fn named(&self, error: impl Into<AcpError>) -> AcpError {
        let error = error.into();
        self.with(|state| state.memory.named(error)).unwrap_or_else(|error| error)
    }

    /// Makes all puts of this rank visible.
    pub(crate) async fn flush_all(&self) -> Result<()> {
        self.fabric().flush_all().await.map_err(|error| self.named(error))
    }

    /// Makes an attempt that uses the memory at `addresses`. If one of their regions turns out not
    /// to exist any longer, makes a second attempt, in case another region has replaced it.
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
            return first.map_err(|error| self.named(error));
        }
        self.with(|state| addresses.iter().for_each(|address| state.memory.forget(address.id())))?;
        match attempt().await {
            Err(error) => Err(self.named(self.with(|state| state.memory.name_stale(error, &addresses))?)),
            done => done,
        }
    }
}
