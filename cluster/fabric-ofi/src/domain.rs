//! Domains, in which regions and endpoints are opened.

use crate::{
    Offer, Region,
    error::{OfiError, Result},
    pinned,
    raw::{self, Access, Facts, Memory, Registration},
};
use fabric_ofi_sys as sys;
use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
};

/// Maximum number of keys to try, because some may be in use.
const KEYS: usize = 8;
/// Providers whose descriptors signal only completions that have been detected, and which detect
/// none unless they are polled.
const SILENT: [&str; 1] = ["sockets"];

/// An open domain of a provider. Clones are the same domain, which is closed after all of its
/// regions, endpoints and operations.
#[derive(Clone, Debug)]
pub struct Domain {
    raw: Arc<raw::Domain>,
    facts: Arc<Facts>,
    /// Number of bytes that may be pinned; `None` if registration does not pin.
    pin_limit: Option<u64>,
    /// The rank that errors name.
    rank: Option<u32>,
}

impl Domain {
    /// Opens an offer.
    ///
    /// # Errors
    /// [`OfiError::Unusable`] if that is the offer's verdict, [`OfiError::Call`].
    pub fn open(offer: &Offer) -> Result<Self> {
        if let Some(reason) = &offer.verdict {
            let (provider, domain) = (offer.provider.clone(), offer.domain.clone());
            return Err(OfiError::Unusable { provider, domain, reason: reason.clone() });
        }
        let mut domain = Self::open_untried(offer.info.clone(), offer.pin_limit)?;
        let facts = &domain.facts;
        let (data_bytes, delivery) = (offer.data_bytes.min(facts.data_bytes), offer.delivery && facts.delivery);
        domain.facts = Arc::new(Facts { data_bytes, delivery, words: offer.words, ..(**facts).clone() });
        Ok(domain)
    }

    /// Opens an offer that has not been tested yet.
    pub(crate) fn open_untried(info: Arc<raw::Info>, pin_limit: Option<u64>) -> Result<Self> {
        let facts = Arc::new(info.facts());
        let raw = raw::Domain::open(info).map_err(|failed| OfiError::call(failed, &facts.provider))?;
        Ok(Self { raw, facts, pin_limit, rank: None })
    }

    /// Returns the same domain for a rank of a job, which its errors name.
    pub(crate) fn of_rank(&self, rank: u32) -> Self {
        Self { rank: Some(rank), ..self.clone() }
    }

    /// Registers `bytes` zeroed bytes.
    ///
    /// The key is chosen by the provider, or random.
    ///
    /// # Errors
    /// [`OfiError::Memory`], also for 0 bytes; [`OfiError::PinLimit`], [`OfiError::Pinned`],
    /// [`OfiError::Random`], [`OfiError::Call`].
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

    /// Registers memory under a new key.
    pub(crate) fn register(&self, mut memory: Memory, access: Access) -> Result<Arc<Registration>> {
        let bytes = memory.len();
        self.may_pin(bytes)?;
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
                Err((failed, _)) if failed.code == sys::FI_ENOMEM as i32 && self.pin_limit.is_some() => {
                    return Err(self.over_limit(bytes)?);
                }
                Err((failed, _)) => return Err(OfiError::call(failed, self.provider())),
            }
        }
    }

    /// Checks that `bytes` more bytes may be pinned, if registration pins them.
    ///
    /// # Errors
    /// [`OfiError::PinLimit`], [`OfiError::Pinned`].
    pub(crate) fn may_pin(&self, bytes: usize) -> Result<()> {
        let Some(limit) = self.pin_limit.filter(|limit| *limit < u64::MAX) else { return Ok(()) };
        if self.pinned()?.saturating_add(bytes as u64) <= limit { Ok(()) } else { Err(self.over_limit(bytes)?) }
    }

    /// Returns the number of bytes that are pinned, including those that libfabric has pinned for
    /// itself.
    fn pinned(&self) -> Result<u64> {
        let own = self.registered_bytes() as u64;
        pinned::pinned().map(|all| all.max(own)).map_err(OfiError::Pinned)
    }

    fn over_limit(&self, bytes: usize) -> Result<OfiError> {
        let (pinned, limit) = (self.pinned()?, self.pin_limit.unwrap_or(u64::MAX));
        Ok(OfiError::PinLimit { rank: self.rank, bytes, pinned, limit })
    }

    /// Returns the number of bytes of memory that are registered, including those of endpoints.
    pub fn registered_bytes(&self) -> usize {
        self.raw.registered_bytes()
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> &str {
        &self.facts.provider
    }

    /// Returns the maximum number of bytes of a put or get.
    pub fn longest(&self) -> usize {
        self.facts.longest
    }

    /// Returns whether a put or get of an aligned word of 4 or 8 bytes is never torn, and coherent
    /// with instructions of the target's CPU.
    pub(crate) fn keeps_words(&self) -> bool {
        self.facts.words
    }

    /// Returns whether descriptors of completion queues wake a thread that sleeps on them.
    pub(crate) fn wakes(&self) -> bool {
        !SILENT.contains(&self.provider())
    }

    /// Returns the number of bytes of dropped regions and endpoints that stay mapped because bytes
    /// may arrive late. Pages that this crate allocated itself are nevertheless returned to the
    /// system. The number is 0 when no endpoint of the domain is open.
    pub fn retired_bytes(&self) -> usize {
        self.raw.retired_bytes()
    }

    /// Returns the same domain with a lower limit for a put or get.
    #[cfg(test)]
    pub(crate) fn limited(&self, longest: usize) -> Self {
        Self { facts: Arc::new(Facts { longest, ..(*self.facts).clone() }), ..self.clone() }
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
