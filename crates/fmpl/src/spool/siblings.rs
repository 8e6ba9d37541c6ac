//! The spools of a rank's communicators, which take turns with the rank's memory.

use crate::state::State;
use rdma_fabric::{Fabric, provider::TurnCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What each communicator of a rank knows between its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Siblings(Arc<Mutex<Vec<Weak<TurnCell<State>>>>>);

impl Siblings {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<TurnCell<State>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, state: &Arc<TurnCell<State>>) {
        let mut all = self.all();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(state));
    }

    /// Gives memory back that holds nothing, after what was received is freed. The caller has no turn.
    pub(crate) fn trim(&self, fabric: &Fabric) {
        // No lock is held in a turn.
        let all: Vec<_> = self.all().iter().filter_map(Weak::upgrade).collect();
        for state in all {
            let Some(mut state) = state.enter() else { continue };
            // An error is reported to the communicator's own calls.
            if state.sweep(fabric).is_ok() {
                state.trim();
            }
        }
    }
}
