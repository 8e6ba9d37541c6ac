//! Joining a job.

use super::dial::{Dial, Failed};
use crate::{
    Error, Hello, Secret, Succession, Welcome,
    wire::{Down, Inbox, UP_LIMIT, Up, down_limit},
};
use std::{
    io::{self, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

/// An established connection.
pub(super) struct Joined {
    pub(super) stream: TcpStream,
    pub(super) inbox: Inbox,
    pub(super) welcome: Welcome,
    pub(super) succession: Succession,
    /// The address at which each rank would listen as a standby.
    pub(super) standbys: Vec<Option<SocketAddr>>,
    /// The socket by which this process would listen as a standby.
    pub(super) listener: Option<TcpListener>,
}

/// The time limits of a process for joining its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// The limit until all ranks have joined.
    pub within: Duration,
    /// The limit while connections to the coordinator's address are refused, because no process
    /// listens there. If the coordinator listened before this process was started, a refusal means
    /// that it has ended, and this limit may be short.
    pub refused: Duration,
}

impl From<Duration> for Patience {
    fn from(within: Duration) -> Self {
        Self { within, refused: within }
    }
}

/// The initial and the maximum pause between two attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// Joins, retrying until `patience` expires.
pub(super) fn join(address: SocketAddr, secret: &Secret, hello: &Hello, patience: Patience) -> Result<Joined, Error> {
    let Patience { within, refused } = patience;
    let dial = Dial { address, secret, within, until: Instant::now() + within };
    let mut pause = PAUSES.0;
    let mut refused_since = None;
    loop {
        match once(&dial, hello) {
            Ok(joined) => return Ok(joined),
            Err(Failed::Ever(error)) => return Err(error),
            Err(Failed::Now(cause)) if dial.left().is_none_or(|left| left <= pause) => {
                return Err(Error::Unreachable { address, within, cause });
            }
            Err(Failed::Now(cause)) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                if refused_since.get_or_insert_with(Instant::now).elapsed() >= refused {
                    return Err(Error::Unreachable { address, within: refused, cause });
                }
                sleep(pause);
            }
            Err(Failed::Now(_)) => {
                refused_since = None;
                sleep(pause);
            }
        }
        pause = (pause * 2).min(PAUSES.1);
    }
}

fn once(dial: &Dial<'_>, hello: &Hello) -> Result<Joined, Failed> {
    let mut stream = dial.connect()?;
    let listener = listen_beside(&stream);
    let standby = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    stream.write_all(&Up::Hello(hello.clone(), standby).frame()).map_err(Failed::Now)?;
    wait(dial, stream, listener, hello.ranks)
}

/// Listens on the interface by which this process reaches the coordinator, in case this process
/// becomes a standby. Without this socket, the process can't become one.
fn listen_beside(stream: &TcpStream) -> Option<TcpListener> {
    let address = stream.local_addr().ok()?.ip();
    let listener = TcpListener::bind(SocketAddr::new(address, 0)).ok()?;
    rustix::net::listen(&listener, 4096).ok()?;
    Some(listener)
}

/// Waits until all ranks have joined or joining has failed.
fn wait(dial: &Dial<'_>, mut stream: TcpStream, listener: Option<TcpListener>, ranks: usize) -> Result<Joined, Failed> {
    let (address, within) = (dial.address, dial.within);
    let mut inbox = Inbox::new(UP_LIMIT);
    let mut buffer = vec![0; 64 << 10];
    let mut noted = false;
    loop {
        while let Some(message) = inbox.message().map_err(|_| Error::Malformed { address })? {
            match Down::read(&message).filter(|down| down.fits(ranks)) {
                Some(Down::Noted { ranks, segment }) => {
                    noted = true;
                    inbox.set_limit(down_limit(ranks, segment));
                }
                Some(Down::Refused(refusal)) => return Err(Error::Refused(refusal).into()),
                Some(Down::Welcome { nodes, hosts, age, job, lease, segment, succession, standbys }) => {
                    let (nodes, arrived) = (nodes.into(), Instant::now());
                    let welcome = Welcome { nodes, hosts, age, arrived, job, lease, segment };
                    let listener = listener.filter(|_| succession != Succession::Never);
                    return Ok(Joined { stream, inbox, welcome, succession, standbys, listener });
                }
                _ => return Err(Error::Malformed { address }.into()),
            }
        }
        match dial.read(&mut stream, &mut buffer) {
            Ok(Some(0)) | Err(Failed::Now(_)) if noted => return Err(Error::CoordinatorLost { address }.into()),
            Ok(Some(0)) => return Err(Failed::Now(io::ErrorKind::UnexpectedEof.into())),
            Ok(Some(count)) => inbox.push(&buffer[..count]),
            Ok(None) => return Err(Error::StillGathering { address, within }.into()),
            Err(failed) => return Err(failed),
        }
    }
}
