//! Tests that need a process to themselves: of programs that this binary runs when it is started
//! with their name, of libraries whose callers own `main`, and of CPU time.
//!
//! Without a program's name, the binary runs, one after the other, the cases whose names contain
//! its first argument.

mod c_boundary;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod idle;
mod launch_options;

use fabric_conformance::watchdog::watch;
use std::process::{Command, ExitCode, Output};

/// Runs this binary with these words, without the settings of a surrounding job. Also returns its
/// output, standard output first.
fn started(words: &[&str]) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    for setting in ["ONESIDED_JOB", "ONESIDED_SEGMENT_BYTES", "ONESIDED_STUCK_AFTER"] {
        command.env_remove(setting);
    }
    let output = command.args(words).output().expect("this binary is there");
    let written = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output, written)
}

const CASES: &[(&str, fn())] = &[
    #[cfg(target_os = "linux")]
    ("waiting_burns_no_cpu", idle::waiting_burns_no_cpu),
    #[cfg(target_os = "linux")]
    ("processes_pass_arrays_on", c_boundary::processes_pass_arrays_on),
    #[cfg(target_os = "linux")]
    ("a_lost_peer_is_a_code", c_boundary::a_lost_peer_is_a_code),
    #[cfg(target_os = "linux")]
    ("who_exits_without_closing_has_left", c_boundary::who_exits_without_closing_has_left),
    ("a_program_alone_passes_arrays_to_itself", c_boundary::a_program_alone_passes_arrays_to_itself),
    #[cfg(target_os = "linux")]
    ("forked_processes_are_not_the_guest", forks::forked_processes_are_not_the_guest),
    #[cfg(target_os = "linux")]
    ("closed_descriptors_are_not_taken", c_boundary::streams::closed_descriptors_are_not_taken),
    #[cfg(target_os = "linux")]
    ("ranks_of_other_launchers_are_refused", c_boundary::ranks_of_other_launchers_are_refused),
    ("threads_pass_arrays_on", c_boundary::threads_pass_arrays_on),
    ("what_is_no_fabric_for_it_is_told", c_boundary::what_is_no_fabric_for_it_is_told),
    #[cfg(target_os = "linux")]
    ("cluster::ranks_meet_on_one_machine", cluster::here::ranks_meet_on_one_machine),
    #[cfg(target_os = "linux")]
    ("cluster::a_cluster_of_one_rank_is_one_process", cluster::here::a_cluster_of_one_rank_is_one_process),
    #[cfg(target_os = "linux")]
    ("cluster::input_goes_to_the_first", cluster::here::input_goes_to_the_first),
    #[cfg(target_os = "linux")]
    ("cluster::who_waits_for_a_killed_rank_is_told", cluster::here::who_waits_for_a_killed_rank_is_told),
    #[cfg(target_os = "linux")]
    ("cluster::an_abort_ends_all", cluster::here::an_abort_ends_all),
    #[cfg(target_os = "linux")]
    ("cluster::who_waits_for_each_other_is_told", cluster::here::who_waits_for_each_other_is_told),
    #[cfg(target_os = "linux")]
    ("cluster::a_killed_launcher_leaves_nobody", cluster::here::a_killed_launcher_leaves_nobody),
    #[cfg(target_os = "linux")]
    ("cluster::signals_to_the_launcher_end_all", cluster::here::signals_to_the_launcher_end_all),
    #[cfg(target_os = "linux")]
    ("cluster::what_ranks_did_is_counted", cluster::here::what_ranks_did_is_counted),
    #[cfg(target_os = "linux")]
    (
        "cluster::a_launcher_killed_while_ranks_start_leaves_nobody",
        cluster::here::a_launcher_killed_while_ranks_start_leaves_nobody,
    ),
    #[cfg(target_os = "linux")]
    ("cluster::limits_of_memory_are_errors", cluster::here::limits_of_memory_are_errors),
    #[cfg(target_os = "linux")]
    (
        "cluster::who_waits_for_memory_of_a_failed_rank_is_told",
        cluster::here::who_waits_for_memory_of_a_failed_rank_is_told,
    ),
    #[cfg(target_os = "linux")]
    ("cluster::signals_have_their_effect_on_shared_memory", cluster::here::signals_have_their_effect_on_shared_memory),
    #[cfg(target_os = "linux")]
    (
        "cluster::a_launcher_killed_while_hosts_start_leaves_nobody",
        cluster::hosts::a_launcher_killed_while_hosts_start_leaves_nobody,
    ),
    #[cfg(target_os = "linux")]
    (
        "cluster::a_rank_that_does_not_come_is_named_with_its_host",
        cluster::hosts::a_rank_that_does_not_come_is_named_with_its_host,
    ),
    #[cfg(target_os = "linux")]
    ("cluster::ranks_of_hosts_meet", cluster::hosts::ranks_of_hosts_meet),
    #[cfg(target_os = "linux")]
    ("cluster::input_goes_to_the_first_of_the_first_host", cluster::hosts::input_goes_to_the_first_of_the_first_host),
    #[cfg(target_os = "linux")]
    ("cluster::a_killed_rank_of_a_host_is_the_first", cluster::hosts::a_killed_rank_of_a_host_is_the_first),
    #[cfg(target_os = "linux")]
    ("cluster::an_abort_ends_all_hosts", cluster::hosts::an_abort_ends_all_hosts),
    #[cfg(target_os = "linux")]
    ("cluster::ends_of_the_launcher_reach_all_hosts", cluster::hosts::ends_of_the_launcher_reach_all_hosts),
    #[cfg(target_os = "linux")]
    ("cluster::hosts_that_fail_are_named", cluster::hosts::hosts_that_fail_are_named),
    #[cfg(target_os = "linux")]
    ("cluster::this_machine_needs_no_ssh", cluster::hosts::this_machine_needs_no_ssh),
    ("jitter_shows_what_seeds_alone_do_not", launch_options::jitter_shows_what_seeds_alone_do_not),
    ("a_seed_and_a_jitter_are_a_run", launch_options::a_seed_and_a_jitter_are_a_run),
    ("wrong_amounts_are_refused", launch_options::wrong_amounts_are_refused),
    ("ranks_are_given_as_everywhere", launch_options::ranks_are_given_as_everywhere),
    #[cfg(target_os = "linux")]
    ("ranks_start_through_a_loader", launch_options::ranks_start_through_a_loader),
    #[cfg(target_os = "linux")]
    ("more_ranks_than_there_is_room_for_are_refused", launch_options::more_ranks_than_there_is_room_for_are_refused),
    ("a_deadlock_is_told_on_every_fabric", launch_options::a_deadlock_is_told_on_every_fabric),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["c-program", what] => return c_boundary::program(what),
        #[cfg(target_os = "linux")]
        ["c-launch", what] => return c_boundary::launch(what),
        #[cfg(target_os = "linux")]
        ["forks-launch"] => return forks::launch(),
        #[cfg(target_os = "linux")]
        ["forks"] => return forks::guest(),
        #[cfg(target_os = "linux")]
        ["cluster-program", name, ..] => return cluster::program(name),
        ["program", name, ..] => return launch_options::program(name),
        _ => {}
    }
    for (name, case) in CASES {
        if words.first().is_none_or(|filter| filter.starts_with("--") || name.contains(filter)) {
            let watched = watch(*name);
            case();
            drop(watched);
            println!("{name} ... ok");
        }
    }
    ExitCode::SUCCESS
}
