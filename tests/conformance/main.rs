//! The contract's conformance suite: the same cases over every provider.
//!
//! `docs/fabric-contract.md` numbers its sentences; the cases name them. A provider is accepted by passing all of
//! them; a new one is added as one line at the end of this file.

mod atomics;
mod detach;
mod existing;
mod groups;
mod handles;
mod memory;
mod notices;
mod posting;
mod provider;
mod time;
mod transfers;
mod verdict;
mod waiting;

use provider::{Jittered, Processes, Provider, Threads, Virtual};

/// All cases over one provider: a test each, named `provider::case`.
macro_rules! conformance {
    ($name:ident, $provider:ty: $($room:ident::$case:ident($ranks:expr $(, $arg:ident: $value:expr)*);)*) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $case() {
                    for ranks in $ranks {
                        let program = $room::$case { $($arg: $value)* };
                        <$provider>::check(ranks, concat!(stringify!($name), "::", stringify!($case)), &program);
                    }
                }
            )*
        }
    };
    ($name:ident, $provider:ty) => {
        conformance! { $name, $provider:
            memory::identity([1, 3]);
            memory::regions_are_zeroed_and_whole([1]);
            memory::symmetric_regions_have_one_key([1, 4]);
            memory::symmetric_sizes_must_agree([3]);
            memory::a_dropped_region_is_stale([2]);
            memory::resolving_names_the_numbers([2]);
            transfers::every_length_comes_round([1, 2]);
            transfers::every_source_and_sink([2]);
            transfers::long_transfers_are_split([2]);
            transfers::flushed_puts_precede_the_flag([3]);
            transfers::ordered_puts_precede_atomics([3]);
            transfers::words_are_never_torn([2]);
            atomics::arithmetic_at_every_width([1, 2]);
            atomics::nothing_is_lost([4]);
            atomics::one_winner([4]);
            notices::arrive_in_order_with_data([3]);
            notices::an_empty_put_notifies([2]);
            notices::width_is_checked([2]);
            posting::a_refused_operation_comes_back([2]);
            posting::a_dropped_handle_does_not_cancel([2]);
            posting::many_operations_at_once([3]);
            handles::test_await_and_wait([2]);
            waiting::every_writer_wakes([2]);
            waiting::two_waits_of_one_rank([2]);
            waiting::a_dropped_wait_leaves_nothing([2]);
            waiting::a_satisfied_wait_ends_at_once([2]);
            waiting::nobody_is_left([3]);
            groups::barriers_separate([1, 2, 3, 4, 5]);
            groups::broadcast_from_everywhere([1, 2, 3, 4, 5]);
            groups::allgather_in_member_order([1, 2, 3, 4, 5]);
            groups::splits_number_by_order([1, 2, 3, 4, 5]);
            existing::peers_reach_it([2, 3]);
            existing::own_registered_memory_is_source_and_sink([1, 3]);
            existing::atomics_are_done_or_refused([3]);
            existing::puts_and_notices_wake_the_owner([2]);
            existing::taking_waits_for_who_is_inside([3]);
            existing::dropping_deregisters([2]);
            time::never_goes_back([2]);
            time::deadlines([2]);
            detach::is_run_to_its_end([2, 5]);
            detach::may_detach_in_turn([3]);
        }
    };
}

conformance!(threads, Threads);
conformance!(processes, Processes);
conformance!(virt, Virtual);
conformance!(virt_jittered, Jittered);
