//! Jobs whose ranks are processes, which are killed and stopped.
//!
//! Without arguments, or with parts of the names of cases, this program runs the cases. With
//! `rank`, `coordinator` or `found` it is one of their processes.
#![cfg(target_os = "linux")]

mod deaths;
mod found;
mod job;
mod part;
mod pmi;
mod ranks_found;
mod silence;
mod succession;

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

/// Each case with its name.
const CASES: &[(&str, fn())] = &[
    ("survivors_of_a_kill_get_the_same_resume", deaths::survivors_of_a_kill_get_the_same_resume),
    ("a_kill_during_the_drain_of_another", deaths::a_kill_during_the_drain_of_another),
    ("a_kill_of_who_has_drained_already", deaths::a_kill_of_who_has_drained_already),
    ("ranks_are_killed_one_after_the_other", deaths::ranks_are_killed_one_after_the_other),
    ("a_killed_coordinator_is_heard_of", deaths::a_killed_coordinator_is_heard_of),
    ("a_kill_before_all_have_come", deaths::a_kill_before_all_have_come),
    ("a_stopped_process_is_lost_after_the_lease", silence::a_stopped_process_is_lost_after_the_lease),
    ("the_smaller_side_of_a_cut_job_is_aborted", silence::the_smaller_side_of_a_cut_job_is_aborted),
    ("the_side_of_rank_0_goes_on_if_both_are_equal", silence::the_side_of_rank_0_goes_on_if_both_are_equal),
    ("a_coordinator_that_was_stopped_blames_nobody", silence::a_coordinator_that_was_stopped_blames_nobody),
    ("a_killed_coordinator_is_succeeded", succession::a_killed_coordinator_is_succeeded),
    ("nobody_succeeds_a_killed_launcher", succession::nobody_succeeds_a_killed_launcher),
    ("a_silent_coordinator_is_succeeded", succession::a_silent_coordinator_is_succeeded),
    ("the_larger_part_goes_on_without_the_coordinators_host", succession::the_larger_part_goes_on),
    ("the_smaller_part_ends_itself", succession::the_smaller_part_ends_itself),
    ("of_two_halves_that_of_rank_0_goes_on", succession::of_two_halves_that_of_rank_0_goes_on),
    ("the_job_is_cut_again_after_a_succession", succession::the_job_is_cut_again),
    ("ranks_find_each_other_by_pmi_1", found::ranks_find_each_other_by_pmi_1),
    ("ranks_find_each_other_under_mpiexec", found::ranks_find_each_other_under_mpiexec),
    ("a_coordinator_of_rank_0_outlives_it", found::a_coordinator_of_rank_0_outlives_it),
    ("a_coordinator_of_rank_0_is_succeeded", found::a_coordinator_of_rank_0_is_succeeded),
    ("a_rank_0_that_ends_before_it_joins_is_named", found::a_rank_0_that_ends_before_it_joins_is_named),
    ("an_unknown_interface_is_told_with_those_there_are", found::an_unknown_interface_is_told_with_those_there_are),
    ("ranks_find_each_other_by_torchruns_variables", found::ranks_find_each_other_by_torchruns_variables),
    (
        "ranks_of_this_crates_launcher_get_the_secret_by_a_pipe",
        found::ranks_of_this_crates_launcher_get_the_secret_by_a_pipe,
    ),
    ("a_pmi_launcher_is_spoken_to_in_bounds", found::a_pmi_launcher_is_spoken_to_in_bounds),
];

fn main() -> ExitCode {
    if let Some(code) = bootstrap::serve_if_asked() {
        return code;
    }
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "rank" || word == "coordinator") {
        part::play(&words);
        return ExitCode::SUCCESS;
    }
    if words.first().is_some_and(|word| word == "found") {
        ranks_found::play(&words);
        return ExitCode::SUCCESS;
    }
    let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(*filter));
    let none = words.iter().any(|word| word == "--ignored");
    let (mut count, mut failed) = (0, 0);
    for (name, case) in CASES.iter().filter(|(name, _)| wanted(name) && !none) {
        if words.iter().any(|word| word == "--list") {
            println!("{name}: test");
            continue;
        }
        let begun = Instant::now();
        let good = catch_unwind(AssertUnwindSafe(case)).is_ok();
        count += 1;
        failed += usize::from(!good);
        println!("test {name} ... {} ({} ms)", if good { "ok" } else { "FAILED" }, begun.elapsed().as_millis());
    }
    println!("{count} cases, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
