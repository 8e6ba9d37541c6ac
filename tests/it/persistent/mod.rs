//! Persistent exchanges between neighbours: the same cases over every provider.
//!
//! `docs/systems/persistent.md` has the table of cases. Received data is compared with an
//! [oracle](exchange) that is independent of the crate's topologies and layouts.

mod areas;
mod blocks;
mod by_node;
mod ends;
mod exchange;
mod faults;
mod losses;
mod overlap;
mod pace;
mod partitions;
mod points;
mod queues;
mod random;
mod reductions;
mod shapes;
mod topologies;
mod windowed;
mod wrong;

#[cfg(target_os = "linux")]
use crate::harness::Processes;
use crate::harness::{Bare, Jittered, Threads, Virtual};
use fabric_conformance::{CaseProgram, Harness, Loss};
use losses::Moment;
use onesided::prdma::{Form, Options};
use partitions::Call;

/// All forms, including each intermediate number of queues that behaves differently.
const FORMS: [Form; 5] = [Form::Fast, Form::Queues(3), Form::Queues(2), Form::Mrc, Form::Cpu];

/// An exchange that every provider is to run.
struct ExchangeCase {
    name: &'static str,
    /// The numbers of ranks with which it runs.
    sizes: &'static [usize],
    program: Start,
}

/// The function that makes a case's program.
enum Start {
    Plain(fn() -> CaseProgram),
    /// A case whose last rank is lost at the given moment in the given way.
    Losing(fn(Moment, Loss) -> CaseProgram),
}

impl ExchangeCase {
    fn check<B: Harness>(&self, test: &str) {
        match self.program {
            Start::Plain(start) => B::check(&start(), self.sizes, test),
            Start::Losing(start) => {
                for moment in Moment::ALL {
                    println!("{moment:?}");
                    B::check_losing(|loss| start(moment, loss), self.sizes, test);
                }
            }
        }
    }
}

