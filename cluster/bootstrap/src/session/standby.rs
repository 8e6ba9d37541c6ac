//! Finding another coordinator after the last one was lost, or becoming the coordinator.
//!
//! A session opens its own standby, and asks the standbys of the other ranks in the order given by
//! a [search](super::search). During the search, threads connect and wait for answers.

use super::{
    dial::{Dial, Failed},
    line::{Line, tick},
    memory::Memory,
    search::{CoordinatorSearch, Step},
    thread::Departure,
};
use crate::{
    Coordinator, Plan, Secret, Succession,
    coordinator::Roster,
    wire::{Down, Inbox, Up, down_limit},
};
use std::{
    io::{self, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The state needed to find another coordinator.
pub(super) struct Standby {
    pub(super) listener: TcpListener,
    /// The address at which each rank listens.
    pub(super) addresses: Vec<Option<SocketAddr>>,
    pub(super) secret: Secret,
    pub(super) plan: Plan,
    pub(super) number: u64,
    /// The rank whose process runs the coordinator, if the coordinator was elected.
    pub(super) host: Option<u32>,
    /// This process's own standby, while it collects votes or after it has been elected.
    pub(super) own: Option<Coordinator>,
    /// Connections to coordinators that may still run: they would take the end of the connection
    /// for the end of this process.
    pub(super) kept: Vec<Arc<TcpStream>>,
}

/// There is no other coordinator for this rank.
pub(super) enum Unfound {
    /// The other ranks consider it lost.
    Dismissed(String),
    /// It is not in the larger part of the job.
    Smaller(String),
}

/// An event of a standby.
enum StandbyEvent {
    /// It accepts votes.
    Answers(TcpStream),
    /// It is the coordinator. Further bytes received from it are in the inbox.
    Elected(TcpStream, Inbox),
    Dismissed(String),
    /// It is not the coordinator, and why; or it can't be reached.
    Gone(Option<String>),
}

impl Standby {
    /// Returns whether another coordinator is sought after the last one was lost in this way.
    pub(super) fn searches_after(&self, line: &Line, departure: &Departure) -> bool {
        let (_, _, failed) = line.memory();
        let wanted = match departure {
            Departure::Silent => self.plan.succession != Succession::Never,
            Departure::Ended => self.host.is_some() || self.plan.succession == Succession::AfterAnyEnd,
            Departure::Dismissed(_) | Departure::Closed => false,
        };
        wanted && !failed && !line.has_ended()
    }

    /// Finds another coordinator and continues with it; returns the bytes already received from it.
    pub(super) fn find(&mut self, line: &Line, departure: &Departure) -> Result<Inbox, Unfound> {
        let stream = line.detach(*departure == Departure::Silent);
        let ended = *departure == Departure::Ended;
        self.kept.extend(stream.filter(|_| !ended));
        let (memory, ..) = line.memory();
        let roster = Roster { rank: memory.rank, number: self.number, nodes: memory.nodes.clone() };
        let listener = self.listener.try_clone().map_err(|cause| ("dup", cause));
        let own = listener.and_then(|it| Coordinator::stand(it, self.secret.clone(), self.plan.clone(), &roster));
        // If the system has no resources for a standby, this process relies on the standbys of
        // other ranks.
        let before = std::mem::replace(&mut self.own, own.ok());
        let_end(before);
        let found = self.search(line, &memory, ended);
        if self.host != Some(memory.rank) || found.is_err() {
            let_end(self.own.take());
        }
        found
    }

    fn search(&mut self, line: &Line, memory: &Memory, ended: bool) -> Result<Inbox, Unfound> {
        let dead = self.dead(memory, ended);
        let candidates = memory.candidates();
        let mut search = CoordinatorSearch::new(candidates.len(), line.lease, Instant::now());
        let (tell, event) = channel();
        let mut streams: Vec<Option<TcpStream>> = candidates.iter().map(|_| None).collect();
        let (mut vote, mut why) = (None, "no other part of it was reached".to_owned());
        let found = loop {
            if line.has_ended() {
                break Err(Unfound::Smaller(why));
            }
            match search.next(Instant::now()) {
                Step::Dial(index) => self.query(candidates[index], index, search.end(), &tell),
                Step::Vote(index) => {
                    take_back(vote.replace(index).and_then(|before| streams[before].take()));
                    // A failure means that the connection has ended, which its thread reports.
                    _ = streams[index].as_mut().map(|stream| give_vote(stream, line, &dead));
                }
                Step::GiveUp => break Err(Unfound::Smaller(why)),
                Step::Wait(until) => match wait(&event, until, line.lease) {
                    Some((index, StandbyEvent::Answers(mut stream))) => {
                        if vote == Some(index) {
                            // The last connection to this standby has ended, so the vote sent over
                            // it no longer counts.
                            _ = give_vote(&mut stream, line, &dead);
                        }
                        streams[index] = Some(stream);
                        search.answered(index);
                    }
                    // An answer of another standby, which arrives too late.
                    Some((index, StandbyEvent::Elected(stream, inbox))) if vote == Some(index) => {
                        streams[index] = None;
                        match line.attach(stream) {
                            Ok(()) => {
                                self.host = Some(candidates[index]);
                                break Ok(inbox);
                            }
                            // The new coordinator already counts this rank as a member, so this
                            // rank can't choose another one and has to end.
                            Err(cause) => break Err(Unfound::Smaller(cause.to_string())),
                        }
                    }
                    Some((index, StandbyEvent::Dismissed(text))) if vote == Some(index) => {
                        break Err(Unfound::Dismissed(text));
                    }
                    Some((index, StandbyEvent::Gone(text))) => {
                        search.gone(index);
                        why = text.unwrap_or(why);
                    }
                    Some((_, StandbyEvent::Elected(..) | StandbyEvent::Dismissed(_))) | None => {}
                },
            }
        };
        streams.into_iter().for_each(take_back);
        found
    }

    /// Returns the ranks whose processes have certainly ended, since connections to their addresses
    /// are refused: ranks of this host, and the rank that ran the coordinator if that connection
    /// has ended. A refusal for any other rank may come from the network itself.
    fn dead(&self, memory: &Memory, ended: bool) -> Vec<u32> {
        let of_host = |rank: &u32| memory.nodes[*rank as usize] == memory.nodes[memory.rank as usize];
        let had_it = |rank: &u32| ended && self.host == Some(*rank);
        let asked = memory.running().filter(|rank| *rank != memory.rank && (of_host(rank) || had_it(rank)));
        asked.filter(|rank| self.is_refused(*rank, had_it(rank))).collect()
    }

    /// Returns whether connections to a rank's address are refused. A process that `ends` may need
    /// a moment until they are.
    fn is_refused(&self, rank: u32, ends: bool) -> bool {
        let Some(address) = &self.addresses[rank as usize] else { return false };
        let (begun, within) = (Instant::now(), self.plan.lease / 8);
        loop {
            match TcpStream::connect_timeout(address, within) {
                Err(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => return true,
                _ if !ends || begun.elapsed() >= within => return false,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Starts to ask the standby of a rank.
    fn query(&self, rank: u32, index: usize, until: Instant, tell: &Sender<(usize, StandbyEvent)>) {
        let (address, secret, tell) = (self.addresses[rank as usize], self.secret.clone(), tell.clone());
        let limit = down_limit(self.addresses.len(), self.plan.segment.len());
        let asks = {
            let tell = tell.clone();
            move || {
                let told = address.and_then(|address| {
                    query(address, &secret, limit, until, &|event| tell.send((index, event)).is_ok())
                });
                let _ = tell.send((index, told.unwrap_or(StandbyEvent::Gone(None))));
            }
        };
        let builder = thread::Builder::new().name("seeking".into()).stack_size(256 << 10);
        if builder.spawn(asks).is_err() {
            let _ = tell.send((index, StandbyEvent::Gone(None)));
        }
    }
}

/// Sends this rank's state to a standby; that is its vote.
fn give_vote(stream: &mut TcpStream, line: &Line, dead: &[u32]) -> io::Result<()> {
    let (memory, round, _) = line.memory();
    stream.write_all(&Up::Vote(memory.vote(dead.to_vec(), round)).frame())
}

/// The pause between two attempts to ask a standby.
const AGAIN: Duration = Duration::from_millis(5);

/// Connects to a standby and returns its answer; `None` if it can't be reached.
///
/// A connection that simply ends is retried: a standby of an earlier search, which its process is
/// ending, may have accepted it from the listener that both share. If the process has ended, the
/// next attempt is refused.
fn query(
    address: SocketAddr,
    secret: &Secret,
    limit: usize,
    until: Instant,
    tell: &dyn Fn(StandbyEvent) -> bool,
) -> Option<StandbyEvent> {
    let dial = Dial { address, secret, within: until.saturating_duration_since(Instant::now()), until };
    loop {
        match query_once(&dial, limit, tell) {
            Asked::Says(event) => return event,
            Asked::Ended if dial.left().is_some() => thread::sleep(AGAIN),
            Asked::Ended => return None,
        }
    }
}

/// The outcome of one connection to a standby.
enum Asked {
    /// Its answer, or `None` if the answer could not be understood.
    Says(Option<StandbyEvent>),
    /// The connection ended.
    Ended,
}

fn query_once(dial: &Dial<'_>, limit: usize, tell: &dyn Fn(StandbyEvent) -> bool) -> Asked {
    let mut stream = match dial.connect() {
        Ok(stream) => stream,
        Err(Failed::Now(cause)) if has_ended(&cause) => return Asked::Ended,
        Err(_) => return Asked::Says(None),
    };
    let told = stream.try_clone().is_ok_and(|stream| tell(StandbyEvent::Answers(stream)));
    if !told {
        return Asked::Says(None);
    }
    let (mut inbox, mut buffer) = (Inbox::new(limit), vec![0; 4 << 10]);
    loop {
        match inbox.message() {
            Ok(Some(message)) => {
                return Asked::Says(match Down::read(&message) {
                    Some(Down::Elected) => Some(StandbyEvent::Elected(stream, inbox)),
                    Some(Down::NotElected { text }) => Some(StandbyEvent::Gone(Some(text))),
                    Some(Down::Dismissed { text }) => Some(StandbyEvent::Dismissed(text)),
                    _ => None,
                });
            }
            Ok(None) => {}
            Err(_) => return Asked::Says(None),
        }
        match dial.read(&mut stream, &mut buffer) {
            Ok(Some(0)) => return Asked::Ended,
            Ok(Some(count)) => inbox.push(&buffer[..count]),
            Err(Failed::Now(cause)) if has_ended(&cause) => return Asked::Ended,
            Ok(None) | Err(_) => return Asked::Says(None),
        }
    }
}

/// Returns whether the other side has ended an established connection.
fn has_ended(cause: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(cause.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// Returns the next event; `None` if there is none until `until`, or for some time.
fn wait(event: &Receiver<(usize, StandbyEvent)>, until: Instant, lease: Duration) -> Option<(usize, StandbyEvent)> {
    let left = until.saturating_duration_since(Instant::now()).min(tick(lease));
    event.recv_timeout(left).ok()
}

/// Gives up a connection to a standby. If the standby has counted this rank's vote, it is notified
/// that the vote is withdrawn. The thread that reads from the connection also ends.
fn take_back(stream: Option<TcpStream>) {
    if let Some(mut stream) = stream {
        let _ = stream.write_all(&Up::Deserts.frame());
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Ends a coordinator that this process does not need. A separate thread does this because it takes
/// a moment.
fn let_end(coordinator: Option<Coordinator>) {
    if let Some(coordinator) = coordinator {
        let _ = thread::Builder::new().name("standby's end".into()).spawn(move || drop(coordinator));
    }
}
