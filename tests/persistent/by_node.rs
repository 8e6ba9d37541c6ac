//! Exchanges by node: cases of their own, and nodes of two ranks each.

#[cfg(target_os = "linux")]
use crate::launched;
use crate::{
    cases::{Case, Moment, NodeCase, persistent},
    providers::{self, Jittered},
    suite::provider::{self, Loss, On, Provider, Report},
};
use onesided::prdma::Form;
use tofu2_sim::{
    shm,
    virt::{Job, Platform},
};

/// Ranks of a node.
const ON_NODE: usize = 2;

struct Threads;

impl Provider for Threads {
    fn run<P: provider::Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        Some(providers::spawn(&shm::Threads::new(ranks).ranks_per_node(ON_NODE), ranks, On::new(program)))
    }
}

struct Virtual;

impl Provider for Virtual {
    fn run<P: provider::Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        let job = Job::new(&Platform::fx100(), ranks).ranks_per_node(ON_NODE as u32);
        Some(providers::simulate(&job, ranks, On::new(program)))
    }
}

#[cfg(target_os = "linux")]
struct Processes;

#[cfg(target_os = "linux")]
impl Provider for Processes {
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic, Loss::Kill];

    fn run<P: provider::Case>(ranks: usize, test: &str, _: u64, program: &P) -> Option<Report> {
        launched::run(shm::Launcher::new(ranks).ranks_per_node(ON_NODE), ranks, test, program)
    }
}

macro_rules! over {
    ($name:ident, $provider:ty) => {
        over! { tests $name, $provider;
            losing a_lost_representative;
            shapes(NodeCase::Shapes) [2, 4, 5, 6];
            layouts(NodeCase::Layouts) [4];
            calls(NodeCase::Calls) [4];
            late_members(NodeCase::Late) [4, 5];
            wishes_and_budgets(NodeCase::Budgets) [6];
            without_a_call(NodeCase::Unattended) [4];
        }
    };
    (tests $name:ident, $provider:ty; losing $lost:ident; $($case:ident($what:expr) $sizes:expr;)*) => {
        mod $name {
            use super::*;

            fn name(test: &str) -> String {
                format!("by_node::{}::{test}", stringify!($name))
            }

            $(#[test]
            fn $case() {
                let program = async |fabric| persistent(fabric, Case::ByNode($what)).await;
                <$provider>::check(&$sizes, &name(stringify!($case)), &program);
            })*

            #[test]
            fn $lost() {
                for (form, moment) in [Form::Fast, Form::Mrc, Form::Cpu].iter().flat_map(|form| Moment::ALL.map(|at| (*form, at))) {
                    let case = move |loss| Case::ByNode(NodeCase::Lost(form, moment, loss));
                    let program = |loss| async move |fabric| persistent(fabric, case(loss)).await;
                    <$provider>::check_losing(&[6], &name(stringify!($lost)), program);
                }
            }
        }
    };
}

over!(threads, Threads);
#[cfg(target_os = "linux")]
over!(processes, Processes);
over!(virt, Virtual);
over!(virt_jittered, Jittered);
