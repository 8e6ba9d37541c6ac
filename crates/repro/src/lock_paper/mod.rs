//! The lock paper's evaluation: what is run, what comes out, how it compares.

mod compare;
mod plan;
mod runs;
mod stencil;
mod what_if;

pub use compare::compare;
pub use plan::{LockPlan, Shapes};
pub use runs::{LockRuns, PairRun, TniRun, run};
pub use stencil::{StencilForm, StencilRun};
pub use what_if::WhatIf;
