//! The coordinator's listener, which pauses while the system has no descriptor or memory for a
//! connection.

use rustix::{
    event::epoll::{self, EventData, EventFlags},
    fd::OwnedFd,
    io::Errno,
};
use std::{
    io,
    net::{TcpListener, TcpStream},
    time::{Duration, Instant},
};

/// The length of a pause.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Listener {
    socket: TcpListener,
    /// The identification of its events.
    token: u64,
    /// During a pause: its end. The socket is not polled until then: it stays readable, as pending
    /// connections wait in its backlog.
    paused_until: Option<Instant>,
}

impl Listener {
    /// Starts polling a socket.
    pub(super) fn open(socket: TcpListener, epoll: &OwnedFd, token: u64) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        epoll::add(epoll, &socket, EventData::new_u64(token), EventFlags::IN)?;
        Ok(Listener { socket, token, paused_until: None })
    }

    /// Accepts a pending connection. Pauses if the system cannot take it.
    pub(super) fn accept(&mut self, epoll: &OwnedFd, now: Instant) -> Option<TcpStream> {
        match self.socket.accept() {
            Ok((stream, _)) => Some(stream),
            Err(error) => {
                // Otherwise no connection is pending, or it was closed before it was accepted.
                if is_exhaustion(&error) {
                    self.close(epoll);
                    self.paused_until = Some(now + PAUSE);
                }
                None
            }
        }
    }

    /// Returns the end of the current pause.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Ends a pause whose time has passed.
    pub(super) fn tick(&mut self, epoll: &OwnedFd, now: Instant) {
        if self.paused_until.is_some_and(|until| until <= now) {
            let added = epoll::add(epoll, &self.socket, EventData::new_u64(self.token), EventFlags::IN);
            self.paused_until = added.is_err().then(|| now + PAUSE);
        }
    }

    /// Accepts no further connections.
    pub(super) fn close(&mut self, epoll: &OwnedFd) {
        self.paused_until = None;
        let _ = epoll::delete(epoll, &self.socket);
    }
}

fn is_exhaustion(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
