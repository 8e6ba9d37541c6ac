//! Programs in C and Python that use the library, some of whose processes are killed.

#[cfg(target_os = "linux")]
mod programs;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    process_tests::cases::run(process_tests::cases![
        programs::all_names_and_no_others_are_exported,
        programs::codes_are_those_of_the_header,
        programs::every_error_has_its_code,
        programs::the_static_library_behaves_alike,
        programs::closed_standard_descriptors_stay_closed,
        programs::the_python_module_keeps_its_promises,
        programs::the_example_in_c_runs,
        programs::the_example_in_python_runs,
    ])
}
