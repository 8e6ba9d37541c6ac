//! A process's session: its connection to the coordinator of its job.
//!
//! [`join`] connects by a [`dial`], [`line`] is the connection once it stands, [`heard`] what came over
//! it, and [`thread`] are the two threads of a session: one hears the coordinator and tells it that this
//! process lives, one calls the program. If the coordinator is lost, what the process has in
//! [`memory`] goes to a [`standby`], which a [`seeker`] chooses.

mod dial;
mod heard;
mod join;
mod line;
pub(crate) mod memory;
pub(crate) mod seeker;
mod speaker;
mod standby;
mod thread;

pub use join::Patience;
pub use speaker::Speaker;

use crate::{Error, Hello, Plan, Secret, Welcome, wire::ITEM_LIMIT};
use line::Line;
use memory::Memory;
use standby::Standby;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

/// What a process hears of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Ranks are lost, and this process has to drain what it has under way, then to answer by
    /// [`Speaker::drained`]. `lost` are all whose loss has not been told by a `Resume` yet. A later
    /// `Drain` has a higher epoch and takes the place of this one.
    Drain {
        /// The epoch.
        epoch: u64,
        /// The ranks.
        lost: Vec<u32>,
    },
    /// All have drained; this process has to reopen what it communicates over, then to answer by
    /// [`Speaker::reopened`].
    Reopen {
        /// The epoch.
        epoch: u64,
    },
    /// All have reopened: the loss may be told to the program, and the job goes on.
    Resume {
        /// The epoch.
        epoch: u64,
        /// What each rank gave to [`Speaker::reopened`]; none for those that are lost.
        cards: Vec<Option<Vec<u8>>>,
        /// The ranks that are lost, with the reasons.
        lost: Vec<(u32, String)>,
    },
    /// Another rank has left.
    Left {
        /// The rank.
        rank: u32,
    },
    /// Another rank's program has failed. It had drained before it told so: no epoch follows.
    Lost {
        /// The rank.
        rank: u32,
        /// The reason that it gave.
        text: String,
    },
    /// The job is aborted. This is told to the rank that did it, too.
    Aborted {
        /// The rank that did it; none if it was the coordinator.
        rank: Option<u32>,
        /// The code that it gave.
        code: i32,
        /// The reason that it gave.
        text: String,
    },
    /// All ranks that run have said that they [wait](Speaker::waits). This process has to answer by
    /// [`Speaker::still`].
    Confirm {
        /// The number of the question.
        wave: u64,
    },
    /// All ranks that run wait for each other, and nobody will ever wake one of them.
    Deadlock {
        /// How many they are.
        waiting: usize,
    },
    /// Every rank has left or is lost. Nothing follows.
    AllEnded,
    /// The coordinator ended, or was not heard of for the lease, and no other is sought
    /// ([`Succession`](crate::Succession)). Nothing follows.
    CoordinatorLost,
    /// The coordinator was lost, and this process is not in the part of the job that goes on: it is to
    /// end. Nothing follows.
    CutOff {
        /// What was found.
        text: String,
    },
    /// This process is held for lost by the others, and is to end. Nothing follows.
    Dismissed {
        /// Why.
        text: String,
    },
}

/// A process's part of its job.
///
/// A session that is dropped, or ends with its process, before it has [left](Session::left) or told
/// that it is [lost](Session::lost) is a rank that died: the others hear of it.
#[derive(Debug)]
pub struct Session {
    speaker: Speaker,
    welcome: Welcome,
    /// Locked while an exchange is under way.
    exchanging: Mutex<()>,
    hearing: Option<JoinHandle<()>>,
}

impl Session {
    /// Joins the job whose coordinator is at `address`, and waits until all ranks have come.
    ///
    /// `patience` bounds this; a [`Duration`] bounds all of it. `on_event` is called
    /// by a thread of the session for one event at a time, in their order, from now on: maybe before
    /// this returns. What it is given with the event is for answers; it may take its time, since
    /// another thread tells the coordinator that this process lives. If it panics, no event follows,
    /// and this rank is lost when it next owes an answer.
    pub fn join(
        address: SocketAddr,
        secret: &Secret,
        hello: Hello,
        patience: impl Into<Patience>,
        on_event: impl FnMut(&Speaker, Event) + Send + 'static,
    ) -> Result<Self, Error> {
        let joined = join::join(address, secret, &hello, patience.into())?;
        let welcome = joined.welcome;
        let (lease, segment) = (welcome.lease, welcome.segment.clone());
        let (succession, addresses) = (joined.succession, joined.standbys);
        let standby = joined.listener.map(|listener| Standby {
            listener,
            addresses,
            secret: secret.clone(),
            plan: Plan { ranks: hello.ranks, join_within: lease, lease, segment, succession },
            number: welcome.job,
            host: None,
            own: None,
            kept: Vec::new(),
        });
        let memory = Memory::new(hello.rank, Arc::clone(&welcome.nodes));
        let line = Arc::new(Line::new(address, memory, joined.stream, lease, standby.is_some())?);
        let speaker = Speaker::new(Arc::clone(&line));
        let hearing = thread::start(speaker.clone(), joined.inbox, standby, Box::new(on_event))?;
        Ok(Self { speaker, welcome, exchanging: Mutex::new(()), hearing: Some(hearing) })
    }

    /// Returns what this process was told when all ranks had come.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Returns what speaks for this session, from anywhere.
    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// Gives `item` to all ranks and returns what they gave, in the order of ranks.
    ///
    /// It is collective: all ranks call it, as often as each other. It waits for the slowest, for
    /// `within` at most; the shortest time that a rank gives counts for all. Exchanges of several
    /// threads come one after the other. It fails if a rank has left or is lost without having
    /// called it; of a loss that is not told yet, it waits until that is told.
    pub fn exchange(&self, item: &[u8], within: Duration) -> Result<Vec<Vec<u8>>, Error> {
        if item.len() > ITEM_LIMIT {
            return Err(Error::TooLarge { size: item.len(), limit: ITEM_LIMIT });
        }
        let _one = self.exchanging.lock().unwrap_or_else(PoisonError::into_inner);
        let line = self.speaker.line();
        let number = line.bring(within, item)?;
        line.wait_round(number, within)
    }

    /// Answers [`Event::Drain`]: see [`Speaker::drained`].
    pub fn drained(&self, epoch: u64) -> Result<(), Error> {
        self.speaker.drained(epoch)
    }

    /// Answers [`Event::Reopen`]: see [`Speaker::reopened`].
    pub fn reopened(&self, epoch: u64, card: Vec<u8>) -> Result<(), Error> {
        self.speaker.reopened(epoch, card)
    }

    /// Leaves the job: see [`Speaker::left`].
    pub fn left(&self) -> Result<(), Error> {
        self.speaker.left()
    }

    /// Tells that this rank's program has failed: see [`Speaker::lost`].
    pub fn lost(&self, text: &str) -> Result<(), Error> {
        self.speaker.lost(text)
    }

    /// Aborts the job: see [`Speaker::abort`].
    pub fn abort(&self, code: i32, text: &str) -> Result<(), Error> {
        self.speaker.abort(code, text)
    }

    /// Waits until all ranks have left or are lost.
    pub fn wait_all_ended(&self, within: Duration) -> Result<(), Error> {
        self.speaker.line().wait_all_ended(within)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let line = self.speaker.line();
        line.close();
        if let Some(hearing) = self.hearing.take() {
            // It ends within a second: the connection is shut down. The other thread may be in a
            // call of the program, and this may be that call.
            let _ = hearing.join();
        }
    }
}
