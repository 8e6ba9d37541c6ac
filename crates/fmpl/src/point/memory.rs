//! The sources and destinations of messages.

use rdma_fabric::{LocalSpan, Pod};

/// The bytes of a message to be sent, in memory of any kind. Its methods must not use the
/// communicator.
pub trait Source: Send {
    /// Returns the length of the message in bytes.
    fn bytes(&self) -> usize;

    /// Returns bytes of the message from byte `at` on: at least one, at most `most`.
    fn chunk(&mut self, at: usize, most: usize) -> &[u8];

    /// Returns the message, if it is contiguous in fabric memory of this rank.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

/// The destination of the bytes of a received message. Its methods must not use the communicator.
pub trait Sink: Send {
    /// Returns the number of bytes for which there is room.
    fn bytes(&self) -> usize;

    /// Returns memory for the message's bytes from byte `at` on: for at least one, at most `most`.
    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8];

    /// Takes the chunk that was requested last, which is full: bytes `at` to `at + len` of the
    /// message. Chunks arrive in order.
    fn filled(&mut self, at: usize, len: usize) {
        let _ = (at, len);
    }

    /// Returns the fabric memory for the whole message, if there is such memory; in that case no
    /// other method is called.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

impl<T: Pod + Sync> Source for &[T] {
    #[inline]
    fn bytes(&self) -> usize {
        size_of_val(*self)
    }

    #[inline]
    fn chunk(&mut self, at: usize, most: usize) -> &[u8] {
        let bytes: &[u8] = bytemuck::cast_slice(self);
        &bytes[at..bytes.len().min(at + most)]
    }
}

impl<T: Pod + Send> Sink for &mut [T] {
    #[inline]
    fn bytes(&self) -> usize {
        size_of_val(*self)
    }

    #[inline]
    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(self);
        let end = bytes.len().min(at + most);
        &mut bytes[at..end]
    }
}

impl Sink for LocalSpan<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn chunk(&mut self, _: usize, _: usize) -> &mut [u8] {
        &mut []
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        Some(self)
    }
}
