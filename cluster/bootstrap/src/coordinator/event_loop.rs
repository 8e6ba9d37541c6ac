//! The coordinator's thread: the event loop that accepts connections and passes messages between
//! them and the job.

use super::{
    Command, Shared,
    connection::{Broken, Connection, Stage},
    job::{Job, Order},
    listener::Listener,
};
use crate::Secret;
use rustix::event::{
    Timespec,
    epoll::{self, EventData, EventFlags},
};
use std::{
    collections::HashMap,
    io,
    net::TcpListener,
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

/// The time within which a connection has to authenticate itself and identify its rank.
pub(super) const PROVE_WITHIN: Duration = Duration::from_secs(2);

/// The maximum number of unauthenticated connections, in addition to one for every awaited rank.
const MAX_UNAUTHENTICATED: usize = 64;

/// The number of connections accepted before the existing ones are polled again.
const BATCH: usize = 16;

/// The time that a stopping coordinator gives its sessions to read everything.
const LINGER: Duration = Duration::from_secs(1);

const LISTENER: u64 = 0;
const WAKE: u64 = 1;

/// The thread's state.
pub(super) struct EventLoop {
    listener: Listener,
    epoll: rustix::fd::OwnedFd,
    secret: Secret,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    connections: HashMap<u64, Connection>,
    /// The deadlines of the connections that do not belong to a rank, by token: an older one has a smaller token.
    unauthenticated: HashMap<u64, Instant>,
    next: u64,
    job: Job,
    lease: Duration,
    buffer: Vec<u8>,
}

impl EventLoop {
    pub(super) fn open(
        listener: TcpListener,
        secret: Secret,
        job: Job,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let listener = Listener::open(listener, &epoll, LISTENER)?;
        epoll::add(&epoll, &shared.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let lease = job.lease();
        let (connections, unauthenticated, buffer) = (HashMap::new(), HashMap::new(), vec![0; 64 << 10]);
        Ok(Self {
            listener,
            epoll,
            secret,
            shared,
            commands,
            connections,
            unauthenticated,
            next: WAKE + 1,
            job,
            lease,
            buffer,
        })
    }

    /// Runs until the owner requests a stop.
    pub(super) fn run(mut self) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        let mut stop: Option<Instant> = None;
        loop {
            let planned = self.next_time(stop);
            self.pause(planned, &mut events);
            let now = Instant::now();
            if now.saturating_duration_since(planned) > self.lease / 2 {
                // This thread did not run for a while, so the silence is not the ranks' fault.
                self.job.forgive(now);
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(now),
                    WAKE => stop = stop.or(self.execute_commands(now)),
                    token => self.handle(token, event.flags, now),
                }
            }
            self.job.tick(now);
            self.carry_out();
            self.drop_late(now);
            self.listener.tick(&self.epoll, now);
            if stop.is_some_and(|until| self.connections.is_empty() || now >= until) {
                return;
            }
        }
    }

    /// Returns the time of the next timer event.
    fn next_time(&self, stop: Option<Instant>) -> Instant {
        let oldest = self.unauthenticated.values().min().copied();
        [oldest, stop, self.listener.next_time()].into_iter().flatten().fold(self.job.next_time(), Instant::min)
    }

    fn pause(&self, until: Instant, events: &mut Vec<epoll::Event>) {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up to the milliseconds to which older systems are limited.
        let left = Duration::from_millis(left.as_millis().min(60_000) as u64 + 1);
        let limit = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        // An interruption is handled like an expired time-out.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&limit));
    }

    /// Executes the owner's commands; for a stop command, returns the end of the linger time.
    fn execute_commands(&mut self, now: Instant) -> Option<Instant> {
        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        let mut stop = None;
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Abort { code, text } => self.job.abort(None, code, text),
                Command::Gone { rank, text } => self.job.gone(now, rank, text),
                Command::Stop => {
                    stop = Some(now + LINGER);
                    self.listener.close(&self.epoll);
                    self.carry_out();
                    let all: Vec<u64> = self.connections.keys().copied().collect();
                    for token in all {
                        self.close_gently(token, now + LINGER);
                    }
                    self.job.stop();
                }
            }
        }
        stop
    }

    /// Accepts some of the pending connections.
    fn accept(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let Some(stream) = self.listener.accept(&self.epoll, now) else { return };
            let Ok(connection) = Connection::new(stream, now + self.job.patience(), self.job.message_limit()) else {
                continue;
            };
            let token = self.next;
            self.next += 1;
            if epoll::add(&self.epoll, &connection.stream, EventData::new_u64(token), EventFlags::IN).is_err() {
                continue;
            }
            self.unauthenticated.insert(token, connection.until);
            self.connections.insert(token, connection);
            if self.unauthenticated.len() > MAX_UNAUTHENTICATED + self.job.awaited() {
                let oldest = self.unauthenticated.keys().min().copied();
                oldest.into_iter().for_each(|token| self.forget(token));
            }
        }
    }

    /// Reads from and writes to a connection, depending on its readiness flags.
    fn handle(&mut self, token: u64, flags: EventFlags, now: Instant) {
        if flags.contains(EventFlags::OUT) {
            self.send(token);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let received = connection.receive(&mut self.buffer);
        // Messages that arrived before the end of the connection are processed.
        if let Err(broken) = received.and_then(|_| self.read_messages(token, now)) {
            self.lose(token, broken, now);
        }
    }

    /// Handles all complete messages of a connection.
    fn read_messages(&mut self, token: u64, now: Instant) -> Result<(), Broken> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        connection.prove(&self.secret)?;
        loop {
            let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
            match connection.stage {
                Stage::Greeting | Stage::Proof(..) | Stage::Closing => break,
                Stage::Hello => match connection.message()? {
                    Some(up) => {
                        if let Some(rank) = self.job.receive(now, token, up)? {
                            connection.stage = Stage::Rank(rank);
                            self.unauthenticated.remove(&token);
                        }
                    }
                    None => break,
                },
                Stage::Rank(rank) => match connection.message()? {
                    Some(up) => self.job.on_message(now, rank, up)?,
                    None => break,
                },
            }
            self.carry_out();
        }
        self.send(token);
        Ok(())
    }

    /// Publishes the job's state, then executes the job's orders. In this order, the owner sees at
    /// least all that any session has received.
    fn carry_out(&mut self) {
        self.publish();
        while let Some(order) = self.job.next_order() {
            match order {
                Order::Send(token, frame) => {
                    if let Some(connection) = self.connections.get_mut(&token) {
                        connection.queue(frame);
                        self.send(token);
                    }
                }
                Order::CloseGently(token) => self.close_gently(token, Instant::now() + PROVE_WITHIN),
                Order::Close(token) => self.forget(token),
            }
        }
    }

    /// Sends queued frames. A failure is reported later, as the end of the connection.
    fn send(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Ok(asks) = connection.send() else { return };
        if asks != connection.asks_to_send {
            let flags = if asks { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            connection.asks_to_send = asks;
            let _ = epoll::modify(&self.epoll, &connection.stream, EventData::new_u64(token), flags);
        }
    }

    fn close_gently(&mut self, token: u64, until: Instant) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.stage = Stage::Closing;
            connection.until = until;
            self.unauthenticated.insert(token, until);
            self.send(token);
        }
    }

    fn lose(&mut self, token: u64, broken: Broken, now: Instant) {
        let rank = self.connections.get(&token).map(|connection| &connection.stage);
        if let Some(Stage::Rank(rank)) = rank {
            self.job.broke(now, *rank, token, broken);
        }
        self.forget(token);
        self.carry_out();
    }

    fn forget(&mut self, token: u64) {
        self.unauthenticated.remove(&token);
        if let Some(connection) = self.connections.remove(&token) {
            let _ = epoll::delete(&self.epoll, &connection.stream);
        }
    }

    /// Drops connections that did not authenticate, or did not close, before their deadlines.
    fn drop_late(&mut self, now: Instant) {
        let late: Vec<u64> =
            self.unauthenticated.iter().filter(|(_, until)| **until <= now).map(|(token, _)| *token).collect();
        late.into_iter().for_each(|token| self.forget(token));
    }

    fn publish(&mut self) {
        if self.job.take_changed() {
            let mut seen = self.shared.seen();
            seen.set_ends(self.job.ends());
            seen.outcome = self.job.outcome();
            self.shared.changed.notify_all();
        }
    }
}
