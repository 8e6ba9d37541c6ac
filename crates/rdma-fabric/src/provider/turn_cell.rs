//! A value that is used by one call at a time, from a single thread or from any thread.

#![allow(unsafe_code)]

use super::one_thread::{here, is_here};
use core::{
    cell::UnsafeCell,
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use crossbeam_utils::{Backoff, CachePadded};
use std::sync::{Mutex, PoisonError};

/// Exclusive access for the lifetime of a [`Turn`]: by the thread that created it, at the cost of a
/// comparison, or by any thread, which waits for its turn.
///
/// Turns are meant to be short. Leaving is a plain store, and entering one atomic operation; a
/// thread that finds the value in use sleeps in a queue, and the first of the queue yields its CPU
/// until the turn ends. The cell shares its pair of cache lines with no other data.
pub struct TurnCell<T> {
    /// The thread that created it, if no other thread may use it; otherwise [`ANY`].
    thread: u64,
    taken: AtomicBool,
    /// The first waiter holds this lock; all others sleep for it.
    queue: Mutex<()>,
    value: UnsafeCell<T>,
    _alignment: CachePadded<()>,
}

// SAFETY: the value is reached by a `Turn` only, of which there is one at a time: `taken` is set by
// an atomic exchange, or by the only thread that ever sets it.
unsafe impl<T: Send> Sync for TurnCell<T> {}

/// Not the number of a thread.
const ANY: u64 = u64::MAX;

impl<T> TurnCell<T> {
    /// Makes a value for the calling thread alone.
    pub fn of_this_thread(value: T) -> Self {
        TurnCell { thread: here(), ..Self::of_any_thread(value) }
    }

    /// Makes a value for any thread.
    pub fn of_any_thread(value: T) -> Self {
        TurnCell {
            thread: ANY,
            taken: AtomicBool::new(false),
            queue: Mutex::new(()),
            value: UnsafeCell::new(value),
            _alignment: CachePadded::new(()),
        }
    }

    /// Waits for the turn; `None` on a thread that may not use the value.
    ///
    /// # Panics
    /// If the only thread that may use the value already has a turn. If any thread may use it, a
    /// thread that enters while it has a turn deadlocks.
    #[inline(always)]
    pub fn enter(&self) -> Option<Turn<'_, T>> {
        if is_here(self.thread) {
            if self.taken.load(Relaxed) {
                nested();
            }
            self.taken.store(true, Relaxed);
        } else if self.thread != ANY {
            return None;
        // Acquire: pairs with the release that ended the last turn; so does the other one.
        } else if self.taken.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            self.queue_up();
        }
        Some(Turn { cell: self, stays: PhantomData })
    }

    #[cold]
    #[inline(never)]
    fn queue_up(&self) {
        let _first = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let backoff = Backoff::new();
        while self.taken.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            backoff.snooze();
        }
    }
}

#[cold]
#[inline(never)]
fn nested() -> ! {
    panic!("a turn within a turn")
}

impl<T> fmt::Debug for TurnCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.thread == ANY { "a value of any thread" } else { "a value of one thread" })
    }
}

/// Exclusive access to a [`TurnCell`]'s value. It stays on its thread.
pub struct Turn<'a, T> {
    cell: &'a TurnCell<T>,
    stays: PhantomData<*const ()>,
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one turn at a time, and it is borrowed.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for Turn<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one turn at a time, and it is borrowed exclusively.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next turn.
        self.cell.taken.store(false, Release);
    }
}

impl<T: fmt::Debug> fmt::Debug for Turn<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::TurnCell;
    use std::{panic::AssertUnwindSafe, thread::scope};

    #[test]
    fn turns_of_many_threads_do_not_overlap() {
        let rounds = if cfg!(miri) { 50 } else { 50_000 };
        let cell = TurnCell::of_any_thread([0u64; 2]);
        scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    for round in 0..rounds {
                        let mut turn = cell.enter().expect("any thread");
                        turn[0] += 1;
                        if round % 1000 == 0 {
                            std::thread::yield_now();
                        }
                        turn[1] += 1;
                        assert_eq!(turn[0], turn[1]);
                    }
                });
            }
        });
        assert_eq!(*cell.enter().expect("any thread"), [4 * rounds; 2]);
    }

    #[test]
    fn one_thread_means_one() {
        let cell = TurnCell::of_this_thread(1);
        assert!(scope(|threads| threads.spawn(|| cell.enter().is_none()).join()).expect("no panic"));
        *cell.enter().expect("this thread") += 1;
        let turn = cell.enter().expect("this thread");
        let nested = std::panic::catch_unwind(AssertUnwindSafe(|| drop(cell.enter())));
        assert!(nested.is_err() && *turn == 2);
        drop(turn);
        assert!(cell.enter().is_some());
    }

    #[test]
    fn a_panic_ends_its_turn() {
        let cell = TurnCell::of_any_thread(1);
        let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let _turn = cell.enter();
            panic!("as planned");
        }));
        assert!(panicked.is_err() && cell.enter().is_some_and(|turn| *turn == 1));
    }
}
