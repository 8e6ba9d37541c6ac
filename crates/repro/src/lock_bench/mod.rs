//! Figures of the [workloads of the locks' literature](crate::workloads::locks): what runs amount to, in tables and as data, and the
//! runs in virtual time.
//!
//! The runs on wall clock are `cargo xtask bench-locks`, which uses the same rows and tables. They are no part of a
//! reproduction: no published value is recorded to compare them with.

mod row;
mod simulated;
mod table;

pub use row::{Case, Fairness, Quantiles, Row, Simulation, Spread, Waits};
pub use simulated::{SimulatedPlan, run};
pub use table::{markdown, terminal};
