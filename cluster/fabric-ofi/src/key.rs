//! Remote keys, with which peers access a region.

use crate::error::{OfiError, Result};

/// The location of a region and its key: plain data that the owner sends to its peers.
///
/// A forged key gives no access: the target's provider checks key and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteKey {
    pub(crate) key: u64,
    /// The address of the first byte, as counted by the provider.
    pub(crate) base: u64,
    pub(crate) len: u64,
}

impl RemoteKey {
    /// Number of bytes of an encoded key.
    pub const BYTES: usize = 24;

    /// Encodes the key, in the same way on all machines.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (to, from) in bytes.chunks_exact_mut(8).zip([self.key, self.base, self.len]) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes
    }

    /// Decodes a key. Any 24 bytes form a key, though not necessarily one of an existing region.
    ///
    /// # Errors
    /// [`OfiError::Key`] if there are not 24 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return Err(OfiError::Key { len: bytes.len() }) };
        let &[key, base, len] = words else { return Err(OfiError::Key { len: bytes.len() }) };
        let [key, base, len] = [key, base, len].map(u64::from_le_bytes);
        Ok(Self { key, base, len })
    }

    /// Returns the size of the region in bytes.
    pub fn size(self) -> u64 {
        self.len
    }

    /// Returns the address of `len` bytes from `offset` on.
    pub(crate) fn address(self, offset: u64, len: usize) -> Result<u64> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len);
        let address = end.and(self.base.checked_add(offset));
        let outside = OfiError::OutOfBounds { whose: "remote", key: self.key, offset, len, size: self.len };
        address.ok_or(outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_lead_back(key: u64, base: u64, len: u64) {
            let remote = RemoteKey { key, base, len };
            prop_assert_eq!(RemoteKey::from_bytes(&remote.to_bytes()).unwrap(), remote);
        }

        #[test]
        fn addresses_are_in_the_region(base: u64, size: u64, offset: u64, len: usize) {
            let remote = RemoteKey { key: 1, base, len: size };
            let end = u128::from(offset) + len as u128;
            let fits = end <= u128::from(size) && u128::from(base) + u128::from(offset) <= u128::from(u64::MAX);
            prop_assert_eq!(remote.address(offset, len).is_ok(), fits);
        }

        #[test]
        fn other_lengths_are_refused(bytes: Vec<u8>) {
            prop_assert_eq!(RemoteKey::from_bytes(&bytes).is_ok(), bytes.len() == RemoteKey::BYTES);
        }
    }
}
