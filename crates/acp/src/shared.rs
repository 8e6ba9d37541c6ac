//! State that one thread uses, or any.

use crate::{AcpError, Result, Threads};
use core::cell::RefCell;
use rdma_fabric::provider::OneThread;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) enum Shared<T> {
    One(OneThread<RefCell<T>>),
    Many(Mutex<T>),
}

impl<T> Shared<T> {
    pub(crate) fn new(threads: Threads, value: T) -> Self {
        match threads {
            Threads::One => Shared::One(OneThread::new(RefCell::new(value))),
            Threads::Many => Shared::Many(Mutex::new(value)),
        }
    }

    /// Uses the state; `used` does not come back here.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`].
    #[inline(always)]
    pub(crate) fn with<Out>(&self, used: impl FnOnce(&mut T) -> Out) -> Result<Out> {
        match self {
            Shared::One(state) => match OneThread::get(state) {
                Some(state) => Ok(used(&mut state.borrow_mut())),
                None => Err(AcpError::OtherThread),
            },
            // Consistent between statements, whatever panics.
            Shared::Many(state) => Ok(used(&mut state.lock().unwrap_or_else(PoisonError::into_inner))),
        }
    }
}
