//! An established connection of a session, and the state of its messages that calls depend on.
//!
//! There is no connection between the loss of one coordinator and the election of the next.
//! Messages from this time that still matter (the item of an exchange, the rank's departure, an
//! abort) are resent to the next coordinator.

use super::{
    heard::{Heard, Item},
    memory::Memory,
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
    heard: Mutex<Heard>,
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
        Ok(Self { address, lease, ranks, lasts, link, heard: Mutex::new(Heard::new(memory)), changed: Condvar::new() })
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(super) fn say(&self, up: &Up) -> Result<(), Error> {
        let frame = up.frame();
        let mut link = self.link();
        let Some(stream) = &link.stream else {
            return if self.heard().gone { Err(self.lost()) } else { Ok(()) };
        };
        match (&**stream).write_all(&frame) {
            Ok(()) => Ok(()),
            Err(cause) => {
                let _ = stream.shutdown(Shutdown::Read);
                link.stuck |= would_wait(&cause) || cause.kind() == io::ErrorKind::TimedOut;
                if self.lasts && !self.heard().gone { Ok(()) } else { Err(self.lost()) }
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
        self.heard().seeks = true;
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
        let mut heard = self.heard();
        heard.seeks = false;
        let again = heard.say_again();
        let closed = heard.closed;
        drop(heard);
        self.changed.notify_all();
        again.iter().for_each(|up| _ = self.say(up));
        if closed {
            self.close();
        }
        Ok(())
    }

    /// Begins an exchange; returns its number.
    pub(super) fn bring(&self, within: Duration, bytes: &[u8]) -> Result<u64, Error> {
        let mut heard = self.heard();
        self.check_running(&heard)?;
        let number = heard.round;
        heard.item = Some(Item { number, within, bytes: bytes.to_vec() });
        heard.round += 1;
        drop(heard);
        self.say(&Up::Item { round: number, within, bytes: bytes.to_vec() })?;
        Ok(number)
    }

    /// Reports that this rank has ended.
    pub(super) fn say_end(&self, up: &Up) -> Result<(), Error> {
        let mut heard = self.heard();
        self.check_running(&heard)?;
        heard.end(up.clone());
        drop(heard);
        self.say(up)
    }

    /// Requests the abort of the job.
    pub(super) fn say_abort(&self, code: i32, text: &str) -> Result<(), Error> {
        let up = Up::Abort { code, text: text.into() };
        self.heard().abort.get_or_insert(up.clone());
        self.say(&up)
    }

    fn check_running(&self, heard: &Heard) -> Result<(), Error> {
        self.check(heard)?;
        if heard.said_end.is_some() { Err(Error::AlreadyEnded) } else { Ok(()) }
    }

    fn check(&self, heard: &Heard) -> Result<(), Error> {
        if let Some((rank, code, text)) = &heard.aborted {
            return Err(Error::Aborted { rank: *rank, code: *code, text: text.clone() });
        }
        if heard.gone { Err(self.lost()) } else { Ok(()) }
    }

    /// Records a message, given also as its bytes; returns whether it contains anything new.
    pub(super) fn note(&self, down: &Down, message: &[u8]) -> bool {
        let news = self.heard().note(down, message);
        self.changed.notify_all();
        news
    }

    /// Returns the known state of the job, the number of the next exchange, and whether this rank's
    /// program has failed.
    pub(super) fn memory(&self) -> (Memory, u64, bool) {
        let heard = self.heard();
        let round = heard.item.as_ref().map_or(heard.round, |item| item.number);
        (heard.memory.clone(), round, matches!(heard.said_end, Some(Up::Lost { .. })))
    }

    /// Returns whether no further event can follow: this session was dropped, or the job has ended.
    pub(super) fn is_over(&self) -> bool {
        let heard = self.heard();
        heard.closed || heard.all_ended || heard.aborted.is_some()
    }

    /// Records that there is no longer a coordinator. Returns whether the program has to be
    /// notified: not if the program ended the session itself, or if no event was outstanding.
    pub(super) fn note_gone(&self) -> bool {
        if let Some(stream) = self.link().stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let over = self.is_over();
        let mut heard = self.heard();
        (heard.gone, heard.seeks) = (true, false);
        self.changed.notify_all();
        !over
    }

    pub(super) fn is_closed(&self) -> bool {
        self.heard().closed
    }

    /// Waits for the end of an exchange, for a lease longer than the coordinator does. The time
    /// during which another coordinator is sought is added.
    pub(super) fn wait_round(&self, number: u64, within: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let ended = self.wait(within.saturating_add(self.lease), |heard| {
            if heard.gathered.as_ref().is_some_and(|(round, _)| *round == number) {
                heard.item = None;
                return heard.gathered.take().map(|(_, gathered)| Ok(gathered));
            }
            self.check(heard).err().map(Err)
        });
        match ended {
            Some(Ok(Ok(items))) => Ok(items),
            Some(Ok(Err((absent, ended)))) => Err(Error::Incomplete { absent, ended }),
            Some(Err(error)) => Err(error),
            None => Err(self.lost()),
        }
    }

    pub(super) fn wait_all_ended(&self, within: Duration) -> Result<(), Error> {
        let ended = self.wait(within, |heard| match heard.all_ended {
            true => Some(Ok(())),
            false => self.check(heard).err().map(Err),
        });
        ended.unwrap_or_else(|| Err(Error::NotEnded { ranks: self.heard().memory.running().collect(), within }))
    }

    fn wait<T>(&self, within: Duration, mut look: impl FnMut(&mut Heard) -> Option<T>) -> Option<T> {
        let mut begun = Instant::now();
        let mut heard = self.heard();
        loop {
            if let Some(found) = look(&mut heard) {
                return Some(found);
            }
            if heard.seeks && heard.item.is_some() {
                // The time limit starts over with the next coordinator.
                begun = Instant::now();
            }
            let left = within.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
            heard = self.changed.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the connection. If this rank has ended its part, its last messages are delivered; if
    /// not, the coordinator sees the end of the connection.
    pub(super) fn close(&self) {
        let mut heard = self.heard();
        heard.closed = true;
        let gently = heard.said_end.is_some() && !heard.gone;
        drop(heard);
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
