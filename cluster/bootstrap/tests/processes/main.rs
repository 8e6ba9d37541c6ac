//! Jobs whose ranks are processes, which are killed and stopped. With `role` this program is one of their
//! processes; otherwise it runs the cases.
#![cfg(target_os = "linux")]

mod deaths;
mod found;
mod job;
mod part;
mod pmi;
mod ranks_found;
mod silence;
mod starved;
mod succession;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    if let Some(code) = bootstrap::serve_if_asked() {
        return code;
    }
    let words: Vec<String> = env::args().skip(1).collect();
    if let [role, part @ ..] = &words[..]
        && role == "role"
    {
        match part {
            [name, words @ ..] if name == "found" => ranks_found::play(words),
            _ => part::play(part),
        }
        return ExitCode::SUCCESS;
    }
    process_tests::cases::run(process_tests::cases![
        deaths::survivors_of_a_kill_get_the_same_resume,
        deaths::a_rank_is_killed_during_the_drain_of_another,
        deaths::a_rank_that_has_drained_is_killed,
        deaths::ranks_are_killed_one_after_the_other,
        deaths::ranks_notice_a_killed_coordinator,
        deaths::a_rank_is_killed_before_all_have_joined,
        silence::a_stopped_process_is_lost_after_the_lease,
        silence::the_smaller_side_of_a_cut_job_is_aborted,
        silence::the_side_of_rank_0_continues_if_both_are_equal,
        silence::a_coordinator_that_was_stopped_loses_no_rank,
        starved::a_coordinator_without_descriptors_pauses,
        succession::a_killed_coordinator_is_succeeded,
        succession::a_killed_launcher_is_not_succeeded,
        succession::a_silent_coordinator_is_succeeded,
        succession::the_larger_part_continues_without_the_coordinators_host,
        succession::the_smaller_part_ends_itself,
        succession::of_two_halves_that_of_rank_0_continues,
        succession::a_job_is_cut_again_after_a_succession,
        found::ranks_find_each_other_by_pmi_1,
        found::ranks_find_each_other_under_mpiexec,
        found::a_coordinator_of_rank_0_outlives_it,
        found::a_coordinator_of_rank_0_is_succeeded,
        found::a_rank_0_that_ends_before_it_joins_is_named,
        found::an_error_about_an_unknown_interface_lists_the_existing_ones,
        found::ranks_find_each_other_by_torchruns_variables,
        found::ranks_of_this_crates_launcher_get_the_secret_through_a_pipe,
        found::a_pmi_client_keeps_its_limits_and_reports_errors,
    ])
}
