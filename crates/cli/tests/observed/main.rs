//! Observed and bound jobs, as users start them. With `program NAME`, this program is a rank or starts
//! ranks. Without that, it is the test, which runs itself both under the command and directly.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod programs;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().is_some_and(|first| first == "program") {
        return programs::main(&arguments.next().expect("the name of a program"));
    }
    process_tests::cases::run(process_tests::cases![
        cases::help_is_printed_and_unknown_arguments_are_refused,
        cases::counts_are_exact,
        cases::stats_are_printed_as_a_table,
        cases::traces_contain_every_operation,
        cases::observation_does_not_change_virtual_time,
        cases::killed_ranks_are_missing_and_no_records_are_left,
        cases::operations_of_failed_ranks_are_counted,
        cases::missing_observations_are_reported,
        cases::ranks_run_on_the_cpus_that_they_are_bound_to,
        cases::the_end_of_each_rank_is_printed_in_every_mode,
        cases::a_full_device_is_an_error,
        cases::empty_settings_are_refused,
        cases::invalid_faults_are_refused,
        jobs::an_abort_is_printed_once_and_determines_the_exit_code,
        jobs::options_of_queues_reach_the_ranks,
    ])
}
