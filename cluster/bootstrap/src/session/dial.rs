//! Connecting to a coordinator or a standby: the connection and both proofs.

use crate::{
    Error, Secret,
    handshake::{self, ANSWER, VERSION, Wrong},
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

/// The meaning of a failed attempt.
pub(super) enum Failed {
    /// Another attempt may succeed.
    Now(io::Error),
    /// No further attempt can succeed.
    Ever(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Ever(error)
    }
}

/// One attempt to connect.
pub(super) struct Dial<'a> {
    pub(super) address: SocketAddr,
    pub(super) secret: &'a Secret,
    pub(super) within: Duration,
    pub(super) until: Instant,
}

impl Dial<'_> {
    pub(super) fn left(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Returns a connection for which both sides have proved that they know the secret.
    pub(super) fn connect(&self) -> Result<TcpStream, Failed> {
        let address = self.address;
        let left = self.left().ok_or(Error::Silent { address, within: self.within })?;
        let mut stream = TcpStream::connect_timeout(&address, left).map_err(Failed::Now)?;
        stream.set_nodelay(true).map_err(Failed::Now)?;
        stream.set_write_timeout(Some(left)).map_err(Failed::Now)?;
        self.prove(&mut stream)?;
        Ok(stream)
    }

    /// Challenges the coordinator and answers its challenge. If the connection ends before the
    /// answer, the coordinator has too many connections at the moment: another attempt may succeed.
    fn prove(&self, stream: &mut TcpStream) -> Result<(), Failed> {
        let address = self.address;
        let mine = crate::secret::random_bytes().map_err(|cause| Error::System { call: "getrandom", cause })?;
        stream.write_all(&handshake::greeting(&mine)).map_err(Failed::Now)?;
        let mut answer = [0; ANSWER];
        let mut filled = 0;
        while filled < ANSWER {
            let silent = || Error::Silent { address, within: self.within };
            let Some(count) = self.read(stream, &mut answer[filled..])? else { return Err(silent().into()) };
            if count == 0 && filled == 0 {
                return Err(Failed::Now(io::ErrorKind::UnexpectedEof.into()));
            }
            filled += count;
            if count == 0 || !handshake::may_be_answer(&answer[..filled]) {
                return Err(Error::NotACoordinator { address }.into());
            }
        }
        let proof = handshake::read_answer(self.secret, &mine, &answer).map_err(|wrong| match wrong {
            Wrong::Magic => Error::NotACoordinator { address },
            Wrong::Version(theirs) => Error::Version { address, theirs, ours: VERSION },
            Wrong::Proof => Error::WrongSecret { address },
        })?;
        stream.write_all(&proof).map_err(Failed::Now)
    }

    /// Reads the available bytes; returns `None` if the time limit expires first.
    pub(super) fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<Option<usize>, Failed> {
        loop {
            let Some(left) = self.left() else { return Ok(None) };
            stream.set_read_timeout(Some(left)).map_err(Failed::Now)?;
            match stream.read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Err(Failed::Now(cause)),
            }
        }
    }
}
