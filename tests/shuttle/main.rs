//! The conformance cases, the locks, and persistent exchanges by CPUs, under shuttle: random and PCT schedules of 4 and 16 ranks; of exchanges 2 and 4.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `SHUTTLE_SEED` | where drawing begins; printed with a failure | from the clock |
//! | `SHUTTLE_SECONDS` | how long to go on, for all tests together | one schedule of each kind and size |
//!
//! What these schedules did not draw, they can't tell. That they can tell something is shown by [`mutations`].

#[macro_use]
#[path = "../conformance/suite.rs"]
mod suite;

mod exchange;
mod fabric;
mod lock;
mod mutations;
mod provider;
#[path = "../../crates/rma-lock/tests/which/mod.rs"]
mod which;

use provider::Shuttle;

conformance!(cases, Shuttle);
