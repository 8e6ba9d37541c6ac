//! The evaluation of persistent neighbourhood collectives in session mode: what is run, what comes out, how it compares.

mod compare;
mod forms;
mod plan;
mod runs;

pub use compare::compare;
pub use forms::{FormTrace, forms, label};
pub use plan::{How, Job, Pattern, PrdmaPlan};
pub use runs::{ExchangeRun, PrdmaRuns, run};
