//! The cases, and what each covers of `docs/fabric-contract.md`. They know no provider.

#[path = "atomics.rs"]
pub(crate) mod atomics;
#[path = "desk.rs"]
pub(crate) mod desk;
#[path = "detach.rs"]
pub(crate) mod detach;
#[path = "existing.rs"]
pub(crate) mod existing;
#[path = "gates.rs"]
pub(crate) mod gates;
#[path = "groups.rs"]
pub(crate) mod groups;
#[path = "handles.rs"]
pub(crate) mod handles;
#[path = "locked.rs"]
pub(crate) mod locked;
#[path = "losses.rs"]
pub(crate) mod losses;
#[path = "memory.rs"]
pub(crate) mod memory;
#[path = "notices.rs"]
pub(crate) mod notices;
#[path = "posting.rs"]
pub(crate) mod posting;
#[path = "provider.rs"]
pub(crate) mod provider;
#[path = "queues.rs"]
pub(crate) mod queues;
#[path = "room.rs"]
pub(crate) mod room;
#[path = "sessions.rs"]
pub(crate) mod sessions;
#[path = "time.rs"]
pub(crate) mod time;
#[path = "transfers.rs"]
pub(crate) mod transfers;
#[path = "triggered.rs"]
pub(crate) mod triggered;
#[path = "verdict.rs"]
pub(crate) mod verdict;
#[path = "waiting.rs"]
pub(crate) mod waiting;
#[path = "windows.rs"]
pub(crate) mod windows;

