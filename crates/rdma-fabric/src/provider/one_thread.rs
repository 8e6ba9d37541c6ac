//! A value that is used only by the thread that created it, although its type is `Send` and `Sync`.

#![allow(unsafe_code)]

use core::{
    cell::Cell,
    fmt,
    mem::ManuallyDrop,
    ops::Deref,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// `Send` and `Sync` by a check at run time: for a simulator whose jobs never leave their thread.
///
/// Using it on another thread panics; dropping it on another thread leaks it.
pub struct OneThread<T> {
    /// The thread that created the value.
    thread: u64,
    value: ManuallyDrop<T>,
}

// SAFETY: the value is reached, and dropped, by the thread that created it only: every access path
// compares the thread.
unsafe impl<T> Send for OneThread<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OneThread<T> {}

// The number of a thread that has asked for one; otherwise 0.
thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });

/// Returns a number for the calling thread, not 0, that no other thread ever has.
pub(super) fn here() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// Returns whether the calling thread is the one for which [`here`] has returned `thread`.
#[inline(always)]
pub(super) fn is_here(thread: u64) -> bool {
    NUMBER.get() == thread
}

impl<T> OneThread<T> {
    /// Binds `value` to the calling thread.
    pub fn new(value: T) -> Self {
        OneThread { thread: here(), value: ManuallyDrop::new(value) }
    }

    /// Returns the value, or `None` on a thread other than the one that created it.
    #[inline(always)]
    pub fn get(this: &Self) -> Option<&T> {
        is_here(this.thread).then_some(&*this.value)
    }
}

impl<T> Deref for OneThread<T> {
    type Target = T;

    /// # Panics
    /// If called on a thread other than the one that created it.
    #[inline(always)]
    fn deref(&self) -> &T {
        OneThread::get(self).unwrap_or_else(|| elsewhere())
    }
}

#[cold]
fn elsewhere() -> ! {
    panic!("a simulated rank was used by another thread than the one that simulates it")
}

impl<T> Drop for OneThread<T> {
    fn drop(&mut self) {
        if is_here(self.thread) {
            // SAFETY: once, and by the thread that created it.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OneThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::OneThread;
    use std::rc::Rc;

    #[test]
    fn another_thread_neither_uses_nor_drops_it() {
        let value = Rc::new(3);
        let bound = OneThread::new(value.clone());
        let used = std::thread::scope(|scope| scope.spawn(|| **bound).join());
        assert!(used.is_err());
        assert!(
            std::thread::scope(|scope| scope.spawn(|| OneThread::get(&bound).is_none()).join()).unwrap()
                && OneThread::get(&bound).is_some()
        );
        std::thread::scope(|scope| scope.spawn(move || drop(bound)).join()).unwrap();
        assert_eq!(Rc::strong_count(&value), 2, "leaked, and not dropped elsewhere");
    }
}
