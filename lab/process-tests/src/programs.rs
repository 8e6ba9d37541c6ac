//! Programs in other languages that are linked with a library of a package.

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

/// The libraries that a static library written in Rust requires on Linux.
pub const NATIVE_LIBRARIES: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Returns the folder in which Cargo has put this program and the libraries of its package.
///
/// # Panics
/// If the system does not report the path of this program.
pub fn libraries() -> PathBuf {
    let own = env::current_exe().expect("the path of this program");
    own.parent().expect("a folder").to_owned()
}

/// Returns whether a tool is installed. If not, prints that the case is skipped.
pub fn is_installed(tool: &str) -> bool {
    let ran = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_installed = ran.is_ok_and(|status| status.success());
    if !is_installed {
        println!("    SKIPPED: there is no `{tool}`");
    }
    is_installed
}
