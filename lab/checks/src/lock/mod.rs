//! The locks, the programs of ranks that use them, and mutants of their steps.
//!
//! Each module except [`program`] and [`mutants`] lists [`Exploration`]s of some locks;
//! [`explorations`] returns all of them.

mod back_off;
mod classes;
mod crashes;
mod holder_limit;
mod indicator;
mod lifetime;
mod locked;
pub mod mutants;
mod nodes;
mod own_by_cpu;
pub mod program;
mod queued;
mod record;
mod recoverable;
mod recovery_mutants;
mod window;

pub use back_off::{BackOffMutant, back_off_mutant};
pub use holder_limit::{RefusalMutant, preset, refusal_mutant};
pub use locked::NotFlushed;
pub use nodes::NodesCase;
pub use queued::mutants::{QueuedMutantCase, queued_mutants};
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
        ("lifetime", lifetime::explorations()),
        ("deaths", crashes::explorations()),
        ("recovery", recoverable::explorations()),
        ("recovery's mutants", recovery_mutants::explorations()),
        ("windows", window::explorations()),
    ];
    let mut all: Vec<_> = queued.into_iter().chain(others).collect();
    let over_a_mutant = own_by_cpu::explorations(&all);
    all.push(("own atomics by the CPU", over_a_mutant));
    all
}
