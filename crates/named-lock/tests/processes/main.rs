//! Real processes that share a lock by its name, some of them killed. With `role` this program is one
//! of the processes of a case; otherwise it runs the cases.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod crowds;
#[cfg(target_os = "linux")]
mod deaths;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod garbage;
#[cfg(target_os = "linux")]
mod generations;
#[cfg(target_os = "linux")]
mod half_way;
#[cfg(target_os = "linux")]
mod probes;
#[cfg(target_os = "linux")]
mod removals;
#[cfg(target_os = "linux")]
mod roles;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, name, path, args @ ..] = &words[..]
        && role == "role"
    {
        return roles::play(name, path.as_ref(), args);
    }
    let mut cases = process_tests::cases![
        deaths::waiters_get_an_error_after_a_writer_is_killed,
        deaths::repeated_short_waits_find_a_killed_writer,
        deaths::a_later_open_finds_a_killed_writer,
        deaths::a_try_finds_a_killed_writer,
        deaths::a_killed_reader_only_delays,
        deaths::a_killed_waiter_only_delays,
        deaths::a_killed_mender_leaves_torn_data,
        deaths::a_panic_leaves_torn_data,
        deaths::writers_killed_at_random_never_hang_the_others,
        deaths::more_deaths_than_a_file_has_room_for_are_an_error,
        crowds::sixteen_processes_count_together,
        crowds::readers_and_writers_exclude_each_other,
        crowds::many_processes_come_and_go,
        crowds::many_contending_processes_come_and_go,
        crowds::many_processes_come_and_go_while_a_reader_stays,
        crowds::an_open_waits_for_room_in_a_full_lock,
        crowds::simultaneous_first_opens_make_one_lock,
        files::foreign_files_are_refused,
        files::garbage_is_refused_or_reported,
        garbage::calls_keep_their_deadlines_with_garbage_in_the_file,
        files::a_name_is_a_file_in_the_users_directory,
        files::the_default_directory_does_not_depend_on_the_session,
        files::a_umask_does_not_change_the_modes,
        removals::every_acquisition_notices_a_removed_file,
        removals::the_next_file_continues_a_removed_one,
        removals::torn_data_stay_torn_when_their_file_is_removed,
        removals::an_open_respects_the_holder_in_any_removed_file,
        removals::an_open_that_cannot_search_is_refused,
        removals::files_that_are_moved_or_covered_are_noticed,
        removals::a_moved_directory_does_not_lead_to_two_locks,
        removals::a_waiter_gets_an_error_if_the_file_is_removed,
        removals::a_relative_path_is_resolved_once,
        removals::cleaners_leave_locks_alone,
        half_way::a_death_that_was_published_and_not_counted_is_counted,
        half_way::calls_killed_between_their_steps_hang_no_other_process,
        half_way::torn_data_name_the_last_writer_that_tore_them,
        half_way::a_next_file_that_was_left_behind_is_overwritten,
        half_way::an_epoch_opened_by_no_process_is_an_error,
        probes::a_killed_holder_is_noticed_without_pidfds,
        probes::a_process_that_cannot_probe_gets_an_error,
        forks::a_forked_child_must_open_the_lock_itself,
        threads::threads_exclude_each_other,
        threads::threads_continue_in_the_next_file,
        threads::deadlines_are_kept,
        generations::torn_data_stay_torn_in_the_next_file,
        generations::a_replacement_killed_half_way_is_continued,
        generations::a_file_of_another_boot_is_replaced,
    ];
    let long = process_tests::cases![
        removals::an_open_is_refused_while_a_removed_file_is_held,
        crowds::ten_thousand_processes_come_and_go,
    ];
    cases.extend(long.into_iter().map(process_tests::Case::ignored));
    process_tests::cases::run(cases)
}
