//! Programs in C and Fortran, linked with the library and run with and without a launcher. Without
//! arguments, or with options of `cargo test`, this program runs the cases; with `launch` it is
//! the launcher of a job.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod exported;
#[cfg(target_os = "linux")]
mod launchers;
#[cfg(target_os = "linux")]
mod many;
#[cfg(target_os = "linux")]
mod mixes;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod rings;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod virtual_time;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use process_tests::{Case, cases};

    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = process_tests::jobs::asked(&words, std::convert::identity) {
        return code;
    }
    let mut all = cases![
        exported::all_names_and_no_others_are_exported,
        programs::every_name_can_be_linked,
        programs::every_routine_agrees_with_loops,
        programs::scalapack_finds_known_results,
        programs::grids_messages_and_combines_keep_their_promises,
        programs::every_error_has_its_outcome,
        programs::generated_arguments_cause_errors_at_most,
        rings::matrices_go_around_in_c,
        rings::matrices_go_around_in_fortran,
        rings::the_static_library_behaves_alike,
        rings::the_examples_run,
        rings::threads_call_one_after_the_other,
        rings::registered_memory_comes_and_goes,
        streams::closed_descriptors_stay_the_programs_own,
        ends::a_lost_peer_is_named,
        ends::a_kept_message_system_starts_again,
        ends::processes_may_end_without_exit_calls,
        ends::calls_after_the_end_are_refused,
        ends::a_deadlock_is_reported,
        ends::the_first_loss_is_named,
        ends::an_abort_keeps_what_was_printed,
        ends::too_many_contexts_are_an_error_that_names_gridexit,
        many::thousands_of_grids_are_alive,
        launchers::other_launchers_are_refused,
        launchers::mpirun_starts_one_process_only,
        ends::lack_of_memory_is_reported,
        mixes::late_receivers_and_roots_elsewhere,
        mixes::many_broadcasts_complete_without_their_root,
        virtual_time::equal_runs_take_equal_virtual_time,
    ];
    // These take too long for every run.
    let long =
        cases![mixes::late_receivers_and_roots_elsewhere_in_a_loop, many::thousands_of_grids_are_used_in_all_scopes];
    all.extend(long.into_iter().map(Case::ignored));
    let code = process_tests::cases::run(all);
    tools::remove_programs();
    code
}
