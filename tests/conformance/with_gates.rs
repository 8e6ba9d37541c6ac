//! Cases for providers that have barrier units, and how they are run.

#[cfg(target_os = "linux")]
use crate::launched::Processes;
use crate::{
    providers::{Jittered, Threads, Virtual},
    suite::provider::{Loss, Observed, Provider, Report, Told},
};
use rdma_fabric::{Fabric, ProgramOn, ProgramResult, barrier::BarrierFabric};
use std::{fmt, time::Duration};
use tofu2_sim::{
    shm::{self, Endpoint},
    virt::{Job, Platform, VirtFabric},
};

/// The cases, in the form of `every_case!`.
macro_rules! every_gate_case {
    ($then:ident! { $($arguments:tt)* }) => {
        $then! { $($arguments)*;
            plain {
                gates::gates_refuse_misuse("B1 B2 B3 B4 B5", [1, 2]);
                gates::gates_separate("B6", [1, 2, 3, 4, 5]);
                gates::gates_need_no_cpu("B6", [2, 3]);
                gates::gates_reduce("B7", [1, 2, 3, 4, 5]);
                gates::gates_sum_exactly("B8", [1, 2, 3, 5]);
                gates::gates_reduce_to_an_owner("B9", [1, 2, 3, 4]);
                gates::gates_are_many("B1 B6", [2, 4]);
                gates::gates_tell_mismatches("B10", [2, 3, 4]);
                gates::gates_tell_wrong_wires("B11", [2]);
            }
            losing {
                gates::gates_end_with_a_loss("B12 W3", [2, 3, 4]);
            }
        }
    };
}

/// A program that runs over `F`.
pub(crate) trait CaseOn<F: Fabric>: ProgramOn<F, Out: Told> + Clone + fmt::Debug + Send + 'static {}

impl<F: Fabric, P: ProgramOn<F, Out: Told> + Clone + fmt::Debug + Send + 'static> CaseOn<F> for P {}

/// A provider whose ranks have barrier units.
pub(crate) trait WithGates<F: BarrierFabric>: Provider {
    /// As [`Provider::run`].
    fn run_on<P: CaseOn<F>>(ranks: usize, test: &str, turn: u64, program: &P) -> Option<Report>;

    fn check_gates<P: CaseOn<F>>(sizes: &[usize], test: &str, program: &P) {
        Self::check_runs(sizes, test, |ranks, turn| Self::run_on(ranks, test, turn, program));
    }

    fn check_losing_gates<P: CaseOn<F>>(sizes: &[usize], test: &str, program: impl Fn(Loss) -> P) {
        Self::check_losing_runs(sizes, test, |ranks, turn, loss| Self::run_on(ranks, test, turn, &program(loss)));
    }
}

/// A program whose ranks' outcomes are kept.
#[derive(Clone, Debug)]
struct Followed<P>(Observed<P>);

impl<F: Fabric, P: CaseOn<F>> ProgramOn<F> for Followed<P> {
    type Out = ();

    async fn run_on(&self, fabric: F) -> ProgramResult<()> {
        self.0.follow(fabric.rank(), self.0.program.run_on(fabric)).await
    }
}

impl<P> Followed<P> {
    fn new(program: P, ranks: usize) -> Self {
        Followed(Observed::new(program, ranks))
    }

    fn report<T>(&self, ended: Result<T, tofu2_sim::JobError>) -> Option<Report> {
        Some(self.0.report(ended.map(drop).map_err(|error| error.to_string())))
    }
}

impl WithGates<Endpoint> for Threads {
    fn run_on<P: CaseOn<Endpoint>>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        let program = Followed::new(program.clone(), ranks);
        program.report(shm::Threads::new(ranks).run(&program))
    }
}

#[cfg(target_os = "linux")]
impl WithGates<Endpoint> for Processes {
    fn run_on<P: CaseOn<Endpoint>>(ranks: usize, test: &str, _: u64, program: &P) -> Option<Report> {
        Processes::run_case(ranks, test, program)
    }
}

impl WithGates<VirtFabric> for Virtual {
    fn run_on<P: CaseOn<VirtFabric>>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        let program = Followed::new(program.clone(), ranks);
        program.report(Job::new(&Platform::fx100(), ranks).run(&program))
    }
}

impl WithGates<VirtFabric> for Jittered {
    fn run_on<P: CaseOn<VirtFabric>>(ranks: usize, _: &str, turn: u64, program: &P) -> Option<Report> {
        let program = Followed::new(program.clone(), ranks);
        let job = Job::new(&Platform::fx100(), ranks).seed(turn).jitter(Duration::from_micros(3));
        program.report(job.shuffle_ties(true).ranks_per_node(2).run(&program))
    }
}

/// A test for each case over one provider, named `name::case`.
macro_rules! gate_conformance {
    ($name:ident, $provider:ty) => {
        every_gate_case! { gate_conformance! { tests $name, $provider } }
    };
    (tests $name:ident, $provider:ty;
        plain { $($room:ident::$case:ident($says:literal, $sizes:expr);)* }
        losing { $($lost:ident::$losing:ident($covers:literal, $among:expr);)* }
    ) => {
        mod $name {
            use super::*;
            use $crate::with_gates::WithGates as _;
            $(
                #[test]
                fn $case() {
                    let program = $crate::$room::$case {};
                    <$provider>::check_gates(&$sizes, concat!(stringify!($name), "::", stringify!($case)), &program);
                }
            )*
            $(
                #[test]
                fn $losing() {
                    let program = |loss| $crate::$lost::$losing { loss };
                    <$provider>::check_losing_gates(&$among, concat!(stringify!($name), "::", stringify!($losing)), program);
                }
            )*
        }
    };
}
