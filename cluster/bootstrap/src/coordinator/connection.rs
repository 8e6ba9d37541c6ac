//! One connection of the coordinator: its received bytes and its send queue.

use crate::{
    Secret,
    handshake::{self, Challenge, Wrong},
    wire::{Frame, Inbox, Up},
};
use rustix::io::Errno;
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::Instant,
};

/// The protocol state of a connection.
#[derive(Debug)]
pub(super) enum Stage {
    /// Waiting for the session's greeting.
    Greeting,
    /// Waiting for the session's proof: its challenge and ours.
    Proof(Challenge, Challenge),
    /// The session has proved that it knows the secret; waiting for its hello.
    Hello,
    /// The connection belongs to this rank.
    Rank(u32),
    /// It is no longer read, and is closed once the other side has closed it too.
    Closing,
}

/// A connection to a session, or to an unrelated process that connected to the address.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) stage: Stage,
    /// The deadline of this stage, unless the connection belongs to a rank.
    pub(super) until: Instant,
    /// Whether epoll reports when more can be sent.
    pub(super) asks_to_send: bool,
    inbox: Inbox,
    outbox: VecDeque<Frame>,
    sent: usize,
}

/// A connection that is no longer usable.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) why: String,
    /// The other side's process may still run: the failure does not prove that it has ended.
    pub(super) may_live: bool,
}

impl Broken {
    /// The other side violated the protocol.
    pub(super) fn misused(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_live: true }
    }

    /// The system reports that the connection ended: the other side's process has ended, or this
    /// side's system has given up.
    fn of(cause: &io::Error) -> Self {
        let ended = matches!(cause.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
        Self { why: format!("its connection broke: {cause}"), may_live: !ended }
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, until: Instant, limit: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let (inbox, outbox) = (Inbox::new(limit), VecDeque::new());
        Ok(Self { stream, stage: Stage::Greeting, until, asks_to_send: false, inbox, outbox, sent: 0 })
    }

    /// Reads the available bytes, up to the length of `buffer`, and returns whether there were any.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, Broken> {
        match self.stream.read(buffer) {
            Ok(0) => Err(Broken { why: "its connection ended".into(), may_live: false }),
            Ok(_) if matches!(self.stage, Stage::Closing) => Ok(true),
            Ok(count) => {
                self.inbox.push(&buffer[..count]);
                Ok(true)
            }
            Err(cause) if would_wait(&cause) => Ok(false),
            Err(cause) => Err(Broken::of(&cause)),
        }
    }

    /// Advances the challenge and response as far as the received bytes allow, and queues this
    /// side's part.
    pub(super) fn prove(&mut self, secret: &Secret) -> Result<(), Broken> {
        if matches!(self.stage, Stage::Greeting)
            && let Some(greeting) = self.inbox.take()
        {
            let mine = crate::secret::random_bytes().map_err(|cause| Broken::misused(cause.to_string()))?;
            let answered = |theirs: &Challenge| handshake::answer(secret, theirs, &mine);
            match handshake::read_greeting(&greeting) {
                Ok(theirs) => {
                    self.queue(Frame::from(answered(&theirs)));
                    self.stage = Stage::Proof(theirs, mine);
                }
                Err(Wrong::Version(_)) => {
                    // The session receives the version, and a proof that it can't use.
                    self.queue(Frame::from(answered(&mine)));
                    self.stage = Stage::Closing;
                }
                Err(_) => return Err(Broken::misused("garbage")),
            }
        }
        if let Stage::Proof(theirs, mine) = &self.stage
            && let Some(proof) = self.inbox.take()
        {
            if !handshake::proves(secret, theirs, mine, &proof) {
                return Err(Broken::misused("wrong secret"));
            }
            self.stage = Stage::Hello;
        }
        Ok(())
    }

    /// Returns the next message, if it is complete. The handshake has to be complete.
    pub(super) fn message(&mut self) -> Result<Option<Up>, Broken> {
        let malformed = || Broken::misused("it sent a message that is none");
        match self.inbox.message() {
            Ok(Some(message)) => Up::read(&message).map(Some).ok_or_else(malformed),
            Ok(None) => Ok(None),
            Err(_) => Err(malformed()),
        }
    }

    /// Queues `frame` for sending.
    pub(super) fn queue(&mut self, frame: Frame) {
        self.outbox.push_back(frame);
    }

    /// Sends as much of the queue as the system accepts, and returns whether anything remains
    /// queued.
    pub(super) fn send(&mut self) -> Result<bool, Broken> {
        while let Some(frame) = self.outbox.front() {
            match self.stream.write(&frame[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(cause) if would_wait(&cause) => return Ok(true),
                Err(cause) => return Err(Broken::of(&cause)),
            }
            if self.sent == frame.len() {
                self.outbox.pop_front();
                self.sent = 0;
            }
        }
        if matches!(self.stage, Stage::Closing) {
            // The bytes sent arrive even if bytes of the other side are still unread here, since
            // the connection stays open until the other side has closed it.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        Ok(false)
    }
}

fn would_wait(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || cause.raw_os_error() == Some(Errno::AGAIN.raw_os_error())
}
