//! The sentences of the fabric contract as test cases, for authors of providers.
//!
//! `docs/contract/fabric.md` of the project numbers the sentences of the contract between protocols
//! and providers: `M1` on memory, `O1` on operations, `W1` on waits, and so on. Each case of this
//! suite lists the sentences that it covers ([`CASES`]), and its failure messages begin with the
//! sentence that was violated. A provider is accepted by passing all cases.
//!
//! # Use
//! Implement [`Harness`], which runs a program as a job of n ranks and reports the outcome of each
//! rank. Pass it to [`suite!`] in an integration test, which defines one `#[test]` for each case:
//!
//! ```no_run
//! use fabric_conformance::{CaseProgram, JobReport, Harness};
//! use tofu2_shm::Threads;
//!
//! /// Ranks as threads over shared memory.
//! struct ThreadRanks;
//!
//! impl Harness for ThreadRanks {
//!     fn run(program: &CaseProgram, ranks: usize, _test: &str, _turn: u64) -> Option<JobReport> {
//!         Some(JobReport::of_one_process(program, ranks, |program| Threads::new(ranks).run(program)))
//!     }
//! }
//!
//! fabric_conformance::suite!(threads, ThreadRanks);
//! # fn main() {}
//! ```
//!
//! A provider whose ranks are processes implements [`Harness::run`] by executing the test binary
//! again for the same test; each such process finds that it is a rank. The provider reports
//! [`RankOutcome`]s itself and adds [`Loss::Kill`] to its [`Harness::LOSSES`].
//!
//! Cases for facilities that a provider may lack (atomics, control queues, gates, hardware
//! barriers, multicasts, protected memory, registering existing memory) are not skipped: they
//! check that a provider without the facility reports this.

#![forbid(unsafe_code)]

pub mod capabilities;
mod cases;
mod harness;
mod program;
pub mod seeds;
mod verdict;
pub mod watchdog;

pub(crate) use cases::Start;
pub use cases::{CASES, Case};
pub use harness::{Harness, JobReport, Loss, ON_PURPOSE, RankOutcome};
pub use program::{CaseProgram, RecordedProgram};

/// Defines a module with one `#[test]` for each case of the suite: `suite!(name, Harness)`.
///
/// `suite!(name, Harness, wraps)` takes only the cases that exercise the code of a provider between
/// a program and another provider. Attributes before the name are applied to each test:
/// `suite!(#[ignore = "long"] name, Harness)`. The harness must be in scope under a name that `use
/// super::*` imports.
#[macro_export]
macro_rules! suite {
    ($(#[$attribute:meta])* $name:ident, $bed:ty $(, $only:ident)?) => {
        $crate::__every_case! { [$crate::__tests] [[$(#[$attribute])*] $name, $bed, ($($only)?)] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$attributes:tt $name:ident, $bed:ty, $only:tt];
        $($_kind:ident $_room:ident::$case:ident($_says:literal, $_sizes:expr $(, wraps $why:ident)?);)*
    ) => {
        mod $name {
            use super::*;
            $($crate::__test! { $attributes $only [$($why)?] $case, $bed })*
        }
    };
}

/// Defines one test, if it is selected.
#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    ($attributes:tt (wraps) [] $case:ident, $bed:ty) => {};
    ([$($attributes:tt)*] ($($only:ident)?) [$($why:ident)?] $case:ident, $bed:ty) => {
        #[test]
        $($attributes)*
        fn $case() {
            $crate::__run::<$bed>(module_path!(), stringify!($case));
        }
    };
}

#[doc(hidden)]
pub fn __run<B: Harness>(module: &str, name: &str) {
    let case = CASES.iter().find(|case| case.name == name).expect("a case of the list");
    // Test names do not include the crate.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    B::check_case(case, &format!("{module}::{name}"));
}
