//! State that is used by one thread or by several.

use crate::{AcpError, Result, Threads};
use rdma_fabric::provider::{Turn, TurnCell};

#[derive(Debug)]
pub(crate) struct Shared<T>(TurnCell<T>);

impl<T> Shared<T> {
    pub(crate) fn new(threads: Threads, value: T) -> Self {
        Shared(match threads {
            Threads::One => TurnCell::of_this_thread(value),
            Threads::Many => TurnCell::of_any_thread(value),
        })
    }

    /// Enters the state until the turn is dropped; it must not be entered again in the meantime.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`].
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Turn<'_, T>> {
        match self.0.enter() {
            Some(turn) => Ok(turn),
            None => Err(AcpError::OtherThread),
        }
    }

    /// Uses the state; `used` must not enter it again.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`].
    #[inline(always)]
    pub(crate) fn with<Out>(&self, used: impl FnOnce(&mut T) -> Out) -> Result<Out> {
        self.enter().map(|mut turn| used(&mut turn))
    }
}
