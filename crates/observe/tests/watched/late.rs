//! A provider whose operations take time, and which occasionally has no room.

use rdma_fabric::{
    Amo, Fabric, Result, Time, forward,
    provider::{Ended, Goal, Place, Posted, Provider, Sink, Slot, Source, Token},
};
use std::{
    collections::BTreeMap,
    num::NonZeroU64,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

/// The number of unsuccessful polls of each operation.
const POLLS: u32 = 2;
/// The contents of a wait's slot, of which it uses all.
const WAITING: Slot = Slot([1, 2, 3, 4]);

/// Delays the operations of the fabric below. Its clock counts unsuccessful polls, in microseconds.
#[derive(Debug)]
pub(crate) struct Late {
    below: Fabric,
    polls: AtomicU64,
    posted: Mutex<Underway>,
}

#[derive(Debug, Default)]
struct Underway {
    /// The number of postings, including those that were refused.
    postings: u64,
    /// For each operation: the unsuccessful polls so far, the resulting word, and the location that
    /// a get reads.
    operations: BTreeMap<u64, (u32, u64, Option<Place>)>,
}

impl Late {
    pub(crate) fn over(below: &Fabric) -> Fabric {
        let (polls, posted) = (AtomicU64::new(0), Mutex::default());
        below.under(Late { below: below.clone(), polls, posted })
    }

    fn posted(&self) -> MutexGuard<'_, Underway> {
        self.posted.lock().expect("nobody panics")
    }

    /// Posts an operation; every fourth posting finds no room.
    fn post(&self, now: impl FnOnce() -> Posted, from: Option<Place>) -> Posted {
        let mut posted = self.posted();
        posted.postings += 1;
        if posted.postings.is_multiple_of(4) {
            return Posted::Full;
        }
        let word = match now() {
            Posted::Over(word) => word,
            other => return other,
        };
        let number = posted.postings;
        posted.operations.insert(number, (0, word, from));
        Posted::Pending(Token(NonZeroU64::new(number).expect("counted")))
    }

    fn pending<T>(&self, cx: &Context<'_>) -> Poll<T> {
        self.polls.fetch_add(1, Relaxed);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Provider for Late {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, ring, try_notice, detach, optional);

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        self.post(|| self.below.provider().put(to, from, notice), None)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        match to {
            Sink::Bytes(_) => self.post(|| Posted::Over(0), Some(from.clone())),
            own => self.post(|| self.below.provider().get(from, own), None),
        }
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        self.post(|| self.below.provider().copy(to, from), None)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.post(|| self.below.provider().atomic(word, amo), None)
    }

    fn nop(&self) -> Posted {
        self.post(|| Posted::Over(0), None)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        if !self.test(token) {
            return self.pending(cx);
        }
        let (_, word, from) = self.posted().operations.remove(&token.0.get()).expect("its own");
        if let Some(from) = from {
            assert!(matches!(self.below.provider().get(&from, into), Posted::Over(_)));
        }
        Poll::Ready(Ok(word))
    }

    fn test(&self, token: &Token) -> bool {
        let mut posted = self.posted();
        let (polls, ..) = posted.operations.get_mut(&token.0.get()).expect("its own");
        *polls += 1;
        *polls > POLLS
    }

    fn forget(&self, token: Token) {
        self.posted().operations.remove(&token.0.get()).expect("its own");
    }

    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match goal {
            Goal::Room(_) | Goal::Flush(_) if slot.is_empty() => {
                *slot = WAITING;
                self.pending(cx)
            }
            Goal::Room(_) | Goal::Flush(_) => {
                assert_eq!(*slot, WAITING);
                Poll::Ready(Ok(()))
            }
            _ => self.below.provider().poll_wait(slot, goal, cx),
        }
    }

    fn end_wait(&self, slot: &mut Slot, goal: Goal<'_>, ended: Ended) {
        match goal {
            Goal::Room(_) | Goal::Flush(_) => assert_eq!(std::mem::take(slot), WAITING),
            _ => self.below.provider().end_wait(slot, goal, ended),
        }
    }

    fn now(&self) -> Time {
        Time::from_picos(1_000_000 * self.polls.load(Relaxed))
    }
}
