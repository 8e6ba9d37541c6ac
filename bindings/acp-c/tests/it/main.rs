//! C programs, linked with the library and run with and without a launcher. Without arguments, or with
//! options of `cargo test`, this program runs the cases; with `launch` it is the launcher of a job.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod basic;
#[cfg(target_os = "linux")]
mod tools;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use process_tests::cases;

    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [launch, ranks, program, args @ ..] = &words[..]
        && launch == "launch"
    {
        return tools::launch(ranks.parse().expect("a number"), program, args);
    }
    let all = cases![basic::processes_copy_and_count];
    let code = process_tests::cases::run(all);
    tools::remove_programs();
    code
}
