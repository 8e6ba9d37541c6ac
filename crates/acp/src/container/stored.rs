//! The contents of containers: keys and values as bytes.

use rdma_fabric::Pod;

/// A type that containers can hold, as keys, values or elements: plain data, byte strings or text.
///
/// Two keys are equal if their bytes are equal. All ranks that use a container must use the same
/// types.
pub trait Stored: bytes::Bytes {
    /// The type of a value that has been copied out.
    type Owned: Send + 'static;

    /// Restores a value from its bytes; `None` if they are not a value of this type.
    fn from_bytes(bytes: &[u8]) -> Option<Self::Owned>;
}

pub(crate) mod bytes {
    /// The bytes of a value. The trait is sealed: only this crate implements it.
    pub trait Bytes: Sync {
        /// Returns the bytes as they are stored.
        fn stored(&self) -> &[u8];
    }
}

impl<T: Pod + Send + Sync> Stored for T {
    type Owned = T;

    fn from_bytes(bytes: &[u8]) -> Option<T> {
        bytemuck::try_pod_read_unaligned(bytes).ok()
    }
}

impl<T: Pod + Send + Sync> bytes::Bytes for T {
    #[inline]
    fn stored(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }
}

impl Stored for [u8] {
    type Owned = Vec<u8>;

    fn from_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

impl bytes::Bytes for [u8] {
    #[inline]
    fn stored(&self) -> &[u8] {
        self
    }
}

impl Stored for str {
    type Owned = String;

    fn from_bytes(bytes: &[u8]) -> Option<String> {
        core::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl bytes::Bytes for str {
    #[inline]
    fn stored(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::{Stored, bytes::Bytes};

    #[test]
    fn values_come_back_from_their_bytes() {
        assert_eq!(u64::from_bytes(77u64.stored()), Some(77));
        assert_eq!(<[u16; 2]>::from_bytes([3u16, 4].stored()), Some([3, 4]));
        assert_eq!(<[u8]>::from_bytes(b"".stored()), Some(vec![]));
        assert_eq!(str::from_bytes("né".stored()), Some("né".to_owned()));
        assert_eq!((u64::from_bytes(b"short"), str::from_bytes(&[0xff])), (None, None));
    }
}
