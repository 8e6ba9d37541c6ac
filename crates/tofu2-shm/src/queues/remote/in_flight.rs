//! The record that a queue's owner keeps of its commands sent to other nodes, and the regions of a
//! rank from or to which the network moves bytes of such commands.

use rdma_fabric::{
    RegionKey,
    control_queue::{Posting, QueueError},
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The commands of one queue that were sent to other nodes.
#[derive(Debug, Default)]
pub(crate) struct RemoteCommands(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the next command.
    next: u64,
    /// Commands without a reply.
    in_flight: HashMap<u64, InFlight>,
    /// The commands whose entry in the shared TCQ represents a completion that comes with the
    /// reply, by position.
    entries: HashMap<u64, u64>,
    /// Completions that have arrived and have not been taken, by number.
    completed: HashMap<u64, Result<(), QueueError>>,
    /// The first error that was not reported in another way.
    error: Option<QueueError>,
}

/// A command without a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) posting: Posting,
    /// Whether its completion comes with the reply.
    pub(crate) awaited: bool,
    /// The rank's own region that contains its bytes.
    pub(crate) region: Option<RegionKey>,
}

impl RemoteCommands {
    /// The maximum number of commands of a queue in flight.
    const MOST: usize = 64;

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between statements that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the next command has to wait until an earlier one completes.
    pub(crate) fn is_full(&self) -> bool {
        self.lock().in_flight.len() >= Self::MOST
    }

    /// Returns whether no command is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().in_flight.is_empty()
    }

    /// Numbers a command that is about to be sent.
    pub(crate) fn begin(&self, command: InFlight) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.in_flight.insert(number, command);
        number
    }

    /// Records that the entry of the shared TCQ for the command at `position` represents a
    /// completion that comes later.
    pub(crate) fn stand_in(&self, position: u64, number: u64) {
        self.lock().entries.insert(position, number);
    }

    /// Returns the command whose completion the entry for `position` represents, if it represents
    /// one.
    pub(crate) fn tracks(&self, position: u64) -> Option<u64> {
        self.lock().entries.remove(&position)
    }

    /// Returns a command without a reply.
    pub(crate) fn in_flight(&self, number: u64) -> Option<InFlight> {
        self.lock().in_flight.get(&number).copied()
    }

    /// Completes a command: `completion` is its outcome here, `unheard` an error that is reported
    /// in no other way.
    pub(crate) fn end(&self, number: u64, completion: Result<(), QueueError>, unheard: Option<QueueError>) {
        let mut state = self.lock();
        let Some(command) = state.in_flight.remove(&number) else { return };
        if command.awaited {
            state.completed.insert(number, completion);
        }
        state.error = state.error.or(unheard);
    }

    /// Takes a completion that has arrived.
    pub(crate) fn take_completion(&self, number: u64) -> Option<Result<(), QueueError>> {
        self.lock().completed.remove(&number)
    }

    /// Takes the first error that was not reported.
    pub(crate) fn take_error(&self) -> Option<QueueError> {
        self.lock().error.take()
    }
}

/// Regions of a rank from or to which the network is moving bytes of commands.
#[derive(Debug, Default)]
pub(crate) struct Moving(Mutex<HashMap<u64, usize>>);

impl Moving {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        // Nothing panics between statements that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that bytes of a region begin to be moved.
    pub(crate) fn enter(&self, region: RegionKey) {
        *self.lock().entry(region.to_bits()).or_default() += 1;
    }

    /// Records that they have been moved.
    pub(crate) fn leave(&self, region: RegionKey) {
        let mut moving = self.lock();
        if let Some(count) = moving.get_mut(&region.to_bits()) {
            *count -= 1;
            if *count == 0 {
                moving.remove(&region.to_bits());
            }
        }
    }

    /// Returns whether bytes of a region are being moved.
    pub(crate) fn uses(&self, region: RegionKey) -> bool {
        self.lock().contains_key(&region.to_bits())
    }
}
