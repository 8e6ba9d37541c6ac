//! Domains: what regions and endpoints are opened in.

use crate::{
    Offer, Region,
    error::{OfiError, Result},
    raw::{self, Access, Facts, Memory, Registration},
};
use fabric_ofi_sys as sys;
use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

/// How often another key is tried if one is taken.
const KEYS: usize = 8;
/// Providers whose queues have descriptors that tell only what has been found, and find nothing unless
/// they are asked.
const SILENT: [&str; 1] = ["sockets"];

/// An open domain of a provider. Clones are the same domain, which is closed after all regions,
/// endpoints and operations of it.
#[derive(Clone, Debug)]
pub struct Domain {
    raw: Arc<raw::Domain>,
    facts: Arc<Facts>,
}

impl Domain {
    /// Opens an offer.
    ///
    /// # Errors
    /// [`OfiError::Unusable`] if the offer's verdict says so, [`OfiError::Call`].
    pub fn open(offer: &Offer) -> Result<Self> {
        if let Some(reason) = &offer.verdict {
            let (provider, domain) = (offer.provider.clone(), offer.domain.clone());
            return Err(OfiError::Unusable { provider, domain, reason: reason.clone() });
        }
        Self::open_untried(offer.info.clone())
    }

    /// Opens what has no verdict yet.
    pub(crate) fn open_untried(info: Arc<raw::Info>) -> Result<Self> {
        let facts = Arc::new(info.facts());
        let raw = raw::Domain::open(info).map_err(|failed| OfiError::call(failed, &facts.provider))?;
        Ok(Self { raw, facts })
    }

    /// Registers `bytes` bytes of zeros.
    ///
    /// The key is the provider's, or random.
    ///
    /// # Errors
    /// [`OfiError::Memory`], also for 0 bytes; [`OfiError::Random`], [`OfiError::Call`].
    pub fn region(&self, bytes: usize) -> Result<Region> {
        let memory = Memory::new(bytes).map_err(|source| OfiError::Memory { bytes, source })?;
        self.region_of(memory)
    }

    pub(crate) fn region_of(&self, memory: Memory) -> Result<Region> {
        let registration = self.register(memory, Access::Peers)?;
        let virtual_addresses = self.facts.registration & sys::FI_MR_VIRT_ADDR != 0;
        let base = if virtual_addresses { registration.address() } else { 0 };
        Ok(Region::new(registration, base))
    }

    /// Registers memory under a key of its own.
    pub(crate) fn register(&self, mut memory: Memory, access: Access) -> Result<Arc<Registration>> {
        let chosen_by_provider = self.facts.registration & sys::FI_MR_PROV_KEY != 0;
        let mut tries = 0;
        loop {
            let key =
                if chosen_by_provider { 0 } else { random_key(self.facts.key_bytes).map_err(OfiError::Random)? };
            tries += 1;
            match Registration::new(&self.raw, memory, key, access) {
                Ok(made) => return Ok(made),
                Err((failed, back)) if failed.code == sys::FI_ENOKEY as i32 && !chosen_by_provider && tries < KEYS => {
                    memory = back;
                }
                Err((failed, _)) => return Err(OfiError::call(failed, self.provider())),
            }
        }
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> &str {
        &self.facts.provider
    }

    /// Returns how many bytes one put or get may have.
    pub fn longest(&self) -> usize {
        self.facts.longest
    }

    /// Returns whether descriptors of completion queues wake who sleeps on them.
    pub(crate) fn wakes(&self) -> bool {
        !SILENT.contains(&self.provider())
    }

    /// Returns how many bytes dropped regions and endpoints still take, for bytes that come late;
    /// pages of this crate are given back. It is 0 when no endpoint of the domain is open.
    pub fn retired_bytes(&self) -> usize {
        self.raw.retired_bytes()
    }

    /// Returns the same domain with a lower limit of what one put or get may have.
    #[cfg(test)]
    pub(crate) fn limited(&self, longest: usize) -> Self {
        Self { raw: self.raw.clone(), facts: Arc::new(Facts { longest, ..(*self.facts).clone() }) }
    }

    pub(crate) fn raw(&self) -> &Arc<raw::Domain> {
        &self.raw
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// Returns a key of `bytes` random bytes, at most 8.
fn random_key(bytes: usize) -> io::Result<u64> {
    let mut key = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut key[..bytes.min(8)])?;
    Ok(u64::from_le_bytes(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_as_long_as_they_may_be() {
        for bytes in [1, 4, 8, 16] {
            let keys: Vec<u64> = (0..64).map(|_| random_key(bytes).unwrap()).collect();
            let any = keys.iter().fold(0, |bits, key| bits | key);
            let expected = 64 - 8 * bytes.min(8) as u32;
            assert!(any.leading_zeros() >= expected && any.leading_zeros() < expected + 8, "{bytes}: {any:#x}");
        }
    }
}
