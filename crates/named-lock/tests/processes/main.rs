//! Real processes that share a lock by its name, some of them killed. Without arguments, or with parts
//! of cases' names, this program runs the cases; with `role` it is one of their processes.

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
mod watchdog;

#[cfg(target_os = "linux")]
const CASES: &[(&str, fn())] = &[
    ("a_killed_writer_is_told_to_those_who_wait", deaths::a_killed_writer_is_told_to_those_who_wait),
    (
        "a_killed_writer_is_told_to_those_who_wait_in_slices",
        deaths::a_killed_writer_is_told_to_those_who_wait_in_slices,
    ),
    ("a_killed_writer_is_told_to_those_who_come_later", deaths::a_killed_writer_is_told_to_those_who_come_later),
    ("a_try_finds_a_killed_writer", deaths::a_try_finds_a_killed_writer),
    ("a_killed_reader_only_delays", deaths::a_killed_reader_only_delays),
    ("a_killed_waiter_only_delays", deaths::a_killed_waiter_only_delays),
    ("a_killed_mender_leaves_torn_data", deaths::a_killed_mender_leaves_torn_data),
    ("a_panic_leaves_torn_data", deaths::a_panic_leaves_torn_data),
    ("writers_killed_at_random_never_hang_the_others", deaths::writers_killed_at_random_never_hang_the_others),
    ("more_deaths_than_there_is_room_for_are_told", deaths::more_deaths_than_there_is_room_for_are_told),
    ("sixteen_processes_count_together", crowds::sixteen_processes_count_together),
    ("readers_and_writers_exclude_each_other", crowds::readers_and_writers_exclude_each_other),
    ("many_processes_come_and_go", crowds::many_processes_come_and_go),
    ("many_that_contend_come_and_go", crowds::many_that_contend_come_and_go),
    ("many_come_and_go_beside_a_reader_that_stays", crowds::many_come_and_go_beside_a_reader_that_stays),
    ("a_full_lock_is_told", crowds::a_full_lock_is_told),
    ("founders_that_meet_make_one_lock", crowds::founders_that_meet_make_one_lock),
    ("foreign_files_are_refused", files::foreign_files_are_refused),
    ("garbage_is_refused_or_told", files::garbage_is_refused_or_told),
    ("calls_keep_their_deadline_whatever_the_file_holds", garbage::calls_keep_their_deadline_whatever_the_file_holds),
    ("names_lead_to_the_users_directory", files::names_lead_to_the_users_directory),
    ("the_default_place_is_the_users_whatever_the_session", files::the_default_place_is_the_users_whatever_the_session),
    ("a_umask_takes_nothing_away", files::a_umask_takes_nothing_away),
    ("every_acquisition_notices_a_removed_file", removals::every_acquisition_notices_a_removed_file),
    ("a_removed_file_is_continued_by_the_next_one", removals::a_removed_file_is_continued_by_the_next_one),
    ("torn_data_stay_torn_when_their_file_is_removed", removals::torn_data_stay_torn_when_their_file_is_removed),
    ("an_open_respects_the_holder_in_any_removed_file", removals::an_open_respects_the_holder_in_any_removed_file),
    ("an_open_that_cannot_search_is_refused", removals::an_open_that_cannot_search_is_refused),
    ("files_that_are_moved_or_covered_are_noticed", removals::files_that_are_moved_or_covered_are_noticed),
    (
        "no_second_file_is_used_beside_one_whose_directory_was_moved",
        removals::no_second_file_is_used_beside_one_whose_directory_was_moved,
    ),
    ("a_waiting_process_is_refused_a_removed_lock", removals::a_waiting_process_is_refused_a_removed_lock),
    ("a_relative_path_stays_what_it_was", removals::a_relative_path_stays_what_it_was),
    ("cleaners_leave_locks_alone", removals::cleaners_leave_locks_alone),
    (
        "a_death_that_was_published_and_not_counted_is_counted",
        half_way::a_death_that_was_published_and_not_counted_is_counted,
    ),
    (
        "calls_that_are_killed_between_their_steps_hang_nobody",
        half_way::calls_that_are_killed_between_their_steps_hang_nobody,
    ),
    ("who_tore_the_data_is_the_last_that_did", half_way::who_tore_the_data_is_the_last_that_did),
    ("a_next_file_that_was_left_behind_is_made_anew", half_way::a_next_file_that_was_left_behind_is_made_anew),
    ("an_opening_by_nobody_is_an_error", half_way::an_opening_by_nobody_is_an_error),
    ("a_killed_holder_is_noticed_without_pidfds", probes::a_killed_holder_is_noticed_without_pidfds),
    ("a_process_that_cannot_probe_is_told", probes::a_process_that_cannot_probe_is_told),
    ("a_child_must_open_anew", forks::a_child_must_open_anew),
    ("threads_exclude_each_other", threads::threads_exclude_each_other),
    ("threads_go_on_in_the_next_file", threads::threads_go_on_in_the_next_file),
    ("deadlines_are_kept", threads::deadlines_are_kept),
    ("torn_data_stay_torn_in_the_next_file", generations::torn_data_stay_torn_in_the_next_file),
    ("a_founder_killed_half_way_is_replaced", generations::a_founder_killed_half_way_is_replaced),
    ("a_file_of_another_boot_is_replaced", generations::a_file_of_another_boot_is_replaced),
];

/// Cases that run only occasionally.
#[cfg(target_os = "linux")]
const LONG: &[(&str, fn())] = &[
    (
        "an_open_beside_a_holder_whose_file_was_removed_is_refused",
        removals::an_open_beside_a_holder_whose_file_was_removed_is_refused,
    ),
    ("ten_thousand_processes_come_and_go", crowds::ten_thousand_processes_come_and_go),
];

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, name, path, args @ ..] = &words[..]
        && role == "role"
    {
        return roles::play(name, path.as_ref(), args);
    }
    let cases = if words.iter().any(|word| word == "--ignored") { LONG } else { CASES };
    let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
    watchdog::start();
    let mut failed = 0;
    for (name, case) in cases {
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(*filter)) {
            continue;
        }
        if words.iter().any(|word| word == "--list") {
            println!("{name}: test");
            continue;
        }
        let began = std::time::Instant::now();
        let passed = watchdog::watched(name, || std::panic::catch_unwind(case)).is_ok();
        println!("test {name} ... {} ({:.2?})", if passed { "ok" } else { "FAILED" }, began.elapsed());
        failed += u32::from(!passed);
    }
    if failed == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::from(101) }
}
