//! A socket between the simulator and one rank.

use super::{Wire, decode, encode};
use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
};

/// The longest message in words: a bound for what is allocated.
const LONGEST: u64 = 1 << 24;

/// One end.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    /// Bytes received and not yet decoded.
    received: Vec<u8>,
}

/// The outcome of an attempt to receive.
#[derive(Debug)]
pub(crate) enum Received<T> {
    Message(T),
    /// Nothing arrived within the socket's time limit.
    Nothing,
    /// The other end is closed.
    Closed,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Channel { stream, received: Vec::new() }
    }

    /// Sends a message.
    pub(crate) fn send<T: Wire>(&mut self, message: &T) -> io::Result<()> {
        self.send_words(&encode(message))
    }

    /// Sends a message that was encoded before.
    pub(crate) fn send_words(&mut self, words: &[u64]) -> io::Result<()> {
        let bytes = [words.len() as u64].iter().chain(words).flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        self.stream.write_all(&bytes)
    }

    /// Receives a message.
    ///
    /// # Errors
    /// Those of the socket; [`io::ErrorKind::InvalidData`] for bytes that no message has.
    pub(crate) fn receive<T: Wire>(&mut self) -> io::Result<Received<T>> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "bytes that are not a message");
        loop {
            let (words, _) = self.received.as_chunks::<8>();
            if let Some((len, words)) = words.split_first() {
                let len = u64::from_ne_bytes(*len);
                if len > LONGEST {
                    return Err(wrong());
                }
                if let Some(words) = words.get(..len as usize) {
                    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
                    self.received.drain(..8 * (1 + words.len()));
                    return decode(&words).map(Received::Message).ok_or_else(wrong);
                }
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Received::Closed),
                Ok(len) => self.received.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(Received::Closed),
                Err(error) => return Err(error),
            }
        }
    }
}
