//! The locks, the programs of ranks that use them, and mutations of their steps.
//!
//! Each module except [`program`] and [`mutation`] lists [`Exploration`]s of some locks;
//! [`explorations`] returns all of them.

mod back_off;
mod classes;
mod ends;
mod holder_limit;
mod indicator;
mod locked;
mod mortal;
pub mod mutation;
mod nodes;
mod own_by_cpu;
pub mod program;
mod queued;
mod record;
mod recoverable;
mod recovery_mistakes;
mod window;

pub use holder_limit::{RefusalMistake, preset, refusal_mistaken};
pub use locked::NotFlushed;
pub use nodes::NodesCase;
pub use queued::{QueuedMutation, queued_mutations};
pub use record::Record;

use crate::exploration::Exploration;

/// Returns all explorations of locks, grouped by subject.
pub fn explorations() -> Vec<(&'static str, Vec<Exploration>)> {
    let queued = queued::ALL.map(|lock| (lock.type_name(), queued::explorations(lock)));
    let others = [
        ("nodes", nodes::explorations()),
        ("indicator", indicator::explorations()),
        ("back-off", back_off::explorations()),
        ("accesses", classes::explorations()),
        ("holder limit", holder_limit::explorations()),
        ("locked memory", locked::explorations()),
        ("lifetime", ends::explorations()),
        ("deaths", mortal::explorations()),
        ("recovery", recoverable::explorations()),
        ("recovery's mistakes", recovery_mistakes::explorations()),
        ("windows", window::explorations()),
    ];
    let mut all: Vec<_> = queued.into_iter().chain(others).collect();
    let over_a_mistake = own_by_cpu::explorations(&all);
    all.push(("own atomics by the CPU", over_a_mistake));
    all
}