/// Expands `$then! { $arguments… ; plain … losing … }` with the list of all cases.
///
/// A line is `room::case("sentences covered", [numbers of ranks], field: value…);`. A case is good for any even
/// number of ranks above its first. In a *losing* case the last rank is lost, in the way that its field `loss` says.
///
/// A line marked `wraps` is also for providers that stand between a program and its fabric, whose
/// own code it enters: what they hand on of `memory`, every kind of `operations` with its buffers
/// and handle, every kind of `waits`, `errors` and `losses` on their way out, and the control
/// queues and gates (`units`) that they wrap. The other cases ask for nothing more of them.
macro_rules! every_case {
    ($then:ident! { $($arguments:tt)* }) => {
        $then! { $($arguments)*;
            plain {
                #[wraps(memory)]
                memory::identity("I1 I2 I3", [1, 3]);
                #[wraps(memory)]
                memory::regions_are_zeroed_and_whole("M1 M5 M6", [1]);
                memory::symmetric_regions_have_one_key("M2", [1, 4]);
                memory::symmetric_parts_end_alone("M3 M8", [3]);
                #[wraps(errors)]
                memory::symmetric_sizes_must_agree("M7", [3]);
                #[wraps(errors)]
                memory::a_dropped_region_is_stale("M3 V2", [2]);
                memory::resolving_names_the_numbers("M4 W1", [2]);
                memory::written_meanwhile("M5", [2]);
                memory::loads_acquire_what_stores_release("M6 V5", [2]);
                transfers::every_length_comes_round("O5 O8 O11 V2", [1, 2]);
                #[wraps(operations)]
                transfers::every_source_and_sink("O3 V4", [2]);
                transfers::slices_are_lent("O3 O4 O10", [2]);
                transfers::long_transfers_are_split("O14", [2]);
                transfers::flushed_puts_precede_the_flag("O5 O8", [3]);
                transfers::ordered_puts_precede_atomics("I3 O7", [3]);
                transfers::words_are_never_torn("M9 V5", [2]);
                transfers::readers_agree_which_write_was_first("O15", [4]);
                #[wraps(errors)]
                transfers::errors_come_with_the_next_flush("O13", [2]);
                #[wraps(operations)]
                atomics::arithmetic_at_every_width("O6", [1, 2]);
                atomics::nothing_is_lost("O6", [4]);
                atomics::one_winner("O6", [4]);
                #[wraps(operations)]
                notices::arrive_in_order_with_data("N1 N2 N3", [3]);
                notices::empty_transfers("O9", [2]);
                notices::width_is_checked("N4", [2]);
                #[wraps(waits)]
                room::nothing_is_lost_in_a_full_queue("O1 O12 N3", [3]);
                room::own_queue_is_first_come_first_served("O2", [2]);
                room::a_target_that_leaves("O12", [2]);
                #[wraps(operations)]
                posting::a_refused_operation_comes_back("O1 O10 M3 V6", [2]);
                #[wraps(operations)]
                posting::a_dropped_handle_does_not_cancel("O4 V7", [2]);
                posting::memory_in_flight_stays_alive("O4 V6", [2]);
                posting::many_operations_at_once("O2 O6", [3]);
                #[wraps(operations)]
                handles::test_await_and_wait("O3 V7", [2]);
                #[wraps(waits)]
                waiting::every_writer_wakes("W2 V3 V8", [2]);
                waiting::two_waits_of_one_rank("W2", [2]);
                #[wraps(waits)]
                waiting::a_dropped_wait_leaves_nothing("W5 V9", [2]);
                waiting::a_satisfied_wait_ends_at_once("W4 V10", [2]);
                #[wraps(errors)]
                waiting::nobody_is_left("W6 E1", [3]);
                waiting::the_writer_has_left("W8", [3]);
                waiting::nobody_depends_on_himself("W7", [1, 2]);
                groups::barriers_separate("G1", [1, 2, 3, 4, 5]);
                #[wraps(waits)]
                groups::barriers_publish_what_was_flushed("G1", [3]);
                groups::broadcast_from_everywhere("G2", [1, 2, 3, 4, 5]);
                groups::allgather_in_member_order("G2", [1, 2, 3, 4, 5]);
                groups::the_greatest_of_all("G5", [1, 2, 3, 4, 5]);
                groups::splits_number_by_order("G2", [1, 2, 3, 4, 5]);
                groups::memory_of_a_group("G4", [1, 2, 3, 4, 5]);
                groups::misuse_is_told("G3", [1, 3]);
                groups::who_has_left_is_told("G6 W8", [2, 3, 4, 5]);
                #[wraps(waits)]
                time::never_goes_back("T1 T2", [2]);
                #[wraps(waits)]
                time::deadlines("T2", [2]);
                time::computing("T3", [2]);
                #[wraps(memory)]
                existing::peers_reach_it("X1 X2 X3", [2, 3]);
                existing::own_registered_memory_is_source_and_sink("X2", [1, 3]);
                existing::atomics_are_done_or_refused("X5", [3]);
                existing::puts_and_notices_wake_the_owner("X2 X3", [2]);
                #[wraps(waits)]
                existing::taking_waits_for_who_is_inside("X4", [3]);
                existing::dropping_deregisters("X6", [2]);
                #[wraps(memory)]
                locked::keyless_memory_is_memory("K1", [1, 3]);
                #[wraps(errors)]
                locked::locked_regions_are_shut("K2 K4 K5", [1, 2]);
                locked::pacts_must_agree("K3", [2, 3]);
                #[wraps(memory)]
                locked::references_lead_to_the_same_bytes("K4 K5", [1, 3]);
                #[wraps(waits)]
                detach::is_run_to_its_end("D1 D2", [2, 5]);
                detach::may_detach_in_turn("D1 D3", [3]);
                #[wraps(waits)]
                triggered::puts_leave_in_whichever_wait("P1 P2 P3", [2, 3]);
                triggered::dropped_calls_put_nothing_twice("P3", [2, 3]);
                triggered::who_waits_is_woken_by_who_arms("P1", [2]);
                triggered::what_is_dropped_does_not_leave("P4", [1, 2]);
                gates::gates_refuse_misuse("B1 B2 B3 B4 B5", [1, 2]);
                gates::gates_separate("B6", [1, 2, 3, 4, 5]);
                gates::gates_need_no_cpu("B6", [2, 3]);
                #[wraps(units)]
                gates::gates_reduce("B7", [1, 2, 3, 4, 5]);
                gates::gates_sum_exactly("B8", [1, 2, 3, 5]);
                gates::gates_reduce_to_an_owner("B9", [1, 2, 3, 4]);
                gates::gates_are_many("B1 B6", [2, 4]);
                gates::gates_tell_mismatches("B10", [2, 3, 4]);
                gates::gates_tell_wrong_wires("B11", [2]);
                queues::opening("Q1", [1]);
                queues::completions_in_posting_order("Q2 Q3", [1, 2]);
                #[wraps(units)]
                queues::every_command_and_its_notices("Q2 Q3", [2]);
                queues::a_full_ring("Q4", [1]);
                queues::steering_tags("Q5 Q6", [1]);
                queues::delayed_starts("Q7", [1]);
                queues::a_flag_after_its_data("Q8", [2]);
                queues::too_many_notices("Q9", [2]);
                sessions::the_unit_is_the_slot("S1", [1]);
                sessions::which_commands_advance("S2 S3", [1]);
                sessions::early_credit_is_kept("S4 S5", [1]);
                sessions::several_posted_together("Q11", [1]);
                sessions::credit_wraps_or_is_an_error("S6", [1]);
                sessions::a_put_to_oneself("S7", [1]);
                sessions::arrivals_are_forwarded("S8", [2, 3, 6]);
                sessions::a_ring_runs_by_itself("S8", [1, 2, 4]);
                sessions::other_queues_ignore_credit("S9", [1]);
                sessions::closing_tells_what_never_started("S10", [1]);
                windows::windows_between_fences("O5 O6 G1", [1, 2, 3, 5]);
                windows::windows_posted_and_started("O5 O7 W2", [1, 2, 3]);
                windows::windows_locked("O5 O6 O8", [1, 3]);
            }
            losing {
                #[wraps(losses)]
                losses::waits_end("W3 W8 E1", [3]);
                losses::waits_for_others_go_on("W3", [3]);
                losses::a_satisfied_wait_still_ends_well("W4 E3", [2]);
                #[wraps(losses)]
                losses::notices_still_arrive("E3", [2]);
                #[wraps(losses)]
                losses::nothing_comes_after_a_loss("E4", [2, 3]);
                #[wraps(losses)]
                losses::operations_fail("E2 V2", [2, 3]);
                #[wraps(losses)]
                losses::posting_into_a_full_queue("E2 O12", [2, 3]);
                losses::barriers_end("W3 G1", [2, 4, 5]);
                losses::broadcasts_and_allgathers_end("W3 G2", [2, 4, 5]);
                #[wraps(losses)]
                losses::symmetric_allocation_ends("W3 M2", [2, 4]);
                losses::a_lock_and_its_holder("W3", [3]);
                losses::a_window_and_its_member("W3", [2, 3]);
                losses::control_queues("Q10 W3", [2, 3]);
                losses::triggered_puts_end("P5 W3", [3, 5]);
                gates::gates_end_with_a_loss("B12 W3", [2, 3, 4]);
            }
        }
    };
}

