//! A wait as it is passed to a provider: its goal, its state between two polls, and its end.

use super::Place;
use crate::{Deps, Rank, Time};
use core::{fmt, time::Duration};

/// What a wait waits for.
#[derive(Clone, Copy, Debug)]
pub enum WaitFor<'a> {
    /// A write to a word of this rank's own memory. The caller has checked the word without
    /// success.
    Word(&'a Place, Deps<'a>),
    /// A notice. The caller has checked for one without success.
    Notice(Deps<'a>),
    /// Room in this rank's queue and, if given, in that rank's notice queue: see [`crate::Fabric::room`].
    Room(Option<Rank>),
    /// Visibility of the puts to one rank, or to all.
    Flush(Option<Rank>),
    /// This time.
    Until(Time),
    /// The end of this much work of this rank's CPU.
    Busy(Duration),
    /// The end of one pass of this rank's CPU, with this number of bytes, through this software
    /// layer.
    Charge(&'static str, usize),
}

/// A provider's state of a wait between two polls. All zero initially, and whenever the provider
/// has no state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WaitState(pub [u64; 4]);

impl WaitState {
    /// Returns whether there is no state.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // A comparison of arrays loads more than the words that were just stored, and waits for them.
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The awaited event has occurred.
    Reached,
    /// The wait was given up, or failed.
    GivenUp,
}

/// A wait of one of a provider's optional services, such as a control queue: its state, and the call
/// that ends it. For the futures of crates that give such a service its typed form.
///
/// The wait ends when the guard is dropped, unless no state is left: then it has ended already, or
/// the provider has no state of it.
pub struct WaitGuard<F: FnMut(&mut WaitState, Ended)> {
    state: WaitState,
    end: F,
}

impl<F: FnMut(&mut WaitState, Ended)> WaitGuard<F> {
    /// Creates the guard of a wait that has not been polled. `end` is called once, with a state that
    /// is not empty.
    pub fn new(end: F) -> Self {
        WaitGuard { state: WaitState::default(), end }
    }

    /// Returns the state, for the provider's poll.
    #[inline]
    pub fn state(&mut self) -> &mut WaitState {
        &mut self.state
    }

    /// Ends the wait, if the provider has a state of it.
    pub fn end(&mut self, ended: Ended) {
        if !self.state.is_empty() {
            (self.end)(&mut self.state, ended);
            self.state = WaitState::default();
        }
    }
}

impl<F: FnMut(&mut WaitState, Ended)> fmt::Debug for WaitGuard<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitGuard").field(&self.state).finish()
    }
}

impl<F: FnMut(&mut WaitState, Ended)> Drop for WaitGuard<F> {
    fn drop(&mut self) {
        self.end(Ended::GivenUp);
    }
}
