//! The communicators of a rank, which share its memory: idle memory of one can be used by the
//! others, and only some of them keep idle buffers.

use super::Idle;
use crate::state::State;
use rdma_fabric::{Fabric, provider::TurnCell};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// The state of a communicator between its calls.
type Known = TurnCell<State>;

/// The number of communicators of a rank that keep idle buffers. Another one that needs buffers
/// takes over those of the communicator that has kept its buffers for the longest time. So a rank
/// may use thousands of communicators without as many buffers, and a program that alternates
/// between at most this many communicators never moves any buffers.
const KEEPERS: usize = 64;

/// The number of keepers that a communicator asks for buffers, because messages may still wait in
/// the buffers of some.
const ASKED: usize = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Siblings(Arc<Family>);

#[derive(Debug, Default)]
struct Family {
    all: Mutex<All>,
    keepers: Mutex<Keepers>,
}

#[derive(Debug, Default)]
struct Keepers {
    /// The communicators that keep buffers, oldest first; some of them may already have been
    /// dropped.
    states: VecDeque<Weak<Known>>,
    /// The number added since dropped ones were last removed.
    added: usize,
}

#[derive(Debug, Default)]
struct All {
    states: Vec<Weak<Known>>,
    /// The number at which dropped ones are removed.
    due: usize,
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Siblings {
    pub(crate) fn add(&self, state: &Arc<Known>) {
        let mut all = locked(&self.0.all);
        if all.states.len() >= all.due {
            all.states.retain(|other| other.strong_count() > 0);
            all.due = 2 * all.states.len() + 8;
        }
        all.states.push(Arc::downgrade(state));
    }

    /// Returns idle memory, after freeing the space of received messages. The caller must not hold
    /// a turn.
    pub(crate) fn trim(&self, fabric: &Fabric) {
        // No lock is held during a turn.
        let all: Vec<_> = locked(&self.0.all).states.iter().filter_map(Weak::upgrade).collect();
        for state in all {
            if let Some(mut state) = state.enter() {
                drop(state.take_idle(fabric));
            }
        }
    }

    /// Counts a communicator among the keepers. If there are too many, returns the buffers of
    /// another one. The caller must not hold a turn.
    pub(super) fn keep(&self, fabric: &Fabric, state: &Arc<Known>) -> Idle {
        let asked: Vec<_> = {
            let Keepers { states, added } = &mut *locked(&self.0.keepers);
            *added += 1;
            if *added > KEEPERS {
                states.retain(|keeper| keeper.strong_count() > 0);
                *added = 0;
            }
            states.push_back(Arc::downgrade(state));
            let surplus = states.len().saturating_sub(KEEPERS).min(ASKED);
            states.drain(..surplus).collect()
        };
        let mut idle = Idle::default();
        for keeper in asked {
            let Some(known) = keeper.upgrade() else { continue };
            let is_done = match known.enter() {
                Some(mut known) => {
                    idle.join(known.take_idle(fabric));
                    known.has_no_buffers()
                }
                None => false,
            };
            if !is_done {
                locked(&self.0.keepers).states.push_back(keeper);
            }
        }
        idle
    }
}
