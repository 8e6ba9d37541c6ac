//! The sentences of the fabric contract as test cases, for whoever writes a provider.
//!
//! `docs/contract/fabric.md` of the project numbers the sentences of the contract between protocols
//! and providers: `M1` on memory, `O1` on operations, `W1` on waits, and so on. Each case of this
//! suite names those that it covers ([`CASES`]), and its failures begin with the sentence that was
//! broken. A provider is accepted by passing all cases.
//!
//! # Use
//! Implement [`TestBed`], which runs a program as a job of n ranks and says what became of each,
//! and list it with [`suite!`] in an integration test, which gets one `#[test]` for each case:
//!
//! ```no_run
//! use fabric_conformance::{CaseProgram, JobReport, TestBed};
//! use tofu2_sim::shm;
//!
//! /// Ranks as threads over shared memory.
//! struct Threads;
//!
//! impl TestBed for Threads {
//!     fn run(program: &CaseProgram, ranks: usize, _test: &str, _turn: u64) -> Option<JobReport> {
//!         Some(JobReport::of_one_process(program, ranks, |program| shm::Threads::new(ranks).run(program)))
//!     }
//! }
//!
//! fabric_conformance::suite!(threads, Threads);
//! # fn main() {}
//! ```
//!
//! A provider whose ranks are processes implements [`TestBed::run`] by executing the test binary
//! again for the same test, where each rank finds that it is one; it reports [`RankOutcome`]s
//! itself and adds [`Loss::Kill`] to its [`TestBed::LOSSES`].
//!
//! Facilities that a provider may lack (control queues, gates, memory without a key, registering
//! memory that exists) are not left out: their cases check that a provider without them says so.

#![forbid(unsafe_code)]

mod bed;
mod cases;
mod program;
mod verdict;

pub use bed::{JobReport, Loss, ON_PURPOSE, RankOutcome, TestBed};
pub(crate) use cases::Start;
pub use cases::{CASES, Case};
pub use program::{CaseProgram, RecordedProgram};

/// Defines a module with one `#[test]` for each case of the suite: `suite!(name, TestBed)`.
///
/// `suite!(name, TestBed, wraps)` takes only the cases that enter the code of a provider that
/// stands between a program and another provider. Attributes before the name are put on each test:
/// `suite!(#[ignore = "long"] name, TestBed)`. The test bed must be in scope by a name that
/// `use super::*` finds.
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

/// One test, if it is among those that are wanted.
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
pub fn __run<B: TestBed>(module: &str, name: &str) {
    let case = CASES.iter().find(|case| case.name == name).expect("a case of the list");
    // Tests are named without their crate.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    B::check_case(case, &format!("{module}::{name}"));
}
