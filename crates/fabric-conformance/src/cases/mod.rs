//! The cases, and the sentences of `docs/contract/fabric.md` that each of them covers. They do not
//! depend on a particular provider.

mod abort;
mod atomics;
mod blocks;
mod collective_losses;
mod colours;
mod commands;
mod copies;
mod deregistration;
mod detach;
mod existing;
mod fixture;
mod gate_errors;
mod gates;
mod groups;
mod helper_ends;
mod helpers;
mod loans;
mod loss_point;
mod losses;
mod memory;
mod multicast;
mod notices;
mod ordering;
mod parts;
mod posting;
mod prepared;
mod programs;
mod protected;
mod put_order;
mod queues;
mod sessions;
mod transfers;
mod triggered;
mod waiting;
mod windows;

use crate::{Loss, program::CaseRun};
use loss_point::only_the_loss;
use rdma_fabric::{Fabric, Group, Rank, Region, Result};

/// Creates the group of all ranks and a symmetric region, with which most cases start. Collective.
async fn world_and_region(fabric: &Fabric, bytes: usize) -> Result<(Group, Region)> {
    Ok((Group::world(fabric).await?, fabric.alloc_symmetric(bytes).await?))
}

/// Returns the other rank of this rank's pair, 2k and 2k + 1.
fn neighbour(fabric: &Fabric) -> Rank {
    Rank::new(fabric.rank().number() ^ 1)
}

/// A case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The name of its test.
    pub name: &'static str,
    /// The numbers of the contract's sentences that the case covers, separated by spaces, the main
    /// one first.
    pub sentences: &'static str,
    /// The numbers of ranks that the case runs with. It also supports any even number above the
    /// first.
    pub sizes: &'static [usize],
    pub(crate) program: Start,
}

impl Case {
    /// Returns whether the case loses its last rank on purpose, once in each of
    /// [`Harness::LOSSES`](crate::Harness::LOSSES).
    pub fn is_losing(&self) -> bool {
        matches!(self.program, Start::Losing(_))
    }

    /// Returns whether the case's last rank aborts the job, so that no rank succeeds.
    pub fn is_aborting(&self) -> bool {
        matches!(self.program, Start::Aborting(_))
    }
}

/// The function that starts a case on a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    Plain(fn(Fabric) -> CaseRun),
    /// A case whose last rank is lost in the given way.
    Losing(fn(Fabric, Loss) -> CaseRun),
    /// A case whose last rank aborts the job.
    Aborting(fn(Fabric) -> CaseRun),
}

