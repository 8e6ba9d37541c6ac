//! Programs in C and Python that use the library, some of whose processes are killed.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
#[path = "../../../../crates/named-lock/tests/processes/watchdog.rs"]
#[allow(dead_code, reason = "shared with the tests of `named-lock`")]
mod watchdog;

#[cfg(target_os = "linux")]
const CASES: &[(&str, fn())] = &[
    ("all_names_and_no_others_are_exported", programs::all_names_and_no_others_are_exported),
    ("codes_are_those_of_the_header", programs::codes_are_those_of_the_header),
    ("every_mistake_has_its_code", programs::every_mistake_has_its_code),
    ("the_static_library_does_the_same", programs::the_static_library_does_the_same),
    ("closed_standard_descriptors_stay_closed", programs::closed_standard_descriptors_stay_closed),
    ("python_finds_what_it_is_promised", programs::python_finds_what_it_is_promised),
    ("the_example_in_c_does_as_it_says", programs::the_example_in_c_does_as_it_says),
    ("the_example_in_python_does_as_it_says", programs::the_example_in_python_does_as_it_says),
];

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // There are no long cases.
    if words.iter().any(|word| word == "--ignored") {
        return std::process::ExitCode::SUCCESS;
    }
    let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
    watchdog::start();
    let mut failed = 0;
    for (name, case) in CASES {
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
