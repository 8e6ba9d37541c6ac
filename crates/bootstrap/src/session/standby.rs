//! How a session finds another coordinator when it has lost the last, or becomes that itself.
//!
//! It opens its own standby, and asks those of the others in the order that a [seeker](super::seeker)
//! gives. While it seeks, threads connect and wait for answers.

use super::{
    dial::{Dial, Failed},
    line::{Line, tick},
    memory::Memory,
    seeker::{Seeker, Step},
    thread::Parting,
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

/// What is needed to find another coordinator.
pub(super) struct Standby {
    pub(super) listener: TcpListener,
    /// Where each rank listens.
    pub(super) addresses: Vec<Option<SocketAddr>>,
    pub(super) secret: Secret,
    pub(super) plan: Plan,
    pub(super) number: u64,
    /// The rank whose process has the coordinator, if it was found so.
    pub(super) host: Option<u32>,
    /// This process's own, if it stands or has been elected.
    pub(super) own: Option<Coordinator>,
    /// Connections to coordinators that may live: their ends would be taken for this process's.
    pub(super) kept: Vec<Arc<TcpStream>>,
}

/// There is no other coordinator for this rank.
pub(super) enum Unfound {
    /// It is held for lost.
    Dismissed(String),
    /// It is not in the larger part of the job.
    Smaller(String),
}

/// What is heard of a standby.
enum News {
    /// It stands.
    Answers(TcpStream),
    /// It is the coordinator. What else has come from it is in the inbox.
    Elected(TcpStream, Inbox),
    Dismissed(String),
    /// It is not, and why; or it can't be reached.
    Gone(Option<String>),
}

impl Standby {
    /// Tells whether another coordinator is sought when the last was parted from so.
    pub(super) fn seeks_after(&self, line: &Line, parting: &Parting) -> bool {
        let (_, _, failed) = line.memory();
        let wanted = match parting {
            Parting::Silent => self.plan.succession != Succession::Never,
            Parting::Ended => self.host.is_some() || self.plan.succession == Succession::AfterAnyEnd,
            Parting::Dismissed(_) | Parting::Over => false,
        };
        wanted && !failed && !line.is_over()
    }

    /// Finds another coordinator and goes on with it; returns what has come from it.
    pub(super) fn find(&mut self, line: &Line, parting: &Parting) -> Result<Inbox, Unfound> {
        let stream = line.detach(*parting == Parting::Silent);
        let ended = *parting == Parting::Ended;
        self.kept.extend(stream.filter(|_| !ended));
        let (memory, ..) = line.memory();
        let roster = Roster { rank: memory.rank, number: self.number, nodes: memory.nodes.clone() };
        let listener = self.listener.try_clone().map_err(|cause| ("dup", cause));
        let own = listener.and_then(|it| Coordinator::stand(it, self.secret.clone(), self.plan.clone(), &roster));
        // A system that has nothing left for one leaves this process to the standbys of others.
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
        let mut seeker = Seeker::new(candidates.len(), line.lease, Instant::now());
        let (tell, news) = channel();
        let mut streams: Vec<Option<TcpStream>> = candidates.iter().map(|_| None).collect();
        let (mut vote, mut why) = (None, "no other part of it was reached".to_owned());
        let found = loop {
            if line.is_over() {
                break Err(Unfound::Smaller(why));
            }
            match seeker.next(Instant::now()) {
                Step::Dial(index) => self.ask(candidates[index], index, seeker.end(), &tell),
                Step::Vote(index) => {
                    take_back(vote.replace(index).and_then(|before| streams[before].take()));
                    // If that fails, its connection has ended, which is heard of.
                    _ = streams[index].as_mut().map(|stream| give_vote(stream, line, &dead));
                }
                Step::GiveUp => break Err(Unfound::Smaller(why)),
                Step::Wait(until) => match wait(&news, until, line.lease) {
                    Some((index, News::Answers(mut stream))) => {
                        if vote == Some(index) {
                            // Its last connection has ended, and what was said over it counts no more.
                            _ = give_vote(&mut stream, line, &dead);
                        }
                        streams[index] = Some(stream);
                        seeker.answered(index);
                    }
                    // From another one it came too late.
                    Some((index, News::Elected(stream, inbox))) if vote == Some(index) => {
                        streams[index] = None;
                        match line.attach(stream) {
                            Ok(()) => {
                                self.host = Some(candidates[index]);
                                break Ok(inbox);
                            }
                            // It counts on this rank, which has to end then.
                            Err(cause) => break Err(Unfound::Smaller(cause.to_string())),
                        }
                    }
                    Some((index, News::Dismissed(text))) if vote == Some(index) => {
                        break Err(Unfound::Dismissed(text));
                    }
                    Some((index, News::Gone(text))) => {
                        seeker.gone(index);
                        why = text.unwrap_or(why);
                    }
                    Some((_, News::Elected(..) | News::Dismissed(_))) | None => {}
                },
            }
        };
        streams.into_iter().for_each(take_back);
        found
    }

    /// Returns the ranks whose processes have certainly ended, since nobody listens at their addresses:
    /// those of this host, and the one that had the coordinator if that connection has ended. Of others
    /// a network may say so that refuses connections by itself.
    fn dead(&self, memory: &Memory, ended: bool) -> Vec<u32> {
        let of_host = |rank: &u32| memory.nodes[*rank as usize] == memory.nodes[memory.rank as usize];
        let had_it = |rank: &u32| ended && self.host == Some(*rank);
        let asked = memory.running().filter(|rank| *rank != memory.rank && (of_host(rank) || had_it(rank)));
        asked.filter(|rank| self.is_refused(*rank, had_it(rank))).collect()
    }

    /// Tells whether connections to a rank's address are refused. A process that `ends` may need a moment
    /// until they are.
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
    fn ask(&self, rank: u32, index: usize, until: Instant, tell: &Sender<(usize, News)>) {
        let (address, secret, tell) = (self.addresses[rank as usize], self.secret.clone(), tell.clone());
        let limit = down_limit(self.addresses.len(), self.plan.segment.len());
        let asks = {
            let tell = tell.clone();
            move || {
                let told = address
                    .and_then(|address| ask(address, &secret, limit, until, &|news| tell.send((index, news)).is_ok()));
                let _ = tell.send((index, told.unwrap_or(News::Gone(None))));
            }
        };
        let builder = thread::Builder::new().name("seeking".into()).stack_size(256 << 10);
        if builder.spawn(asks).is_err() {
            let _ = tell.send((index, News::Gone(None)));
        }
    }
}

/// Tells a standby what this rank knows, by which it votes for it.
fn give_vote(stream: &mut TcpStream, line: &Line, dead: &[u32]) -> io::Result<()> {
    let (memory, round, _) = line.memory();
    stream.write_all(&Up::Vote(memory.vote(dead.to_vec(), round)).frame())
}

/// Between two tries to ask a standby.
const AGAIN: Duration = Duration::from_millis(5);

/// Connects to a standby and returns what it says; nothing if it can't be reached.
///
/// A connection that just ends is tried again: a standby of an earlier search, which its process is
/// ending, may have taken it from the listener that both have. If the process has ended, the next try
/// is refused.
fn ask(
    address: SocketAddr,
    secret: &Secret,
    limit: usize,
    until: Instant,
    tell: &dyn Fn(News) -> bool,
) -> Option<News> {
    let dial = Dial { address, secret, within: until.saturating_duration_since(Instant::now()), until };
    loop {
        match ask_once(&dial, limit, tell) {
            Asked::Says(news) => return news,
            Asked::Ended if dial.left().is_some() => thread::sleep(AGAIN),
            Asked::Ended => return None,
        }
    }
}

/// What came of one connection to a standby.
enum Asked {
    /// This, or nothing that could be understood.
    Says(Option<News>),
    /// Its end.
    Ended,
}

fn ask_once(dial: &Dial<'_>, limit: usize, tell: &dyn Fn(News) -> bool) -> Asked {
    let mut stream = match dial.connect() {
        Ok(stream) => stream,
        Err(Failed::Now(cause)) if has_ended(&cause) => return Asked::Ended,
        Err(_) => return Asked::Says(None),
    };
    let told = stream.try_clone().is_ok_and(|stream| tell(News::Answers(stream)));
    if !told {
        return Asked::Says(None);
    }
    let (mut inbox, mut buffer) = (Inbox::new(limit), vec![0; 4 << 10]);
    loop {
        match inbox.message() {
            Ok(Some(message)) => {
                return Asked::Says(match Down::read(&message) {
                    Some(Down::Elected) => Some(News::Elected(stream, inbox)),
                    Some(Down::NotElected { text }) => Some(News::Gone(Some(text))),
                    Some(Down::Dismissed { text }) => Some(News::Dismissed(text)),
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

/// Returns whether the other side has ended a connection that stood.
fn has_ended(cause: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(cause.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe)
}

/// Returns the next news; nothing if there is none by then, or for a while.
fn wait(news: &Receiver<(usize, News)>, until: Instant, lease: Duration) -> Option<(usize, News)> {
    let left = until.saturating_duration_since(Instant::now()).min(tick(lease));
    news.recv_timeout(left).ok()
}

/// Gives up a connection to a standby: if it counts this rank's vote, it has to know that it is none any more.
/// The thread that hears it ends, too.
fn take_back(stream: Option<TcpStream>) {
    if let Some(mut stream) = stream {
        let _ = stream.write_all(&Up::Deserts.frame());
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Ends a coordinator that this process has no use for, which takes a moment.
fn let_end(coordinator: Option<Coordinator>) {
    if let Some(coordinator) = coordinator {
        let _ = thread::Builder::new().name("standby's end".into()).spawn(move || drop(coordinator));
    }
}