/// A test for each case over one provider, named `name::case`; with `wraps` for those cases only that are so marked.
macro_rules! conformance {
    ($name:ident, $provider:ty) => {
        every_case! { conformance! { tests $name, $provider, every } }
    };
    ($name:ident, $provider:ty, wraps) => {
        every_case! { conformance! { tests $name, $provider, wraps } }
    };
    (tests $name:ident, $provider:ty, $which:ident;
        plain { $($(#[wraps($why:ident)])? $room:ident::$case:ident($says:literal, $sizes:expr);)* }
        losing { $($(#[wraps($reason:ident)])? $lost:ident::$losing:ident($covers:literal, $among:expr);)* }
    ) => {
        mod $name {
            use super::*;
            use $crate::suite::provider::Provider as _;
            $(chosen! { $which $($why)?;
                #[test]
                fn $case() {
                    let test = concat!(stringify!($name), "::", stringify!($case));
                    <$provider>::check(&$sizes, test, &$crate::suite::$room::$case);
                }
            })*
            $(chosen! { $which $($reason)?;
                #[test]
                fn $losing() {
                    let program = |loss| async move |fabric| $crate::suite::$lost::$losing(fabric, loss).await;
                    <$provider>::check_losing(&$among, concat!(stringify!($name), "::", stringify!($losing)), program);
                }
            })*
        }
    };
}

/// A test, if it is one of those that are wanted.
macro_rules! chosen {
    (wraps; $test:item) => {};
    ($which:ident $($why:ident)?; $test:item) => {
        $test
    };
}
