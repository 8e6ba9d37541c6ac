//! Wakers of other executors: they let a Tokio task wait for a rank's memory without keeping a CPU
//! busy.
//!
//! [`crate::block_on`] parks its own thread on the rank's doorbell. A thread of another
//! executor must not be parked; its task registers a waker here instead, and one thread per rank
//! (hence one per process, if ranks are processes) parks on the doorbell for all such tasks. The
//! first such wait starts the thread, which ends with the endpoint.
//!
//! A waiter follows the doorbell's protocol itself: [`Wakers::arm`] is W0 to W2, then its future
//! checks again (W3), and the thread executes W4. All waiters of one rank share the doorbell's
//! word, so each remembers it in its ticket:
//!
//! * a ticket that no longer equals the word was rung for, and its waker is called;
//! * a waiter whose ticket is stale by the time it registers its waker must check again
//!   immediately;
//! * the thread parks only while every ticket equals the word.
//!
//! So any ring between a waiter's preparation and the thread's parking is seen by one of them. A
//! waiter is woken once, and re-arms itself if the ring was not for it.

use super::doorbell::{self, Watch};
use crate::memory::{Mapping, mapping::Parking};
use core::{task::Waker, time::Duration};
use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

/// The waiting tasks of one rank.
pub(crate) struct Wakers(Arc<Shared>);

struct Shared {
    name: String,
    /// The rank's own segment.
    segment: Arc<Mapping>,
    state: Mutex<State>,
    /// The thread waits on this while no task waits.
    somebody: Condvar,
}

#[derive(Default)]
struct State {
    /// By key, in ascending order. Their wakers are called and dropped outside the lock, because
    /// that may run arbitrary code.
    sleepers: Vec<(Key, Sleeper)>,
    next: u64,
    thread: Thread,
    closed: bool,
}

struct Sleeper {
    waker: Waker,
    parking: Parking,
    /// The time at which the task checks in any case.
    until: Instant,
}

/// The state of the thread.
#[derive(Clone, Copy, Default, PartialEq)]
enum Thread {
    /// Not started yet.
    #[default]
    None,
    /// The thread holds the lock, or will take it before it blocks.
    Awake,
    /// No task waits.
    Idle,
    /// Parked on the doorbell, at most until this time.
    Parked(Instant),
}

/// Identifies a waiter's waker. Must be released with [`Wakers::forget`].
pub(crate) type Key = u64;

/// Outcome of asking to be woken.
#[derive(Debug, PartialEq)]
pub(crate) enum Armed {
    /// The waker is registered. The task must check once more before it may rely on being woken.
    Kept(Key),
    /// The doorbell rang in the meantime: check, then try again.
    Rung,
    /// There is no thread that could wake the task.
    NoThread,
}

impl fmt::Debug for Wakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wakers of {}", self.0.name)
    }
}

impl Wakers {
    /// Creates the wakers of the rank called `name`, which owns `segment`.
    pub(crate) fn new(name: String, segment: Arc<Mapping>) -> Self {
        Wakers(Arc::new(Shared { name, segment, state: Mutex::default(), somebody: Condvar::new() }))
    }

    /// Executes W0 to W2 and registers `waker`, which is called once, when `watch` is written, a
    /// rank's state changes, `longest` has elapsed or `until` has passed.
    pub(crate) fn arm(&self, waker: &Waker, watch: Watch, longest: Duration, until: Option<Instant>) -> Armed {
        let shared = &*self.0;
        let parking = shared.segment.prepare_park(watch);
        let bound = Instant::now() + longest;
        let until = until.map_or(bound, |until| until.min(bound));
        let mut state = shared.lock();
        if parking.was_rung() {
            return Armed::Rung;
        }
        if state.thread == Thread::None && !self.start(&mut state) {
            return Armed::NoThread;
        }
        match state.thread {
            Thread::None | Thread::Awake => {}
            Thread::Idle => shared.somebody.notify_one(),
            // The thread parks again, which costs the others one check.
            Thread::Parked(end) if until < end => shared.segment.ring(),
            Thread::Parked(_) => {}
        }
        let key = state.next;
        state.next += 1;
        // After the ring above, this ticket is stale and the thread calls the waker: at worst one
        // unnecessary check.
        state.sleepers.push((key, Sleeper { waker: waker.clone(), parking, until }));
        Armed::Kept(key)
    }

    /// Returns whether the waker under `key` is still to be called. If so, replaces it by `waker`.
    pub(crate) fn is_armed(&self, key: Key, waker: &Waker) -> bool {
        let mut state = self.0.lock();
        let Some(at) = state.position(key) else { return false };
        let (_, sleeper) = &mut state.sleepers[at];
        if !sleeper.waker.will_wake(waker) {
            let old = core::mem::replace(&mut sleeper.waker, waker.clone());
            drop(state);
            drop(old);
        }
        true
    }

    /// Drops the waker under `key`.
    pub(crate) fn forget(&self, key: Key) {
        let mut state = self.0.lock();
        let sleeper = state.position(key).map(|at| state.sleepers.remove(at));
        drop(state);
        drop(sleeper);
    }

    fn start(&self, state: &mut State) -> bool {
        let shared = self.0.clone();
        let started = thread::Builder::new().name(format!("wakes {}", shared.name)).spawn(move || shared.run());
        if started.is_ok() {
            state.thread = Thread::Awake;
        }
        started.is_ok()
    }
}

impl Drop for Wakers {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.somebody.notify_one();
        // The thread may be parked with the ticket of a waiter that no longer exists.
        self.0.segment.kick();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between statements that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the thread.
    fn run(&self) {
        let mut state = self.lock();
        while !state.closed {
            if state.sleepers.is_empty() {
                state.thread = Thread::Idle;
                state = self.somebody.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.thread = Thread::Awake;
                continue;
            }
            let now = Instant::now();
            let due = state.take_due(now);
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(|(_, sleeper)| sleeper.waker.wake());
                state = self.lock();
                continue;
            }
            let Some(end) = state.sleepers.iter().map(|(_, sleeper)| sleeper.until).min() else { continue };
            let Some(ticket) = state.sleepers.first().map(|(_, sleeper)| sleeper.parking.ticket()) else { continue };
            state.thread = Thread::Parked(end);
            drop(state);
            doorbell::park(&self.segment.doorbell(), ticket, end.saturating_duration_since(now));
            state = self.lock();
            state.thread = Thread::Awake;
        }
        let left = core::mem::take(&mut state.sleepers);
        drop(state);
        left.into_iter().for_each(|(_, sleeper)| sleeper.waker.wake());
    }
}

impl State {
    /// Takes the sleepers whose doorbell rang or whose deadline has passed.
    fn take_due(&mut self, now: Instant) -> Vec<(Key, Sleeper)> {
        let is_due = |sleeper: &Sleeper| sleeper.until <= now || sleeper.parking.was_rung();
        self.sleepers.extract_if(.., |(_, sleeper)| is_due(sleeper)).collect()
    }

    fn position(&self, key: Key) -> Option<usize> {
        self.sleepers.binary_search_by_key(&key, |(key, _)| *key).ok()
    }
}

#[cfg(test)]
mod tests;
