//! How a process joins its job.

use crate::{
    Error, Hello, Secret, Welcome,
    handshake::{self, ANSWER, VERSION, Wrong},
    wire::{Down, Inbox, UP_LIMIT, Up, down_limit},
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

/// A connection that stands.
pub(super) struct Joined {
    pub(super) stream: TcpStream,
    pub(super) inbox: Inbox,
    pub(super) welcome: Welcome,
}

/// Between two tries to connect: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// What a failed try means.
enum Failed {
    /// Another may be better.
    Now(io::Error),
    /// No other will be.
    Ever(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Ever(error)
    }
}

/// One try to join.
struct Try<'a> {
    address: SocketAddr,
    secret: &'a Secret,
    hello: &'a Hello,
    within: Duration,
    until: Instant,
}

/// Joins, however often that has to be tried until `within` is over.
pub(super) fn join(address: SocketAddr, secret: &Secret, hello: Hello, within: Duration) -> Result<Joined, Error> {
    let this = Try { address, secret, hello: &hello, within, until: Instant::now() + within };
    let mut pause = PAUSES.0;
    loop {
        match this.once() {
            Ok(joined) => return Ok(joined),
            Err(Failed::Ever(error)) => return Err(error),
            Err(Failed::Now(cause)) if this.left().is_none_or(|left| left <= pause) => {
                return Err(Error::Unreachable { address, within, cause });
            }
            Err(Failed::Now(_)) => sleep(pause),
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

impl Try<'_> {
    fn left(&self) -> Option<Duration> {
        self.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    fn once(&self) -> Result<Joined, Failed> {
        let address = self.address;
        let left = self.left().ok_or(Error::Silent { address, within: self.within })?;
        let mut stream = TcpStream::connect_timeout(&address, left).map_err(Failed::Now)?;
        stream.set_nodelay(true).map_err(Failed::Now)?;
        stream.set_write_timeout(Some(left)).map_err(Failed::Now)?;
        self.prove(&mut stream)?;
        stream.write_all(&Up::Hello(self.hello.clone()).frame()).map_err(Failed::Now)?;
        self.wait(stream)
    }

    /// Challenges the coordinator and answers its challenge. A connection that ends before the
    /// answer is one of too many at a time: another try may be better.
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

    /// Waits until all ranks have come, or for what stands against it.
    fn wait(&self, mut stream: TcpStream) -> Result<Joined, Failed> {
        let address = self.address;
        let mut inbox = Inbox::new(UP_LIMIT);
        let mut buffer = vec![0; 64 << 10];
        let mut noted = false;
        loop {
            while let Some(message) = inbox.message().map_err(|_| Error::Malformed { address })? {
                match Down::read(&message) {
                    Some(Down::Noted { ranks, segment }) => {
                        noted = true;
                        inbox.set_limit(down_limit(ranks, segment));
                    }
                    Some(Down::Refused(refusal)) => return Err(Error::Refused(refusal).into()),
                    Some(Down::Welcome { nodes, hosts, age, job, lease, segment }) => {
                        let (nodes, arrived) = (nodes.into(), Instant::now());
                        let welcome = Welcome { nodes, hosts, age, arrived, job, lease, segment };
                        return Ok(Joined { stream, inbox, welcome });
                    }
                    _ => return Err(Error::Malformed { address }.into()),
                }
            }
            match self.read(&mut stream, &mut buffer) {
                Ok(Some(0)) | Err(Failed::Now(_)) if noted => return Err(Error::CoordinatorLost { address }.into()),
                Ok(Some(0)) => return Err(Failed::Now(io::ErrorKind::UnexpectedEof.into())),
                Ok(Some(count)) => inbox.push(&buffer[..count]),
                Ok(None) => return Err(Error::StillGathering { address, within: self.within }.into()),
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Reads what is there; nothing if the time is over first.
    fn read(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<Option<usize>, Failed> {
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
