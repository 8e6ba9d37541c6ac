//! Tests that need a process to themselves: of programs that this binary runs when it is started
//! with their name, of libraries whose callers own `main`, and of CPU time.

mod c_boundary;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod idle;
mod launch_options;

use process_tests::{
    Case, cases,
    child::{Child, Ended, this_program},
};
use std::process::{Command, ExitCode, Stdio};

/// Runs this program with these words.
fn run(words: &[&str]) -> Ended {
    run_command(this_program(words))
}

/// Runs a command, and reads its standard error too.
fn run_command(mut command: Command) -> Ended {
    command.stderr(Stdio::piped());
    Child::start(command).end()
}

/// Returns the command that runs the program of `command` with its words under these options of the
/// shell's `ulimit`.
#[cfg(target_os = "linux")]
fn limited(options: &str, command: &Command) -> Command {
    let script = format!("ulimit {options}; exec \"$0\" \"$@\"");
    let mut limited = process_tests::child::program("sh", ["-c", &script]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

#[cfg(target_os = "linux")]
fn cases_of_linux() -> Vec<Case> {
    cases![
        idle::waiting_burns_no_cpu,
        c_boundary::processes_pass_arrays_around_a_ring,
        c_boundary::a_lost_peer_is_an_error_code,
        c_boundary::a_rank_that_exits_without_closing_has_left,
        forks::forked_processes_are_not_the_guest,
        c_boundary::streams::closed_descriptors_are_not_reused,
        c_boundary::ranks_of_other_launchers_are_refused,
        cluster::here::ranks_synchronise_on_one_machine,
        cluster::here::a_cluster_of_one_rank_is_one_process,
        cluster::here::input_goes_to_rank_0,
        cluster::here::waiters_get_an_error_after_a_rank_is_killed,
        cluster::here::an_abort_ends_all_ranks,
        cluster::here::a_deadlock_is_reported_by_each_rank,
        cluster::here::a_killed_launcher_leaves_no_ranks,
        cluster::here::signals_to_the_launcher_end_all_ranks,
        cluster::here::operations_are_counted,
        cluster::here::a_launcher_killed_while_ranks_start_leaves_no_processes,
        cluster::here::memory_limits_are_errors,
        cluster::here::a_rank_without_memory_ends_the_job,
        cluster::here::signals_end_jobs_on_shared_memory,
        cluster::hosts::a_launcher_killed_while_hosts_start_leaves_no_processes,
        cluster::hosts::a_rank_that_ends_early_is_named_with_its_host,
        cluster::hosts::ranks_synchronise_across_hosts,
        cluster::hosts::named_variables_reach_ranks,
        cluster::hosts::hosts_select_the_fabric,
        cluster::hosts::input_goes_to_rank_0_on_the_first_host,
        cluster::hosts::a_killed_rank_of_a_host_is_reported_as_the_first,
        cluster::hosts::an_abort_ends_ranks_on_all_hosts,
        cluster::hosts::signals_to_the_launcher_end_ranks_on_all_hosts,
        cluster::hosts::hosts_that_fail_are_named,
        cluster::hosts::this_machine_needs_no_ssh,
        launch_options::ranks_start_through_the_dynamic_loader,
        launch_options::too_many_ranks_are_refused,
    ]
}

#[cfg(not(target_os = "linux"))]
fn cases_of_linux() -> Vec<Case> {
    Vec::new()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["c-program", kind] => return c_boundary::program(kind),
        #[cfg(target_os = "linux")]
        ["c-launch", kind] => return c_boundary::launch(kind),
        #[cfg(target_os = "linux")]
        ["forks-launch"] => return forks::launch(),
        #[cfg(target_os = "linux")]
        ["forks"] => return forks::guest(),
        #[cfg(target_os = "linux")]
        ["cluster-program", name, ..] => return cluster::program(name),
        ["program", name, ..] => return launch_options::program(name),
        _ => {}
    }
    let mut cases = cases_of_linux();
    cases.extend(cases![
        c_boundary::a_program_alone_passes_arrays_to_itself,
        c_boundary::threads_pass_arrays_around_a_ring,
        c_boundary::unusable_fabrics_are_refused_with_the_reason,
        launch_options::jitter_finds_a_missing_flush_that_seeds_do_not_find,
        launch_options::a_seed_and_a_jitter_determine_a_run,
        launch_options::wrong_options_are_refused,
        launch_options::each_form_of_the_number_of_ranks_is_accepted,
        launch_options::a_deadlock_is_reported_on_every_fabric,
    ]);
    process_tests::cases::run(cases)
}
