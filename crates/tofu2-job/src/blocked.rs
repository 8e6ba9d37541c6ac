//! The `block_on` calls of a thread. Those of shared memory count themselves here, so that virtual
//! time can refuse to be blocked by one.

use core::{cell::Cell, marker::PhantomData};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of nested `block_on` calls on this thread.
pub fn blocked_depth() -> usize {
    DEPTH.get()
}

/// A `block_on` call, on the thread that made this.
#[derive(Debug)]
pub struct Blocked(PhantomData<*const ()>);

impl Blocked {
    /// Counts the call until the value is dropped.
    #[inline]
    pub fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Blocked(PhantomData)
    }
}

impl Drop for Blocked {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
