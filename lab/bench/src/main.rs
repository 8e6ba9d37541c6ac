//! The benchmark tool's program.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return onesided_bench::run();
    #[cfg(not(target_os = "linux"))]
    {
        eprintln!("error: measurements need Linux");
        ExitCode::FAILURE
    }
}