/// Expands `then! { arguments; cases… }` with the list of all cases, in the order of the contract's
/// sentences.
///
/// A line is `plain module::case("sentences covered", [numbers of ranks]);`, or `losing …` where
/// the last rank is lost, `aborting …` where it aborts the job, or `optional …` where the provider
/// may lack the module's facility; the module's `is_missing` then checks that the provider reports
/// this. Likewise `atomic …`, `optional_atomic …` and `losing_atomic …` where the network may lack
/// atomics.
///
/// A line with `wraps` also applies to providers between a program and its fabric, because it
/// exercises their own code: the `memory` that they pass on, every kind of `operations` with its
/// buffers and handle, every kind of `waits`, `errors` and `losses` on their way out, and the
/// control queues and gates (`units`) that they wrap. The other cases would not test anything more
/// in such providers.
#[doc(hidden)]
#[macro_export]
macro_rules! __every_case {
    ([$($then:tt)*] $arguments:tt) => {
        $($then)*! { $arguments;
            plain memory::identity("I1 I2 I3", [1, 3], wraps memory);
            plain memory::regions_are_zeroed_and_whole("M1 M5 M6", [1], wraps memory);
            atomic memory::symmetric_regions_have_one_key("M2", [1, 4]);
            atomic deregistration::symmetric_parts_end_alone("M3 M8", [3]);
            plain deregistration::a_dropped_region_is_stale("M3 V2", [2], wraps errors);
            plain deregistration::a_drop_is_known_before_the_owners_next_put("M3", [2, 3]);
            plain deregistration::late_puts_land_nowhere("M3 O4", [2, 3]);
            plain memory::resolving_names_the_numbers("M4 W1", [2]);
            plain memory::written_meanwhile("M5", [2]);
            plain memory::loads_acquire_what_stores_release("M6 V5", [2]);
            plain memory::symmetric_sizes_must_agree("M7", [3], wraps errors);
            plain ordering::words_are_never_torn("M9 V5", [2]);
            atomic parts::parts_are_as_good_as_what_was_resolved_there("M10 M4 V4", [2], wraps memory);
            plain loans::a_loan_is_the_region("M11", [2]);
            optional existing::peers_reach_it("X1 X2 X3", [2, 3], wraps memory);
            optional existing::own_registered_memory_is_source_and_sink("X2", [1, 3]);
            optional existing::puts_and_notices_wake_the_owner("X2 X3", [2]);
            optional existing::taking_waits_for_who_is_inside("X4", [3], wraps waits);
            optional_atomic existing::atomics_are_done_or_refused("X5", [3]);
            optional existing::dropping_deregisters("X6", [2]);
            atomic protected::protected_memory_is_memory("K1", [1, 3], wraps memory);
            plain protected::locked_regions_are_shut("K2 K4 K5", [1, 2], wraps errors);
            plain protected::policies_must_agree("K3", [2, 3]);
            atomic protected::references_lead_to_the_same_bytes("K4 K5", [1, 3], wraps memory);
            plain protected::protected_local_memory_is_for_equal_policies("K6 K4", [1, 3], wraps memory);
            plain posting::nothing_is_lost_in_a_full_queue("O1 O12 N3", [3], wraps waits);
            plain posting::a_refused_operation_comes_back("O1 O10 M3 V6", [2], wraps operations);
            plain posting::own_queue_is_first_come_first_served("O2", [2]);
            atomic posting::many_operations_at_once("O2 O6", [3]);
            plain transfers::every_source_and_sink("O3 V4", [2], wraps operations);
            plain transfers::slices_are_lent("O3 O4 O10", [2]);
            atomic posting::test_await_and_wait("O3 V7", [2], wraps operations);
            atomic posting::a_dropped_handle_does_not_cancel("O4 V7", [2], wraps operations);
            plain posting::memory_in_flight_stays_alive("O4 V6", [2]);
            plain transfers::every_length_comes_round("O5 O8 O11 V2", [1, 2]);
            plain ordering::flushed_puts_precede_the_flag("O5 O8", [3]);
            atomic windows::windows_between_fences("O5 O6 G1", [1, 2, 3, 5]);
            plain windows::windows_posted_and_started("O5 O7 W2", [1, 2, 3]);
            atomic windows::windows_locked("O5 O6 O8", [1, 3]);
            atomic atomics::arithmetic_at_every_width("O6", [1, 2], wraps operations);
            atomic atomics::nothing_is_lost("O6", [4]);
            atomic atomics::one_winner("O6", [4]);
            atomic ordering::ordered_puts_precede_atomics("O7 I3", [3]);
            plain notices::empty_transfers("O9", [2]);
            plain posting::a_target_that_leaves("O12", [2]);
            plain transfers::errors_come_with_the_next_flush("O13", [2], wraps errors);
            plain transfers::long_transfers_are_split("O14", [2]);
            plain ordering::readers_agree_which_write_was_first("O15", [4]);
            plain copies::copies_are_gets_and_puts("O16 O10", [1, 2, 3], wraps operations);
            plain copies::third_party_copies("O16 O13 X2", [3], wraps operations);
            plain put_order::puts_become_visible_in_order("O17 I3", [2], wraps memory);
            plain atomics::are_there_as_told("O18", [1, 2], wraps errors);
            atomic prepared::is_posted_as_often_as_wanted("O19 V6", [1, 2], wraps operations);
            plain transfers::lent_bytes_are_taken_when_posted("O20 O1 O10 V6", [2], wraps operations);
            plain blocks::blocks_arrive_and_nothing_between("O21 O9 V11", [1, 2], wraps operations);
            plain blocks::blocks_between_blocks("O21 O11", [1]);
            plain blocks::blocks_precede_the_flag("O21 O5", [2], wraps operations);
            plain blocks::wrong_blocks_are_refused("O21 O10 M3", [2], wraps errors);
            plain blocks::blocks_of_existing_memory("O21 X2", [1, 2]);
            optional multicast::multicasts_say_what_they_cannot_reach("U1 U2 M3 M4", [1, 2, 3], wraps errors);
            optional multicast::multicasts_reach_every_member("U3 U2 U4 O3", [1, 2, 3, 4], wraps operations);
            optional multicast::multicasts_are_posted_like_puts("U3 O1 O4 O10", [1, 2, 4], wraps operations);
            optional multicast::multicasts_keep_the_order_of_puts("U4 O5 O17", [1, 3, 4]);
            plain notices::arrive_in_order_with_data("N1 N2 N3", [3], wraps operations);
            plain notices::width_is_checked("N4", [2]);
            atomic waiting::every_writer_wakes("W2 V3 V8", [2], wraps waits);
            plain waiting::two_waits_of_one_rank("W2", [2]);
            losing losses::waits_end("W3 W8 E1", [3], wraps losses);
            losing losses::waits_for_others_go_on("W3", [3]);
            losing collective_losses::barriers_end("W3 G1", [2, 4, 5]);
            losing collective_losses::broadcasts_and_allgathers_end("W3 G2", [2, 4, 5]);
            losing collective_losses::symmetric_allocation_ends("W3 M2", [2, 4], wraps losses);
            losing_atomic windows::a_lock_and_its_holder("W3", [3]);
            losing windows::a_window_and_its_member("W3", [2, 3]);
            plain waiting::a_satisfied_wait_ends_at_once("W4 V10", [2]);
            losing losses::a_satisfied_wait_still_ends_well("W4 E3", [2]);
            atomic waiting::a_dropped_wait_leaves_nothing("W5 V9", [2], wraps waits);
            plain waiting::nobody_is_left("W6 E1", [3], wraps errors);
            plain waiting::nobody_depends_on_himself("W7", [1, 2]);
            plain waiting::the_writer_has_left("W8", [3]);
            atomic waiting::never_goes_back("T1 T2", [2], wraps waits);
            plain waiting::deadlines("T2", [2], wraps waits);
            plain waiting::computing("T3", [2]);
            losing_atomic losses::operations_fail("E2 V2", [2, 3], wraps losses);
            losing copies::copies_fail("E2 O16", [3, 4], wraps losses);
            losing multicast::multicasts_fail("E2 U4", [2, 3], wraps losses);
            losing losses::posting_into_a_full_queue("E2 O12", [2, 3], wraps losses);
            losing losses::notices_still_arrive("E3", [2], wraps losses);
            losing_atomic losses::nothing_comes_after_a_loss("E4", [2, 3], wraps losses);
            aborting abort::every_rank_is_told_or_gone("E5", [1, 3], wraps losses);
            atomic detach::is_run_to_its_end("D1 D2", [2, 5], wraps waits);
            atomic detach::may_detach_in_turn("D1 D3", [3]);
            optional_atomic helpers::helpers_are_the_same_rank("H1 H4", [1, 3], wraps units);
            optional helpers::helpers_compute_beside_the_program("H2 T3", [1, 3]);
            optional_atomic helpers::program_and_helper_wake_each_other("H3 W7", [1, 2], wraps waits);
            optional helpers::helpers_are_woken_by_peers("H3", [2, 3]);
            optional helpers::queues_of_helpers("H4", [2]);
            optional helper_ends::helpers_end_with_their_rank("H5", [2, 3]);
            losing helper_ends::a_failed_helper_is_the_ranks_loss("H6", [2, 3]);
            optional_atomic helpers::futures_are_handed_on("H7", [1, 2, 3], wraps operations);
            plain triggered::puts_leave_in_whichever_wait("P1 P2 P3", [2, 3], wraps waits);
            plain triggered::who_waits_is_woken_by_who_arms("P1", [2]);
            plain triggered::dropped_calls_put_nothing_twice("P3", [2, 3]);
            plain triggered::what_is_dropped_does_not_leave("P4", [1, 2]);
            losing losses::triggered_puts_end("P5 W3", [3, 5]);
            plain groups::barriers_separate("G1", [1, 2, 3, 4, 5]);
            plain groups::barriers_publish_what_was_flushed("G1", [3], wraps waits);
            plain groups::broadcast_from_everywhere("G2", [1, 2, 3, 4, 5]);
            plain groups::allgather_in_member_order("G2", [1, 2, 3, 4, 5]);
            plain groups::splits_number_by_order("G2", [1, 2, 3, 4, 5]);
            plain groups::misuse_is_told("G3", [1, 3]);
            atomic groups::memory_of_a_group("G4", [1, 2, 3, 4, 5]);
            plain groups::the_greatest_of_all("G5", [1, 2, 3, 4, 5]);
            atomic groups::who_has_left_is_told("G6 W8", [2, 3, 4, 5]);
            plain groups::setup_words_are_left_alone("G7", [1, 2, 3, 4, 5]);
            plain queues::opening("Q1", [1]);
            plain queues::completions_in_posting_order("Q2 Q3", [1, 2]);
            plain commands::every_command_and_its_notices("Q2 Q3", [2], wraps units);
            plain queues::a_full_ring("Q4", [1]);
            plain commands::steering_tags("Q5 Q6", [1]);
            plain queues::delayed_starts("Q7", [1]);
            plain queues::a_flag_after_its_data("Q8", [2]);
            plain queues::too_many_notices("Q9", [2]);
            losing losses::control_queues("Q10 W3", [2, 3]);
            plain sessions::several_posted_together("Q11", [1]);
            plain programs::repeated_programs("Q12", [1, 2]);
            plain sessions::the_unit_is_the_slot("S1", [1]);
            plain sessions::which_commands_advance("S2 S3", [1]);
            plain sessions::early_credit_is_kept("S4 S5", [1]);
            plain sessions::credit_wraps_or_is_an_error("S6", [1]);
            plain sessions::a_put_to_oneself("S7", [1]);
            plain sessions::arrivals_are_forwarded("S8", [2, 3, 6]);
            plain sessions::a_ring_runs_by_itself("S8", [1, 2, 4]);
            plain sessions::other_queues_ignore_credit("S9", [1]);
            plain sessions::closing_tells_what_never_started("S10", [1]);
            optional gate_errors::gates_refuse_misuse("B1 B2 B3 B4 B5", [1, 2]);
            optional gates::gates_are_many("B1 B6", [2, 4]);
            optional gates::gates_separate("B6", [1, 2, 3, 4, 5]);
            optional gates::gates_need_no_cpu("B6", [2, 3]);
            optional gates::gates_reduce("B7", [1, 2, 3, 4, 5], wraps units);
            optional gates::gates_sum_exactly("B8", [1, 2, 3, 5]);
            optional gates::gates_reduce_to_an_owner("B9", [1, 2, 3, 4]);
            optional gate_errors::gates_tell_mismatches("B10", [2, 3, 4]);
            optional gate_errors::gates_tell_wrong_wires("B11", [2]);
            losing gate_errors::gates_end_with_a_loss("B12 W3", [2, 3, 4]);
            plain colours::colours_are_there_or_refused("C1", [1, 2], wraps units);
            optional colours::colours_are_claimed_together("C2 C3", [1, 2, 3], wraps units);
            optional colours::colours_separate("C4", [1, 2, 3], wraps units);
            optional colours::colours_given_back_end_it("C5", [2, 3]);
            losing colours::colours_end_with_a_loss("C6 W3", [2, 3], wraps losses);
        }
    };
}

