//! Ranks that are processes, deaths, and limits of a process: the tests that need separate
//! processes. Arguments select a role of one of these processes; without a role this program runs the
//! cases.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod abort;
#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod exhaustion;
#[cfg(target_os = "linux")]
mod existing;
#[cfg(target_os = "linux")]
mod filtered;
#[cfg(target_os = "linux")]
mod guests;
#[cfg(target_os = "linux")]
mod helpers;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod rank_taken;
#[cfg(target_os = "linux")]
mod ranks;
#[cfg(target_os = "linux")]
mod stuck;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["launch", ranks, scenario] => jobs::launch(ranks.parse().expect("a number"), scenario),
        ["rank", scenario] => ranks::rank(scenario),
        ["launch-script", ranks, script] => rank_taken::launch_script(ranks, script),
        ["taken", scenario] => rank_taken::rank(scenario),
        ["limited", scenario] => exhaustion::limited(scenario),
        ["group-rank", part] => exhaustion::group_rank(part),
        ["large-rank"] => exhaustion::large_rank(),
        ["refuse-signals", error] => filtered::launch(error),
        ["aborted", ranks] => abort::launch(ranks),
        ["aborts"] => abort::rank(),
        ["guest", part] => guests::guest(part),
        ["aborted-guests"] => guests::launch_aborted(),
        ["waits", scenario] => stuck::waiting_rank(scenario),
        _ => {
            let mut cases = process_tests::cases![
                helpers::program_and_helper_play_ping_pong,
                helpers::a_rank_killed_with_its_helper_is_lost,
                helpers::a_helper_that_fails_fails_its_rank,
                jobs::all_work_together,
                jobs::more_ranks_than_cpus,
                jobs::memory_is_reserved_and_freed,
                jobs::existing_memory_outlives_its_users,
                jobs::stderr_lines_carry_their_rank,
                jobs::stdin_goes_to_rank_0,
                jobs::the_exit_code_is_that_of_the_first_failure,
                jobs::others_are_killed_after_a_grace_period,
                jobs::a_rank_that_ends_midway_with_code_0_has_failed,
                jobs::unread_stderr_does_not_block_a_job,
                jobs::signals_to_the_launcher_end_all,
                jobs::ranks_die_with_the_launcher,
                jobs::a_job_that_cannot_start_is_an_error,
                jobs::no_file_is_left_open,
                jobs::a_damaged_variable_is_refused,
                jobs::ranks_have_variables_against_signal_handlers,
                rank_taken::at_once,
                rank_taken::one_after_the_other,
                rank_taken::executed,
                rank_taken::late,
                rank_taken::forged,
                rank_taken::many_ranks,
                rank_taken::orphaned,
                exhaustion::processes_with_large_regions,
                exhaustion::group_of_256_mib,
                filtered::ranks_are_killed_without_pidfd_send_signal,
                stuck::a_deadlock_of_processes_is_reported,
                stuck::a_deadlock_of_programs_and_helpers_is_reported,
                stuck::a_long_computation_is_no_deadlock,
                stuck::a_stopped_process_is_no_deadlock,
                stuck::a_rank_of_one_thread_can_be_stuck,
                abort::an_abort_ends_ranks_that_make_no_call,
                guests::a_attached_process_that_exits_with_0_has_left,
                guests::a_attached_process_that_ends_otherwise_is_lost,
                guests::the_exit_code_of_a_script_decides_for_its_guest,
                guests::a_attached_process_that_makes_no_calls_does_not_block_the_others,
                guests::registered_memory_ends_with_its_process,
                guests::a_guest_without_a_launcher_is_a_job_of_one,
                guests::a_damaged_setting_is_refused,
                guests::an_abort_ends_all_guests,
            ];
            cases.extend(exhaustion::limited_cases());
            process_tests::cases::run(cases)
        }
    }
}
