//! Persistent exchanges between neighbours: the same cases over every provider.
//!
//! `docs/persistent.md` has the table of cases. What arrives is held to an [oracle](exchange) that
//! knows neither the crate's topologies nor its layouts. One program with a case to choose keeps
//! the crate quick to compile: what runs a program is generic over it, and is compiled once for
//! each provider, not once for each case.

mod areas;
mod by_node;
mod cases;
mod exchange;
mod faults;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../conformance/launched.rs"]
mod launched;
mod overlap;
#[allow(dead_code)]
#[path = "../conformance/providers.rs"]
mod providers;
mod random;
mod shapes;
#[allow(dead_code)]
mod suite;

use cases::{Call, Case, persistent};
#[cfg(target_os = "linux")]
use launched::Processes;
use providers::{Jittered, Threads, Virtual};
use suite::provider::Provider;

/// A test for each case over one provider, named `name::case`.
macro_rules! over {
    ($name:ident, $provider:ty) => {
        over! { tests $name, $provider;
            plain {
                rings(Rings) [1, 2, 3, 5];
                tori_1x1(Torus([1, 1])) [1];
                tori_2x1(Torus([2, 1])) [2];
                tori_2x2(Torus([2, 2])) [4];
                tori_3x3(Torus([3, 3])) [9];
                tori_1x4(Torus([1, 4])) [4];
                surrounded(Surrounded) [4];
                borders(Borders) [1, 2, 4, 6];
                slots_meet_their_opposite(Opposite) [1, 2, 4];
                graphs_with_duplicates_and_loops(Tangled) [5];
                stars(Star) [2, 5];
                layouts(Layouts) [3];
                elements(Elements) [2];
                one_buffer(OneBuffer) [3];
                calls(Calls) [3];
                forms_agree_byte_by_byte(FormsAgree) [4];
                late_members(Late) [3, 5];
                polled_to_the_end(Polled) [2, 3];
                a_thousand_iterations(Thousand) [2];
                different_orders(Orders) [2, 3];
                many_at_once(Many) [3];
                made_again_and_again(Again) [3];
                dropped_while_active(Dropped) [3];
                budgets(Budgets) [4];
                queues_run_out(Exhausted) [3];
                too_deep_for_a_queue(Deep) [3];
                wrong_blocks(WrongBlocks) [3];
                wrong_edges(WrongEdges) [3];
                wrong_order_of_calls(WrongOrder) [1, 2];
                points(Points) [1, 2, 3];
                early_and_late_points(EarlyAndLate) [2];
                wrong_points(WrongPoints) [2];
                without_a_call(Unattended) [2];
                allreduces(Allreduces) [1, 2, 3, 4, 5, 6, 7, 8, 9];
                allreduces_without_queues(ScarceReductions) [2, 3, 5];
            }
            losing {
                a_lost_neighbour_fast(Lost, Form::Fast) [5];
                a_lost_neighbour_two_queues(Lost, Form::Queues(2)) [5];
                a_lost_neighbour_mrc(Lost, Form::Mrc) [5];
                a_lost_neighbour_cpu(Lost, Form::Cpu) [5];
                a_lost_member_of_an_allreduce_fast(LostReduction, Form::Fast) [5];
                a_lost_member_of_an_allreduce_mrc(LostReduction, Form::Mrc) [5];
                a_lost_member_of_an_allreduce_cpu(LostReduction, Form::Cpu) [5];
                a_lost_neighbour_with_partitions_fast(PartsLost, Form::Fast) [5];
                a_lost_neighbour_with_partitions_cpu(PartsLost, Form::Cpu) [5];
                a_lost_neighbour_asked_for_partitions_fast(PartsAsked, Form::Fast) [5];
                a_lost_neighbour_asked_for_partitions_cpu(PartsAsked, Form::Cpu) [5];
                a_lost_neighbour_known_to_start_fast(PartsKnown, (Form::Fast, Call::Start)) [5];
                a_lost_neighbour_known_to_start_cpu(PartsKnown, (Form::Cpu, Call::Start)) [5];
                a_lost_neighbour_known_to_ready_fast(PartsKnown, (Form::Fast, Call::Ready)) [5];
                a_lost_neighbour_known_to_ready_cpu(PartsKnown, (Form::Cpu, Call::Ready)) [5];
                a_lost_neighbour_known_to_arrived_fast(PartsKnown, (Form::Fast, Call::Arrived)) [5];
                a_lost_neighbour_known_to_arrived_cpu(PartsKnown, (Form::Cpu, Call::Arrived)) [5];
                a_lost_neighbour_known_to_wait_fast(PartsKnown, (Form::Fast, Call::Wait)) [5];
                a_lost_neighbour_known_to_wait_cpu(PartsKnown, (Form::Cpu, Call::Wait)) [5];
            }
        }
    };
    (tests $name:ident, $provider:ty;
        plain { $($case:ident($what:expr) $sizes:expr;)* }
        losing { $($lost:ident($of:ident, $form:expr) $among:expr;)* }
    ) => {
        mod $name {
            use super::{Case::*, *};
            use onesided::prdma::Form;

            $(#[test]
            fn $case() {
                let test = concat!(stringify!($name), "::", stringify!($case));
                <$provider>::check(&$sizes, test, &async |fabric| persistent(fabric, $what).await);
            })*

            $(#[test]
            fn $lost() {
                for moment in cases::Moment::ALL {
                    let program = |loss| async move |fabric| persistent(fabric, $of($form, moment, loss)).await;
                    println!("{moment:?}");
                    <$provider>::check_losing(&$among, concat!(stringify!($name), "::", stringify!($lost)), program);
                }
            })*
        }
    };
}

over!(threads, Threads);
#[cfg(target_os = "linux")]
over!(processes, Processes);
over!(virt, Virtual);
over!(virt_jittered, Jittered);
