//! C programs, linked with the library and run with and without a launcher. Without arguments, or with
//! options of `cargo test`, this program runs the cases; with `launch` it is the launcher of a job.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod costs;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod exported;
#[cfg(target_os = "linux")]
mod launchers;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod strict;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod virtual_time;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use process_tests::{Case, cases};

    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = process_tests::jobs::asked(&words, tools::prepared) {
        return code;
    }
    let mut all = cases![
        exported::the_functions_of_the_header_are_exported,
        programs::every_function_has_its_results_and_codes,
        programs::session_queues_start_commands_by_credit_alone,
        programs::all_kinds_of_memory_are_registered,
        programs::processes_move_and_change_each_others_memory,
        programs::the_examples_run,
        programs::the_static_library_behaves_alike,
        programs::nothing_is_wrong_under_the_address_sanitizer,
        strict::each_undefined_use_is_reported,
        strict::wrong_settings_are_named,
        launchers::open_mpi_starts_ranks,
        launchers::variables_of_other_launchers_make_a_job,
        ends::a_loss_ends_polls,
        ends::kills_at_any_moment_leave_no_hang,
        virtual_time::equal_runs_take_equal_virtual_time,
        virtual_time::messages_take_the_time_of_the_machine,
        virtual_time::virtual_time_ends_with_its_ranks,
    ];
    // A measurement.
    all.extend(cases![costs::calls_cost_at_most_twice_those_in_rust].into_iter().map(Case::ignored));
    let code = process_tests::cases::run(all);
    tools::remove_programs();
    code
}