/// Defines `CASES` with a list of cases, or a module with a test for each of them over one test
/// bed.
///
/// A line is `name [numbers of ranks] module::function(arguments after the fabric);`. The function
/// of a losing case also receives the moment and the loss.
macro_rules! exchange_cases {
    ([CASES];
        plain { $($name:ident $sizes:tt $room:ident::$case:ident($($argument:expr),*);)* }
        losing { $($lost:ident $among:tt $place:ident::$losing:ident($($given:expr),*);)* }
    ) => {
        static CASES: &[ExchangeCase] = &[
            $(ExchangeCase {
                name: stringify!($name),
                sizes: &$sizes,
                program: Start::Plain(|| {
                    CaseProgram::silent(async |fabric: rdma_fabric::Fabric| $room::$case(&fabric, $($argument),*).await)
                }),
            },)*
            $(ExchangeCase {
                name: stringify!($lost),
                sizes: &$among,
                program: Start::Losing(|moment, loss| {
                    CaseProgram::silent(async move |fabric: rdma_fabric::Fabric| {
                        $place::$losing(&fabric, $($given,)* moment, loss).await
                    })
                }),
            },)*
        ];
    };
    ([$(#[$attribute:meta])* $bed_name:ident $bed:ty];
        plain { $($name:ident $sizes:tt $room:ident::$case:ident($($argument:expr),*);)* }
        losing { $($lost:ident $among:tt $place:ident::$losing:ident($($given:expr),*);)* }
    ) => {
        mod $bed_name {
            use super::*;

            exchange_cases! { tests [$(#[$attribute])*] $bed; $($name)* $($lost)* }
        }
    };
    (tests $attributes:tt $bed:ty; $($name:ident)*) => {
        $(exchange_cases! { test $attributes $bed; $name })*
    };
    (test [$(#[$attribute:meta])*] $bed:ty; $name:ident) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            let case = CASES.iter().find(|case| case.name == stringify!($name)).expect("a case of the list");
            let test = concat!(module_path!(), "::", stringify!($name));
            case.check::<$bed>(test.split_once("::").map_or(test, |(_, test)| test));
        }
    };
}
use exchange_cases;

macro_rules! every_case {
    ($arguments:tt) => {
        exchange_cases! { $arguments;
            plain {
                rings [1, 2, 3, 5] topologies::rings();
                tori_1x1 [1] topologies::torus([1, 1]);
                tori_2x1 [2] topologies::torus([2, 1]);
                tori_2x2 [4] topologies::torus([2, 2]);
                tori_3x3 [9] topologies::torus([3, 3]);
                tori_1x4 [4] topologies::torus([1, 4]);
                surrounded [4] topologies::surrounded();
                borders [1, 2, 4, 6] topologies::borders();
                slots_meet_their_opposite [1, 2, 4] topologies::opposite();
                graphs_with_duplicates_and_loops [5] topologies::tangled();
                stars [2, 5] topologies::star();
                layouts [3] blocks::layouts();
                elements [2] blocks::elements();
                one_buffer [3] blocks::one_buffer();
                calls [3] blocks::calls();
                forms_agree_byte_by_byte [4] blocks::forms_agree();
                late_members [3, 5] pace::late();
                polled_to_the_end [2, 3] pace::polled();
                a_thousand_iterations [2] pace::thousand();
                different_orders [2, 3] pace::orders();
                many_at_once [3] pace::many();
                separate_ends [1, 2, 3] ends::separately();
                mixed_ends [4] ends::mixed();
                points_with_separate_ends [2] ends::points();
                without_a_call [2] pace::unattended();
                made_again_and_again [3] queues::again();
                dropped_while_active [3] queues::dropped();
                budgets [4] queues::budgets();
                queues_run_out [3] queues::exhausted();
                too_deep_for_a_queue [3] queues::deep();
                wrong_blocks [3] wrong::blocks();
                wrong_edges [3] wrong::edges();
                wrong_order_of_calls [1, 2] wrong::order();
                points [1, 2, 3] points::points();
                early_and_late_points [2] points::early_and_late();
                wrong_points [2] points::wrong();
                windows [1, 2, 3] windowed::windows();
                allreduces [1, 2, 3, 4, 5, 6, 7, 8, 9] reductions::allreduces();
                allreduces_without_queues [2, 3, 5] reductions::scarce();
            }
            losing {
                a_lost_neighbour_fast [5] losses::lost(Options::form(Form::Fast));
                a_lost_neighbour_two_queues [5] losses::lost(Options::form(Form::Queues(2)));
                a_lost_neighbour_mrc [5] losses::lost(Options::form(Form::Mrc));
                a_lost_neighbour_separate_end_fast [5] losses::lost(ends::separate(Form::Fast));
                a_lost_neighbour_separate_end_mrc [5] losses::lost(ends::separate(Form::Mrc));
                a_lost_neighbour_cpu [5] losses::lost(Options::form(Form::Cpu));
                a_lost_member_of_an_allreduce_fast [5] reductions::lost(Form::Fast);
                a_lost_member_of_an_allreduce_mrc [5] reductions::lost(Form::Mrc);
                a_lost_member_of_an_allreduce_cpu [5] reductions::lost(Form::Cpu);
                a_lost_neighbour_with_partitions_fast [5] partitions::lost(Form::Fast, Call::Wait, None);
                a_lost_neighbour_with_partitions_cpu [5] partitions::lost(Form::Cpu, Call::Wait, None);
                a_lost_neighbour_asked_for_partitions_fast [5] partitions::lost(Form::Fast, Call::Arrived, None);
                a_lost_neighbour_asked_for_partitions_cpu [5] partitions::lost(Form::Cpu, Call::Arrived, None);
                a_lost_neighbour_known_to_start_fast [5] partitions::lost(Form::Fast, Call::Wait, Some(Call::Start));
                a_lost_neighbour_known_to_start_cpu [5] partitions::lost(Form::Cpu, Call::Wait, Some(Call::Start));
                a_lost_neighbour_known_to_ready_fast [5] partitions::lost(Form::Fast, Call::Wait, Some(Call::Ready));
                a_lost_neighbour_known_to_ready_cpu [5] partitions::lost(Form::Cpu, Call::Wait, Some(Call::Ready));
                a_lost_neighbour_known_to_arrived_fast [5] partitions::lost(Form::Fast, Call::Arrived, Some(Call::Arrived));
                a_lost_neighbour_known_to_arrived_cpu [5] partitions::lost(Form::Cpu, Call::Arrived, Some(Call::Arrived));
                a_lost_neighbour_known_to_wait_fast [5] partitions::lost(Form::Fast, Call::Wait, Some(Call::Wait));
                a_lost_neighbour_known_to_wait_cpu [5] partitions::lost(Form::Cpu, Call::Wait, Some(Call::Wait));
            }
        }
    };
}

every_case!([CASES]);
every_case!([threads Bare<Threads>]);
#[cfg(target_os = "linux")]
every_case!([#[ignore = "long: weekly"] processes Processes]);
every_case!([virt Bare<Virtual>]);
every_case!([virt_jittered Jittered<0, 2>]);
every_case!([#[ignore = "long: weekly"] virt_jittered_more Jittered<2, 8>]);
