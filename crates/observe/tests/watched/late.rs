//! A provider whose operations take time, and which occasionally has no room.

use rdma_fabric::{
    Amo, Fabric, Result, Time, forward,
    provider::{Ended, Place, Posted, Provider, Sink, Source, Token, WaitFor, WaitState},
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
const WAITING: WaitState = WaitState([1, 2, 3, 4]);

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
        below.layered(Late { below: below.clone(), polls, posted })
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
            Posted::Complete(word) => word,
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
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, try_notice, detach, optional);

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        self.post(|| self.below.provider().put(to, from, notice), None)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        match to {
            Sink::Bytes(_) => self.post(|| Posted::Complete(0), Some(from.clone())),
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
        self.post(|| Posted::Complete(0), None)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        if !self.test(token) {
            return self.pending(cx);
        }
        let (_, word, from) = self.posted().operations.remove(&token.0.get()).expect("its own");
        if let Some(from) = from {
            assert!(matches!(self.below.provider().get(&from, into), Posted::Complete(_)));
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

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Room(_) | WaitFor::Flush(_) if wait_state.is_empty() => {
                *wait_state = WAITING;
                self.pending(cx)
            }
            WaitFor::Room(_) | WaitFor::Flush(_) => {
                assert_eq!(*wait_state, WAITING);
                Poll::Ready(Ok(()))
            }
            _ => self.below.provider().poll_wait(wait_state, wait_for, cx),
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        match wait_for {
            WaitFor::Room(_) | WaitFor::Flush(_) => assert_eq!(std::mem::take(wait_state), WAITING),
            _ => self.below.provider().end_wait(wait_state, wait_for, ended),
        }
    }

    fn now(&self) -> Time {
        Time::from_picos(1_000_000 * self.polls.load(Relaxed))
    }
}
