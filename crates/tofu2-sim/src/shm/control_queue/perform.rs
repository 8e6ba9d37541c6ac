//! One command: data, then the remote notice, then the advance, then what the poster is told.
//!
//! The last 8 bytes of a put or get are copied last, as the contract promises of puts; up to there it may be begun anew if the
//! executor dies ([`super::claim`], "Death"), since nobody can know of it.

mod atomic;
mod ends;
mod get;
mod put;

use super::{
    claim::Phase,
    executor::{Executor, Work},
    telling::failed,
    words::View,
};
use put::Source;
use rdma_fabric::control_queue::{Command, Posting, QueueError};

/// Bytes of a put or get that are copied last.
const LAST: usize = 8;

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Performed {
    /// What was wrong here: nothing was done then.
    pub(super) local: Result<(), QueueError>,
    /// What was wrong at the target. In the poster's MRQ already, if it asked for it.
    pub(super) remote: Result<(), QueueError>,
}

impl Performed {
    /// The error that nobody asked to hear of.
    #[inline]
    pub(super) fn unheard(&self, posting: &Posting) -> Option<QueueError> {
        match (self.local, self.remote) {
            (Err(error), _) if !posting.tcq_notice => Some(error),
            (Ok(()), Err(error)) if !posting.local_notice => Some(error),
            _ => None,
        }
    }
}

/// Why a command was not done.
enum Failure {
    /// Of own memory; the target was not asked, or own memory went away meanwhile.
    Here(QueueError),
    There(QueueError),
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Failure::There(error)
    }
}

/// The command's phase, where somebody could take it over.
struct Stage<'a> {
    queue: View<'a>,
    position: Option<u64>,
}

impl Stage<'_> {
    /// From here on the command is in `phase`.
    #[inline]
    fn enter(&self, phase: Phase) {
        if let Some(position) = self.position {
            self.queue.enter(position, phase);
        }
    }
}

impl<'a> Executor<'a> {
    /// Execute `posting`, one command of `queue`, at `position` of its shared ring if it stands there.
    #[inline]
    pub(super) fn perform(
        &self,
        queue: &View<'_>,
        posting: &Posting,
        position: Option<u64>,
        work: &mut Work<'_>,
    ) -> Performed {
        let stage = Stage { queue: *queue, position };
        let said = match posting.command {
            Command::Put { to, from, at, len, .. } => {
                work.spend(len.into());
                self.put(&stage, posting, to, Source::Memory(from), at, len.into(), work)
            }
            Command::PutInline { to, bytes, at } => {
                work.spend(0);
                let bytes = bytes.as_bytes();
                self.put(&stage, posting, to, Source::Carried(bytes), at, bytes.len() as u64, work)
            }
            Command::Get { to, from, at, len, .. } => {
                work.spend(len.into());
                self.get(&stage, posting, to, from, at, len.into())
            }
            Command::Atomic { to, at, width, amo } => {
                work.spend(0);
                self.atomic(&stage, posting, to, at, width, amo)
            }
            Command::Nop => {
                work.spend(0);
                return Performed { local: Ok(()), remote: Ok(()) };
            }
        };
        let (told, status) = match said {
            Ok(told) => told,
            Err(Failure::Here(error)) => return Performed { local: Err(error), remote: Ok(()) },
            Err(Failure::There(error)) => (failed(&posting.command), Err(error)),
        };
        if posting.local_notice {
            stage.enter(Phase::Past);
            self.tell_poster(queue, posting, told, status);
        }
        Performed { local: Ok(()), remote: status }
    }
}
