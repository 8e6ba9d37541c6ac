//! Processes of a killed case: their start, their end, and what they leave.

use crate::harness::{DIRECTORY, KILL};
use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Ten times as long as any case and the launcher's grace period take.
pub(super) const HANG: Duration = Duration::from_secs(60);

/// The time that a killed launcher's ranks may live on.
pub(super) const ORPHANS_END: Duration = Duration::from_secs(2);

/// Returns whether process `pid` was started for `directory`, directly or as a child of such a
/// process.
fn belongs(pid: &str, directory: &Path) -> bool {
    let wanted = format!("{DIRECTORY}={}", directory.display());
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// Returns the processes that were started for `directory` and still run.
pub(super) fn running(directory: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().into_string().ok());
    numbers.filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && belongs(name, directory)).collect()
}

pub(super) fn shared_memory_files() -> BTreeSet<String> {
    let all = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

pub(super) fn execute(case: &str, directory: &Path, kill: Option<String>) -> Child {
    fs::create_dir_all(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut command = Command::new(env::current_exe().expect("the running test has a path"));
    command.args(["--exact", &format!("conformance::processes::{case}"), "--quiet", "--test-threads=1"]);
    command.env(DIRECTORY, directory).env("RUST_BACKTRACE", "0");
    if let Some(kill) = kill {
        command.env(KILL, kill);
    }
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().expect("to execute the running test again")
}

/// Waits for the process, at most for `longest`. Returns whether it ended by itself.
pub(super) fn ends(child: &mut Child, longest: Duration) -> bool {
    let deadline = Instant::now() + longest;
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}
