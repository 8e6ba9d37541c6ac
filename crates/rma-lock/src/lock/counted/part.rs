//! A rank's part of a counted lock, and its interface to the driver of the steps.

use super::{
    barge::Seen,
    scheme::is_queued,
    steps::{At, CountedTable, Steps},
};
use crate::{
    LockError, Result,
    lock::{
        detach::HasFabric,
        queue::{Call, Drive, FirstStep, HOME_BYTES, Held, Protocol, Queue, Transition, is_inside},
        recovery::EpochLink,
    },
    steps::{End, Word},
};
use core::{
    fmt,
    ops::Deref,
    sync::atomic::AtomicU64,
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, FabricError, RemoteWord};
use std::sync::OnceLock;

/// The lock's words at its home, by their offsets in bytes.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Count = 0,
    Readers = 8,
    Tail = 16,
    Head = 24,
}
const _: () = assert!(Home::Head as u64 + 8 <= HOME_BYTES);

impl Home {
    /// Returns the name of the word in the table of steps.
    pub(super) const fn word(self) -> Word {
        Word::Home(self as u8 / 8)
    }
}

/// A rank's part of a lock, kept alive by its values and by the remaining work of their dropped
/// futures.
pub(crate) struct Core {
    pub(super) queue: Queue,
    pub(super) table: CountedTable,
    pub(super) count: RemoteWord<u64>,
    /// Whether this rank's processor accesses the home's words directly. If so, an unobstructed
    /// reader takes the fast path on any fabric, and leaves by it if there is nothing to flush.
    pub(super) is_in_place: bool,
    /// Created when this rank first writes, which most ranks of a large job never do.
    pub(super) writers: OnceLock<Box<Writers>>,
    /// The state of the writer inside ([`guard::Writing`]), while it is one of this rank's.
    pub(super) held: AtomicU64,
    /// Used only if the lock allows barging.
    pub(super) seen: Seen,
    /// For the lock of an epoch: its link to the recoverable lock that it belongs to.
    pub(super) link: EpochLink,
}

/// The home words that only writers use.
pub(super) struct Writers {
    pub(super) tail: RemoteWord<u64>,
    /// Used only if the [scheme](Rules) has it.
    pub(super) head: RemoteWord<u64>,
}

impl Deref for Core {
    type Target = Queue;

    #[inline(always)]
    fn deref(&self) -> &Queue {
        &self.queue
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Core({:?})", self.queue)
    }
}

impl HasFabric for Core {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Core {
    pub(super) fn link_continued(&self) {
        self.link.continued(&self.fabric, || !is_inside(self.published.sum()));
    }

    #[inline(always)]
    pub(super) fn writers(&self) -> Result<&Writers, FabricError> {
        match self.writers.get() {
            Some(writers) => Ok(writers),
            None => self.make_writers(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_writers(&self) -> Result<&Writers, FabricError> {
        let writers = Writers {
            tail: self.fabric.remote_word(self.at_home(Home::Tail as u64)?)?,
            head: self.fabric.remote_word(self.at_home(Home::Head as u64)?)?,
        };
        Ok(self.writers.get_or_init(|| Box::new(writers)))
    }
}

/// The first step of a reader of a lock that publishes nothing.
#[derive(Clone, Copy)]
pub(crate) enum ReaderStep {
    /// R1.
    Enter { tries: bool },
    /// U1.
    Leave,
}

impl FirstStep<Steps> for ReaderStep {
    fn steps(self) -> Steps {
        match self {
            ReaderStep::Enter { tries } => Steps::read(tries),
            ReaderStep::Leave => Steps { at: At::U1, ..Steps::release_read() },
        }
    }
}

impl Protocol for Core {
    type Table = CountedTable;
    type First = ReaderStep;

    fn table(&self) -> &CountedTable {
        &self.table
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    #[inline(always)]
    fn home_now(&self, number: u8) -> Option<&RemoteWord<u64>> {
        match number {
            0 => Some(&self.count),
            2 => self.writers().ok().map(|writers| &writers.tail),
            3 => self.writers().ok().map(|writers| &writers.head),
            _ => None,
        }
    }

    #[inline(always)]
    fn ends_at_once(&self, first: ReaderStep, found: u64) -> Option<Option<Held>> {
        let rules = self.table.rules;
        match first {
            ReaderStep::Enter { .. } => {
                rules.admits_reader(found).then_some(Some(Held { node: None, woken: false, word: 0 }))
            }
            ReaderStep::Leave => (!rules.is_last(found)).then_some(None),
        }
    }

    fn ended(&self, steps: &Steps) {
        if !self.table.rules.barges || !steps.writes {
            return;
        }
        if steps.ends == End::Out {
            self.seen.leave(steps.left);
        } else if steps.at == At::End(End::Inside) && !is_queued(steps.word) {
            self.seen.enter(steps.word);
        }
    }

    fn continued(&self) {
        if self.table.rules.recoverable {
            self.link_continued();
        }
    }

    /// A rank that waits for an unfinished step of a lost rank also waits for that rank. A member
    /// that has dropped its part without being lost is about to be lost, or the epoch has ended.
    fn failed(&self, steps: &mut Steps, error: LockError) -> Result<Option<Transition>> {
        let LockError::Fabric(why) = &error else { return Err(error) };
        if !self.table.rules.recoverable || why.gone().is_none_or(|rank| rank == self.home) {
            return Err(error);
        }
        if steps.at == At::W6 || matches!(why, FabricError::PeerLost { .. }) {
            return Ok(self.table.lost(steps));
        }
        steps.at = At::Closed;
        Ok(None)
    }

    fn poll_first(call: &mut Call<Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Option<Held>>>> {
        call.advance_first(cx)
    }

    fn resume(drive: &mut Drive<Self>, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>> {
        drive.resume(cx)
    }

    fn detach(drive: Box<Drive<Self>>) {
        drive.detach();
    }
}
