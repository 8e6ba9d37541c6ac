//! Fields of messages as bytes.

use super::{Frame, TEXT_LIMIT, cut};
use std::{net::SocketAddr, time::Duration};

/// Appends the fields of one message.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Starts a message of this kind.
    pub(crate) fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn size(self, value: usize) -> Self {
        self.u64(value as u64)
    }

    /// Appends a duration in nanoseconds.
    pub(crate) fn duration(self, value: Duration) -> Self {
        self.u64(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn bytes(self, value: &[u8]) -> Self {
        let mut this = self.u32(value.len() as u32);
        this.0.extend_from_slice(value);
        this
    }

    /// Appends a text, truncated to the limit of texts.
    pub(crate) fn text(self, value: &str) -> Self {
        self.bytes(cut(value).as_bytes())
    }

    pub(crate) fn many<T>(self, values: &[T], put: impl FnMut(Self, &T) -> Self) -> Self {
        values.iter().fold(self.u32(values.len() as u32), put)
    }

    pub(crate) fn maybe<T>(self, value: Option<T>, put: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => put(self.u32(1), value),
            None => self.u32(0),
        }
    }

    /// Returns the message, preceded by its length.
    pub(crate) fn frame(mut self) -> Frame {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0.into()
    }
}

/// Takes the fields of a message one after the other; `None` means that the message is malformed.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at a message without its length and kind.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        self.u64()?.try_into().ok()
    }

    pub(crate) fn duration(&mut self) -> Option<Duration> {
        self.u64().map(Duration::from_nanos)
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.u32()? as usize;
        self.take(length).map(<[u8]>::to_vec)
    }

    /// Takes a text of up to [`TEXT_LIMIT`] bytes, the limit of the writer.
    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok().filter(|text| text.len() <= TEXT_LIMIT)
    }

    /// Takes as many values as the message announces. The allocation made before they are read is
    /// bounded by the number of remaining bytes.
    pub(crate) fn many<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| take(self)).collect()
    }

    pub(crate) fn maybe<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u32()? {
            0 => Some(None),
            1 => take(self).map(Some),
            _ => None,
        }
    }

    /// Returns `value` if no bytes remain.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Appends an address, as text.
pub(super) fn write_address(to: Writer, address: SocketAddr) -> Writer {
    to.text(&address.to_string())
}

pub(super) fn read_address(from: &mut Reader<'_>) -> Option<SocketAddr> {
    from.text()?.parse().ok()
}