macro_rules! table {
    ([]; $($kind:ident $room:ident::$case:ident($says:literal, $sizes:expr $(, wraps $_why:ident)?);)*) => {
        /// All cases, in the order of the contract's sentences.
        pub static CASES: &[Case] = &[
            $(Case { name: stringify!($case), sentences: $says, sizes: &$sizes, program: start!($kind $room::$case) },)*
        ];
    };
}

macro_rules! start {
    (plain $room:ident::$case:ident) => {
        Start::Plain(|fabric| Box::pin(async move { $room::$case(fabric).await.map(|()| String::new()) }))
    };
    (atomic $room:ident::$case:ident) => {
        Start::Plain(|fabric| {
            Box::pin(async move {
                if !atomics::are_missing(&fabric).await? {
                    $room::$case(fabric).await?;
                }
                Ok(String::new())
            })
        })
    };
    (optional_atomic $room:ident::$case:ident) => {
        Start::Plain(|fabric| {
            Box::pin(async move {
                if !atomics::are_missing(&fabric).await? && !$room::is_missing(&fabric)? {
                    $room::$case(fabric).await?;
                }
                Ok(String::new())
            })
        })
    };
    (losing_atomic $room:ident::$case:ident) => {
        Start::Losing(|fabric, loss| {
            Box::pin(async move {
                if !atomics::are_missing(&fabric).await? {
                    return $room::$case(fabric, loss).await.map(|()| String::new());
                }
                only_the_loss(&fabric, loss).await.map(|()| String::new())
            })
        })
    };
    (optional $room:ident::$case:ident) => {
        Start::Plain(|fabric| {
            Box::pin(async move {
                if !$room::is_missing(&fabric)? {
                    $room::$case(fabric).await?;
                }
                Ok(String::new())
            })
        })
    };
    (aborting $room:ident::$case:ident) => {
        Start::Aborting(|fabric| Box::pin(async move { $room::$case(fabric).await.map(|()| String::new()) }))
    };
    (losing $room:ident::$case:ident) => {
        Start::Losing(|fabric, loss| Box::pin(async move { $room::$case(fabric, loss).await.map(|()| String::new()) }))
    };
}

__every_case! { [table] [] }
