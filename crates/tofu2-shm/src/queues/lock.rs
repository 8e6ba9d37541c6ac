//! A lock that costs one locked instruction when uncontended, where a mutex costs two. It is held
//! for about one command, by threads of one rank, which rarely share a queue.
//!
//! Releasing it is a plain store, so no thread can sleep on it: a thread that finds it taken spins,
//! then yields.

#![allow(unsafe_code)]

use core::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
    panic::RefUnwindSafe,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use crossbeam_utils::Backoff;

/// A value that only one thread accesses at a time.
#[derive(Debug, Default)]
pub(crate) struct Lock<T> {
    /// Whether a [`LockGuard`] exists.
    taken: AtomicBool,
    /// Accessed only through the one [`LockGuard`].
    value: UnsafeCell<T>,
}

// SAFETY: only the one `LockGuard` gives references to the value, so sharing the lock at most sends
// the value.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Nothing panics between statements that belong together.
impl<T> RefUnwindSafe for Lock<T> {}

/// Exclusive access to the value, until the guard is dropped.
#[derive(Debug)]
pub(crate) struct LockGuard<'a, T>(&'a Lock<T>);

// SAFETY: it gives the same access as `&mut T`; giving the lock back is a store, which any thread
// may do.
unsafe impl<T: Sync> Sync for LockGuard<'_, T> {}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Lock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        // Acquire: pairs with the release in `LockGuard::drop`.
        if self.taken.swap(true, Acquire) {
            self.wait();
        }
        LockGuard(self)
    }

    /// Takes the lock unless another thread holds it.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        // Acquire: as in `lock`.
        (!self.taken.swap(true, Acquire)).then(|| LockGuard(self))
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let backoff = Backoff::new();
        // Acquire: as in `lock`.
        while self.taken.load(Relaxed) || self.taken.swap(true, Acquire) {
            backoff.snooze();
        }
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is one `LockGuard` at a time, since `taken` was false before it was made;
        // this borrows it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; this borrows it exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `Lock::lock`.
        self.0.taken.store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const EACH: u64 = if cfg!(miri) { 30 } else { 100_000 };
        let lock = Lock::<[u64; 2]>::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        let mut held = lock.lock();
                        let [first, second] = *held;
                        assert_eq!(first, second, "two at once");
                        *held = [first + 1, second];
                        held[1] += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), [3 * EACH; 2]);
    }

    /// A panic releases the lock.
    #[test]
    fn a_panic_leaves_it_free() {
        let lock = Lock::<u32>::default();
        let panicked = std::panic::catch_unwind(|| {
            *lock.lock() = 7;
            let _held = lock.lock();
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(*lock.lock(), 7);
    }

    #[test]
    fn who_only_tries_waits_for_nobody() {
        let lock = Lock::<u32>::default();
        let held = lock.try_lock();
        assert!(held.is_some() && lock.try_lock().is_none());
        drop(held);
        assert!(lock.try_lock().is_some());
    }
}
