//! A process's session: its connection to the coordinator of its job.
//!
//! [`join`] connects by a [`dial`], [`line`] is the established connection, and [`received`] is the
//! state derived from its messages. [`thread`] contains the two threads of a session: one receives
//! the coordinator's messages and sends heartbeats, the other one calls the program. If the
//! coordinator is lost, the process votes with its [`memory`] for a [`standby`], which a [`search`]
//! chooses.

mod dial;
mod join;
mod line;
pub(crate) mod memory;
mod received;
pub(crate) mod search;
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

/// An event of the job that a process receives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Ranks are lost. This process has to drain its operations in flight, then to answer by
    /// [`Speaker::drained`]. `lost` contains all ranks whose loss has not been reported by a
    /// `Resume` yet. A later `Drain` has a higher epoch and replaces this one.
    Drain {
        /// The epoch.
        epoch: u64,
        /// The ranks.
        lost: Vec<u32>,
    },
    /// All ranks have drained. This process has to reopen its endpoint, then to answer by
    /// [`Speaker::reopened`].
    Reopen {
        /// The epoch.
        epoch: u64,
    },
    /// All ranks have reopened: the loss may be reported to the program, and the job continues.
    Resume {
        /// The epoch.
        epoch: u64,
        /// The contact that each rank passed to [`Speaker::reopened`]; `None` for lost ranks.
        contacts: Vec<Option<Vec<u8>>>,
        /// The lost ranks, with the reasons.
        lost: Vec<(u32, String)>,
    },
    /// Another rank has left.
    Left {
        /// The rank.
        rank: u32,
    },
    /// The program of another rank has failed. That rank had drained before it reported the
    /// failure, so no epoch follows.
    Lost {
        /// The rank.
        rank: u32,
        /// The reason given by the rank.
        text: String,
    },
    /// The job is aborted. The rank that aborted it receives this event too.
    Aborted {
        /// The rank that aborted the job; `None` if it was the coordinator.
        rank: Option<u32>,
        /// The exit code of the abort.
        code: i32,
        /// The reason for the abort.
        text: String,
    },
    /// All running ranks have reported that they [wait](Speaker::waits). This process has to answer
    /// by [`Speaker::still_waiting`].
    Confirm {
        /// The number of the question.
        wave: u64,
    },
    /// All running ranks wait for each other, so none of them will ever be woken.
    Deadlock {
        /// The number of waiting ranks.
        waiting: usize,
    },
    /// Every rank has left or is lost. No event follows.
    AllEnded,
    /// The coordinator ended, or was silent for the lease, and no successor is sought
    /// ([`Succession`](crate::Succession)). No event follows.
    CoordinatorLost,
    /// The coordinator was lost, and this process is not in the part of the job that continues: the
    /// process has to end. No event follows.
    CutOff {
        /// The reason why this process is cut off.
        text: String,
    },
    /// The other ranks consider this process lost, and it has to end. No event follows.
    Dismissed {
        /// The reason.
        text: String,
    },
}

/// A process's membership in its job.
///
/// If a session is dropped, or its process ends, before it has [left](Session::left) or reported
/// that it is [lost](Session::lost), its rank counts as dead and the other ranks are notified.
#[derive(Debug)]
pub struct Session {
    speaker: Speaker,
    welcome: Welcome,
    /// Locked while an exchange is in progress.
    exchanging: Mutex<()>,
    hearing: Option<JoinHandle<()>>,
}

impl Session {
    /// Joins the job whose coordinator is at `address`, and waits until all ranks have joined.
    ///
    /// `patience` limits the time of this call; a [`Duration`] limits the total. A thread of the
    /// session calls `on_event` for one event at a time, in their order, starting possibly before
    /// this function returns. The [`Speaker`] passed with an event is for answers. `on_event` may
    /// block for a long time, since another thread sends the heartbeats of this process. If it
    /// panics, no event follows, and this rank becomes lost when it next fails to answer.
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

    /// Returns the description of the job that this process received when all ranks had joined.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Returns the handle that sends messages for this session, from any thread.
    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// Passes `item` to all ranks and returns the items of all ranks, in rank order.
    ///
    /// This is a collective operation: all ranks call it the same number of times. It waits for the
    /// slowest rank, for at most `within`; the shortest limit that a rank gives applies to all.
    /// Exchanges of several threads run one after the other. The call fails if a rank has left or
    /// is lost without having called it; if such a loss has not been reported yet, the call waits
    /// for the report first.
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
    pub fn reopened(&self, epoch: u64, contact: Vec<u8>) -> Result<(), Error> {
        self.speaker.reopened(epoch, contact)
    }

    /// Leaves the job: see [`Speaker::left`].
    pub fn left(&self) -> Result<(), Error> {
        self.speaker.left()
    }

    /// Reports that this rank's program has failed: see [`Speaker::lost`].
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
            // This thread ends within a second, since the connection is shut down. The other thread
            // may be in a call of the program, and this drop may be part of that call.
            let _ = hearing.join();
        }
    }
}
