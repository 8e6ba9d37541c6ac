//! Programs in C and Fortran, linked with the library and run with and without a launcher. Without
//! arguments, or with parts of cases' names, this program runs the cases; with `launch` it is the
//! launcher of a job.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod exported;
#[cfg(target_os = "linux")]
mod launcher;
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
const CASES: &[(&str, fn())] = &[
    ("all_names_and_no_others_are_exported", exported::all_names_and_no_others_are_exported),
    ("every_name_is_there_to_link_with", programs::every_name_is_there_to_link_with),
    ("every_routine_agrees_with_loops", programs::every_routine_agrees_with_loops),
    ("scalapack_finds_what_is_known", programs::scalapack_finds_what_is_known),
    ("grids_messages_and_combines_are_as_promised", programs::grids_messages_and_combines_are_as_promised),
    ("every_mistake_has_its_outcome", programs::every_mistake_has_its_outcome),
    ("arguments_of_any_kind_are_errors_at_most", programs::arguments_of_any_kind_are_errors_at_most),
    ("matrices_go_around_in_c", rings::matrices_go_around_in_c),
    ("matrices_go_around_in_fortran", rings::matrices_go_around_in_fortran),
    ("the_static_library_does_the_same", rings::the_static_library_does_the_same),
    ("the_examples_do_as_they_say", rings::the_examples_do_as_they_say),
    ("threads_call_one_after_the_other", rings::threads_call_one_after_the_other),
    ("registered_memory_comes_and_goes", rings::registered_memory_comes_and_goes),
    ("closed_descriptors_stay_the_programs_own", streams::closed_descriptors_stay_the_programs_own),
    ("a_lost_peer_is_named", ends::a_lost_peer_is_named),
    ("a_kept_message_system_begins_again", ends::a_kept_message_system_begins_again),
    ("processes_may_just_leave", ends::processes_may_just_leave),
    ("calls_after_the_end_are_refused", ends::calls_after_the_end_are_refused),
    ("a_deadlock_is_told", ends::a_deadlock_is_told),
    ("the_first_loss_is_named", ends::the_first_loss_is_named),
    ("an_abort_keeps_what_was_printed", ends::an_abort_keeps_what_was_printed),
    ("too_many_contexts_are_told_how_to_end_one", ends::too_many_contexts_are_told_how_to_end_one),
    ("thousands_of_grids_are_alive", many::thousands_of_grids_are_alive),
    ("other_launchers_are_refused", launchers::other_launchers_are_refused),
    ("mpirun_starts_one_process_only", launchers::mpirun_starts_one_process_only),
    ("what_there_is_no_room_for_is_told", ends::what_there_is_no_room_for_is_told),
    ("late_receivers_and_roots_elsewhere", mixes::late_receivers_and_roots_elsewhere),
    ("many_broadcasts_need_no_help_of_their_root", mixes::many_broadcasts_need_no_help_of_their_root),
];

/// Cases that take too long for every run; selected by `--ignored`.
#[cfg(target_os = "linux")]
const HEAVIER: &[(&str, fn())] = &[
    ("late_receivers_and_roots_elsewhere_in_a_loop", mixes::late_receivers_and_roots_elsewhere_in_a_loop),
    ("thousands_of_grids_are_used_in_all_scopes", many::thousands_of_grids_are_used_in_all_scopes),
];

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [launch, ranks, program, args @ ..] = &words[..]
        && launch == "launch"
    {
        return launcher::run(ranks.parse().expect("a number"), program, args);
    }
    let cases = if words.iter().any(|word| word == "--ignored") { HEAVIER } else { CASES };
    let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
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
        let passed = std::panic::catch_unwind(case).is_ok();
        println!("test {name} ... {} ({:.2?})", if passed { "ok" } else { "FAILED" }, began.elapsed());
        failed += u32::from(!passed);
    }
    tools::remove_programs();
    if failed == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::from(101) }
}
