//! Messages that are neither in one piece of the program's memory nor in the fabric's.

use super::{Received, Receiving};
use crate::{Communicator, FmplError, Result};
use rdma_fabric::{LocalSpan, provider::Boxed};

/// The bytes of a message to be sent, wherever they are.
pub trait Source: Send {
    /// Returns the length of the message in bytes.
    fn bytes(&self) -> usize;

    /// Returns bytes of the message from byte `at` on: at least one, at most `most`.
    fn chunk(&mut self, at: usize, most: usize) -> &[u8];

    /// Returns the message, if it is in own memory of the fabric, in one piece.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

/// Where the bytes of a message go that is received.
pub trait Sink: Send {
    /// Returns how many bytes there is room for.
    fn bytes(&self) -> usize;

    /// Returns memory for the message's bytes from byte `at` on: for at least one, at most `most`.
    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8];

    /// Takes what is in the chunk that was asked for last, which is full: bytes `at` to `at + len` of the
    /// message. Chunks come in order.
    fn filled(&mut self, at: usize, len: usize) {
        let _ = (at, len);
    }

    /// Returns memory of the fabric that the message goes to as a whole; then nothing else is called.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

impl Source for &[u8] {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn chunk(&mut self, at: usize, most: usize) -> &[u8] {
        &self[at..self.len().min(at + most)]
    }
}

impl Sink for &mut [u8] {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8] {
        let end = self.len().min(at + most);
        &mut self[at..end]
    }
}

impl Communicator {
    /// Sends a message as [`Communicator::send`] does, out of any memory.
    ///
    /// # Errors
    /// As [`Communicator::send`].
    pub async fn send_from(&self, source: &mut dyn Source, to: usize, index: usize) -> Result<()> {
        let mut bytes = Vec::with_capacity(source.bytes());
        while bytes.len() < source.bytes() {
            let most = source.bytes() - bytes.len();
            bytes.extend_from_slice(source.chunk(bytes.len(), most));
        }
        self.send(&bytes, to, index).await
    }

    /// Receives a message into any memory. It may be shorter than there is room.
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub async fn recv_into(&self, sink: &mut dyn Sink, from: usize, index: usize) -> Result<Received> {
        let buffer = self.buffer::<u8>(sink.bytes())?;
        let received = self.post(&buffer, from, index).await?.arrived().await?;
        let mut at = 0;
        while at < received.bytes {
            let chunk = sink.chunk(at, received.bytes - at);
            let len = chunk.len();
            self.fabric.read(&*buffer.part(at..at + len).map_err(FmplError::from)?, chunk)?;
            sink.filled(at, len);
            at += len;
        }
        Ok(received)
    }

    /// Posts a receive, by a future that is known to be [`Send`] wherever it is awaited.
    fn post<'a>(&'a self, into: &'a LocalSpan<u8>, from: usize, index: usize) -> Boxed<'a, Result<Receiving<'a>>> {
        Box::pin(self.irecv(into, from, index))
    }
}
