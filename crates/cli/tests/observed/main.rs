//! Observed and bound jobs, as users start them. This program plays two parts: with `program NAME`
//! it is a rank, or starts ranks; without that, it is the test, which runs itself both under the
//! command and directly.

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("program") => programs::main(&arguments[1]),
        _ => cases::main(&arguments),
    }
}
