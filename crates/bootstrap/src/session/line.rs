//! A session's connection once it stands: what is said over it, and what has been heard.

use crate::{
    Error,
    wire::{Down, ITEM_LIMIT, Up},
};
use std::{
    io::{self, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How an exchange ended.
type Gathered = Result<Vec<Vec<u8>>, (Vec<u32>, Vec<(u32, String)>)>;

/// The connection.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) address: SocketAddr,
    pub(super) stream: TcpStream,
    pub(super) lease: Duration,
    /// Locked while a message is written: messages must not mix.
    writing: Mutex<()>,
    heard: Mutex<Heard>,
    changed: Condvar,
}

/// What has been heard and said, as far as calls wait for it or depend on it.
#[derive(Debug)]
struct Heard {
    /// Which ranks have ended.
    ended: Vec<bool>,
    /// The latest exchange's end.
    gathered: Option<(u64, Gathered)>,
    all_ended: bool,
    aborted: Option<(Option<u32>, i32, String)>,
    /// The coordinator is gone.
    gone: bool,
    /// This process has left or told that it is lost.
    said_end: bool,
    /// The session has been dropped.
    closed: bool,
    rank: u32,
}

impl Line {
    pub(super) fn new(
        address: SocketAddr,
        rank: u32,
        ranks: usize,
        stream: TcpStream,
        lease: Duration,
    ) -> Result<Self, Error> {
        let refused = |call| move |cause| Error::System { call, cause };
        stream.set_read_timeout(Some(tick(lease))).map_err(refused("setsockopt"))?;
        stream.set_write_timeout(Some(lease.max(tick(lease)))).map_err(refused("setsockopt"))?;
        let heard = Heard {
            ended: vec![false; ranks],
            gathered: None,
            all_ended: false,
            aborted: None,
            gone: false,
            said_end: false,
            closed: false,
            rank,
        };
        Ok(Self { address, stream, lease, writing: Mutex::new(()), heard: Mutex::new(heard), changed: Condvar::new() })
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> Error {
        Error::CoordinatorLost { address: self.address }
    }

    /// Sends a message. If that fails, no other can be sent: the connection is shut down, and the
    /// thread that listens finds it ended.
    pub(super) fn say(&self, up: &Up) -> Result<(), Error> {
        let frame = up.frame();
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        match (&self.stream).write_all(&frame) {
            Ok(()) => Ok(()),
            Err(_) => {
                let _ = self.stream.shutdown(Shutdown::Both);
                Err(self.lost())
            }
        }
    }

    /// Sends a message that only a rank may send that has not ended.
    pub(super) fn say_while_running(&self, up: &Up) -> Result<(), Error> {
        let heard = self.heard();
        self.check(&heard)?;
        if heard.said_end {
            return Err(Error::AlreadyEnded);
        }
        drop(heard);
        self.say(up)
    }

    /// Sends that this rank has ended.
    fn say_end(&self, up: &Up) -> Result<(), Error> {
        let mut heard = self.heard();
        self.check(&heard)?;
        if heard.said_end {
            return Err(Error::AlreadyEnded);
        }
        heard.said_end = true;
        let rank = heard.rank as usize;
        heard.ended[rank] = true;
        drop(heard);
        self.say(up)
    }

    fn check(&self, heard: &Heard) -> Result<(), Error> {
        if let Some((rank, code, text)) = &heard.aborted {
            return Err(Error::Aborted { rank: *rank, code: *code, text: text.clone() });
        }
        if heard.gone { Err(self.lost()) } else { Ok(()) }
    }

    /// Notes what calls wait for.
    pub(super) fn note(&self, down: &Down) {
        let mut heard = self.heard();
        let mut end = |rank: u32| heard.ended.get_mut(rank as usize).into_iter().for_each(|ended| *ended = true);
        match down {
            Down::Left { rank } | Down::Lost { rank, .. } => end(*rank),
            Down::Resume { lost, .. } => lost.iter().for_each(|(rank, _)| end(*rank)),
            Down::Gathered { round, items } => heard.gathered = Some((*round, Ok(items.clone()))),
            Down::Incomplete { round, absent, ended } => {
                heard.gathered = Some((*round, Err((absent.clone(), ended.clone()))));
            }
            Down::Aborted { rank, code, text } => heard.aborted = Some((*rank, *code, text.clone())),
            Down::AllEnded => heard.all_ended = true,
            _ => return,
        }
        self.changed.notify_all();
    }

    /// Notes that the connection has ended, and tells whether that is news to the program: not if
    /// it ended the session itself, or if nothing was to come.
    pub(super) fn note_gone(&self) -> bool {
        let _ = self.stream.shutdown(Shutdown::Both);
        let mut heard = self.heard();
        heard.gone = true;
        self.changed.notify_all();
        !heard.closed && !heard.all_ended && heard.aborted.is_none()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.heard().closed
    }

    /// Waits for the end of an exchange, a lease longer than the coordinator does.
    pub(super) fn wait_round(&self, number: u64, within: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let ended = self.wait(within.saturating_add(self.lease), |heard| {
            if heard.gathered.as_ref().is_some_and(|(round, _)| *round == number) {
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
        ended.unwrap_or_else(|| {
            let heard = self.heard();
            let ranks = (0..).zip(&heard.ended).filter(|(_, ended)| !**ended).map(|(rank, _)| rank);
            Err(Error::NotEnded { ranks: ranks.collect(), within })
        })
    }

    fn wait<T>(&self, within: Duration, mut look: impl FnMut(&mut Heard) -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        let mut heard = self.heard();
        loop {
            if let Some(found) = look(&mut heard) {
                return Some(found);
            }
            let left = within.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())?;
            heard = self.changed.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the connection. If this rank has ended its part, what it said arrives; if not, the end
    /// is what the coordinator hears.
    pub(super) fn close(&self) {
        let mut heard = self.heard();
        heard.closed = true;
        let gently = heard.said_end && !heard.gone;
        drop(heard);
        let _ = self.stream.shutdown(if gently { Shutdown::Write } else { Shutdown::Both });
    }
}

/// How often a session looks at its clock.
pub(super) fn tick(lease: Duration) -> Duration {
    (lease / 8).clamp(Duration::from_millis(1), Duration::from_millis(250))
}

/// Tells whether a read or write just has to be tried again.
pub(super) fn would_wait(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Speaks to the coordinator for a session: from within an event or from any thread. It holds
/// nothing open once its session is dropped.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Line>);

impl Speaker {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self(line)
    }

    pub(super) fn line(&self) -> &Line {
        &self.0
    }

    /// Answers [`Event::Drain`](crate::Event::Drain): nothing of this process is under way any more.
    /// An answer to an earlier epoch is ignored.
    pub fn drained(&self, epoch: u64) -> Result<(), Error> {
        self.0.say(&Up::Drained { epoch })
    }

    /// Answers [`Event::Reopen`](crate::Event::Reopen), with what the others need to communicate
    /// with this process: `card`. An answer to an earlier epoch is ignored.
    pub fn reopened(&self, epoch: u64, card: Vec<u8>) -> Result<(), Error> {
        if card.len() > ITEM_LIMIT {
            return Err(Error::TooLarge { size: card.len(), limit: ITEM_LIMIT });
        }
        self.0.say(&Up::Reopened { epoch, card })
    }

    /// Leaves the job. The session goes on to hear events and owes answers, as long as others may
    /// communicate with this process: until all have ended, or it is dropped.
    pub fn left(&self) -> Result<(), Error> {
        self.0.say_end(&Up::Left)
    }

    /// Tells that this rank's program has failed, after everything of it has drained. It hears of the
    /// end of the job, but of no losses any more.
    pub fn lost(&self, text: &str) -> Result<(), Error> {
        self.0.say_end(&Up::Lost { text: text.into() })
    }

    /// Tells that this rank has waited for others for some time and has nothing under way, with a
    /// `stamp` that changes whenever it has gone on or anything has come to it; or, with none, that
    /// this is so no more. When all ranks that run have told so, they are asked again, and if no stamp
    /// has changed, they hear that they wait for each other ([`Event::Deadlock`](crate::Event)).
    pub fn waits(&self, stamp: Option<u64>) -> Result<(), Error> {
        self.0.say(&Up::Waits { stamp })
    }

    /// Answers [`Event::Confirm`](crate::Event::Confirm) with the stamp that this rank has now, if it
    /// waits for others and has nothing under way.
    pub fn still(&self, wave: u64, stamp: Option<u64>) -> Result<(), Error> {
        self.0.say(&Up::Still { wave, stamp })
    }

    /// Aborts the job. The first abort of a job counts and is told to everyone.
    pub fn abort(&self, code: i32, text: &str) -> Result<(), Error> {
        self.0.say(&Up::Abort { code, text: text.into() })
    }
}
