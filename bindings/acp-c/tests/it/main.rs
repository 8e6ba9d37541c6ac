//! C programs, linked with the library and run with and without a launcher. Without arguments, or with
//! options of `cargo test`, this program runs the cases; with `launch` it is the launcher of a job.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod basic;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod exported;
#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod launchers;
#[cfg(target_os = "linux")]
mod middle;
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
    if words == ["figures-of-rust"] {
        figures::of_rust();
        return std::process::ExitCode::SUCCESS;
    }
    let mut all = cases![
        exported::the_functions_of_the_headers_are_exported,
        basic::processes_copy_and_count,
        basic::atomics_change_own_and_remote_words,
        basic::copies_keep_their_orders,
        basic::whatever_is_wrong_is_a_code,
        basic::reasons_are_printed_on_request,
        basic::ranks_are_permuted,
        basic::threads_call_at_the_same_time,
        basic::all_kinds_of_memory_are_registered,
        basic::nothing_is_wrong_under_the_address_sanitizer,
        basic::operations_are_recorded_on_request,
        basic::another_middle_layer_is_started_and_ended,
        basic::the_examples_run,
        launchers::acprun_starts_ranks,
        launchers::acprun_over_several_machines_is_refused,
        launchers::open_mpi_starts_ranks,
        launchers::variables_of_other_launchers_make_a_job,
        ends::a_loss_is_a_code_or_the_end,
        ends::kills_at_random_moments_leave_no_hang,
        ends::an_abort_ends_all_processes,
        ends::processes_may_end_without_acp_finalize,
        middle::channels_and_containers_work_between_processes,
        middle::every_function_is_called,
        middle::the_examples_echo_and_count,
        middle::a_lost_rank_is_a_failure,
        middle::containers_on_other_memory_return,
        virtual_time::equal_runs_take_equal_virtual_time,
        virtual_time::operations_take_the_time_of_the_machine,
        virtual_time::virtual_time_ends_with_its_ranks,
    ];
    // A measurement.
    all.extend(cases![figures::c_beside_rust].into_iter().map(Case::ignored));
    let code = process_tests::cases::run(all);
    tools::remove_programs();
    code
}
