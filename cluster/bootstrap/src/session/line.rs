//! An established connection of a session, and the state of its messages that calls depend on.
//!
//! There is no connection between the loss of one coordinator and the election of the next.
//! Messages from this time that still matter (the item of an exchange, the rank's departure, an
//! abort) are resent to the next coordinator.

use super::{
    memory::Memory,
    received::{Item, Received},
};
use crate::{
    Error,
    wire::{Down, Up},
};
use std::{
    io::{self, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The connection.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) address: SocketAddr,
    pub(super) lease: Duration,
    /// The number of ranks of the whole job.
    pub(super) ranks: usize,
    /// Another coordinator may be elected when this one is lost.
    lasts: bool,
    /// Locked while a message is written, so that messages do not interleave.
    link: Mutex<Link>,
    received: Mutex<Received>,
    changed: Condvar,
}

/// The sending side of the connection.
#[derive(Debug)]
struct Link {
    stream: Option<Arc<TcpStream>>,
    /// A message could not be written because the other side did not read.
    stuck: bool,
}

impl Line {
    pub(super) fn new(
        address: SocketAddr,
        memory: Memory,
        stream: TcpStream,
        lease: Duration,
        lasts: bool,
    ) -> Result<Self, Error> {
        let refused = |cause| Error::System { call: "setsockopt", cause };
        let stream = Arc::new(stream);
        set_times(&stream, lease).map_err(refused)?;
        let ranks = memory.nodes.len();
        let link = Mutex::new(Link { stream: Some(stream), stuck: false });
        Ok(Self {
            address,
            lease,
            ranks,
            lasts,
            link,
            received: Mutex::new(Received::new(memory)),
            changed: Condvar::new(),
        })
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> Error {
        Error::CoordinatorLost { address: self.address }
    }

    /// Returns the established connection, if there is one.
    pub(super) fn stream(&self) -> Option<Arc<TcpStream>> {
        self.link().stream.clone()
    }

    /// Sends a message. Without a coordinator, or if the coordinator has just been lost and may be
    /// succeeded, the message is discarded. If sending fails, no further message can be sent, and
    /// the listening thread finds that the connection has ended. The connection stays open, because
    /// the other side would take its end for the end of this process.
    pub(super) fn send(&self, up: &Up) -> Result<(), Error> {
        let frame = up.frame();
        let mut link = self.link();
        let Some(stream) = &link.stream else {
            return if self.received().gone { Err(self.lost()) } else { Ok(()) };
        };
        match (&**stream).write_all(&frame) {
            Ok(()) => Ok(()),
            Err(cause) => {
                let _ = stream.shutdown(Shutdown::Read);
                link.stuck |= would_wait(&cause) || cause.kind() == io::ErrorKind::TimedOut;
                if self.lasts && !self.received().gone { Ok(()) } else { Err(self.lost()) }
            }
        }
    }

    /// Returns whether a message could not be written because the other side did not read.
    pub(super) fn is_stuck(&self) -> bool {
        self.link().stuck
    }

    /// Gives up the connection and returns it. If the coordinator was only `silent`, it is
    /// notified.
    pub(super) fn detach(&self, silent: bool) -> Option<Arc<TcpStream>> {
        self.received().seeks = true;
        let mut link = self.link();
        let (stream, stuck) = (link.stream.take(), std::mem::take(&mut link.stuck));
        drop(link);
        if let Some(stream) = stream.as_ref().filter(|_| silent && !stuck) {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(1)));
            let _ = (&**stream).write_all(&Up::Deserts.frame());
        }
        stream
    }

    /// Continues with another coordinator.
    pub(super) fn attach(&self, stream: TcpStream) -> io::Result<()> {
        let stream = Arc::new(stream);
        set_times(&stream, self.lease)?;
        self.link().stream = Some(stream);
        let mut received = self.received();
        received.seeks = false;
        let again = received.unsent();
        let closed = received.closed;
        drop(received);
        self.changed.notify_all();
        again.iter().for_each(|up| _ = self.send(up));
        if closed {
            self.close();
        }
        Ok(())
    }

    /// Begins an exchange; returns its number.
    pub(super) fn bring(&self, within: Duration, bytes: &[u8]) -> Result<u64, Error> {
        let mut received = self.received();
        self.check_running(&received)?;
        let number = received.round;
        received.item = Some(Item { number, within, bytes: bytes.to_vec() });
        received.round += 1;
        drop(received);
        self.send(&Up::Item { round: number, within, bytes: bytes.to_vec() })?;
        Ok(number)
    }

    /// Reports that this rank has ended.
    pub(super) fn send_end(&self, up: &Up) -> Result<(), Error> {
        let mut received = self.received();
        self.check_running(&received)?;
        received.end(up.clone());
        drop(received);
        self.send(up)
    }

    /// Requests the abort of the job.
    pub(super) fn send_abort(&self, code: i32, text: &str) -> Result<(), Error> {
        let up = Up::Abort { code, text: text.into() };
        self.received().abort.get_or_insert(up.clone());
        self.send(&up)
    }

    fn check_running(&self, received: &Received) -> Result<(), Error> {
        self.check(received)?;
        if received.said_end.is_some() { Err(Error::AlreadyEnded) } else { Ok(()) }
    }

    fn check(&self, received: &Received) -> Result<(), Error> {
        if let Some((rank, code, text)) = &received.aborted {
            return Err(Error::Aborted { rank: *rank, code: *code, text: text.clone() });
        }
        if received.gone { Err(self.lost()) } else { Ok(()) }
    }

    /// Records a message, given also as its bytes; returns whether it contains anything new.
    pub(super) fn note(&self, down: &Down, message: &[u8]) -> bool {
        let news = self.received().note(down, message);
        self.changed.notify_all();
        news
    }

    /// Returns the known state of the job, the number of the next exchange, and whether this rank's
    /// program has failed.
    pub(super) fn memory(&self) -> (Memory, u64, bool) {
        let received = self.received();
        let round = received.item.as_ref().map_or(received.round, |item| item.number);
        (received.memory.clone(), round, matches!(received.said_end, Some(Up::Lost { .. })))
    }

    /// Returns whether no further event can follow: this session was dropped, or the job has ended.
    pub(super) fn has_ended(&self) -> bool {
        let received = self.received();
        received.closed || received.all_ended || received.aborted.is_some()
    }

    /// Records that there is no longer a coordinator. Returns whether the program has to be
    /// notified: not if the program ended the session itself, or if no event was outstanding.
    pub(super) fn record_departure(&self) -> bool {
        if let Some(stream) = self.link().stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let over = self.has_ended();
        let mut received = self.received();
        (received.gone, received.seeks) = (true, false);
        self.changed.notify_all();
        !over
    }

    pub(super) fn is_closed(&self) -> bool {
        self.received().closed
    }

    /// Waits for the end of an exchange, for a lease longer than the coordinator does. The time
    /// during which another coordinator is sought is added.
    pub(super) fn wait_round(&self, number: u64, within: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let ended = self.wait(within.saturating_add(self.lease), |received| {
            if received.gathered.as_ref().is_some_and(|(round, _)| *round == number) {
                received.item = None;
                return received.gathered.take().map(|(_, gathered)| Ok(gathered));
            }
            self.check(received).err().map(Err)
        });
        match ended {
            Some(Ok(Ok(items))) => Ok(items),
            Some(Ok(Err((absent, ended)))) => Err(Error::Incomplete { absent, ended }),
            Some(Err(error)) => Err(error),
            None => Err(self.lost()),
        }
    }

    pub(super) fn wait_all_ended(&self, within: Duration) -> Result<(), Error> {
        let ended = self.wait(within, |received| match received.all_ended {
            true => Some(Ok(())),
            false => self.check(received).err().map(Err),
        });
        ended.unwrap_or_else(|| Err(Error::NotEnded { ranks: self.received().memory.running().collect(), within }))
    }

    fn wait<T>(&self, within: Duration, mut look: impl FnMut(&mut Received) -> Option<T>) -> Option<T> {
        let mut begun = Instant::now();
        let mut received = self.received();
        loop {
            if let Some(found) = look(&mut received) {
                return Some(found);
            }
            if received.seeks && received.item.is_some() {
                // The time limit starts over with the next coordinator.
                begun = Instant::now();
            }
            let left = within.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
            received = self.changed.wait_timeout(received, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the connection. If this rank has ended its part, its last messages are delivered; if
    /// not, the coordinator sees the end of the connection.
    pub(super) fn close(&self) {
        let mut received = self.received();
        received.closed = true;
        let gently = received.said_end.is_some() && !received.gone;
        drop(received);
        if let Some(stream) = self.stream() {
            let _ = stream.shutdown(if gently { Shutdown::Write } else { Shutdown::Both });
        }
    }
}

fn set_times(stream: &TcpStream, lease: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(tick(lease)))?;
    stream.set_write_timeout(Some(lease.max(tick(lease))))
}

/// Returns the interval at which a session checks its clock.
pub(super) fn tick(lease: Duration) -> Duration {
    (lease / 8).clamp(Duration::from_millis(1), Duration::from_millis(250))
}

/// Returns whether a read or write has to be retried. The system's `TimedOut` is not such an error:
/// the system has then given up the connection.
pub(super) fn would_wait(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
