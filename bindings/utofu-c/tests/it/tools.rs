//! Compiled programs, and the jobs that run them.

use process_tests::{
    child::{self, Ended, HANG},
    jobs::launched,
    programs::{Compilation, Linkage, ended_within, next_in, own_folder},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tofu2_shm::Launcher;

/// Bytes that a rank can register; unused ones take no memory.
const SEGMENT: usize = 4 << 30;

/// Adds to the settings of a job over shared memory.
pub(crate) fn prepared(launcher: Launcher) -> Launcher {
    launcher.segment_bytes(SEGMENT).grace(Duration::from_secs(1)).stuck_after(Some(tofu2_shm::DEFAULT_STUCK_AFTER))
}

/// Options of the address sanitizer. The programs end with memory in use. What gives addresses names is a
/// process that it forks, which must not run on a registered stack.
const ASAN: &str = "detect_leaks=0:symbolize=0";

/// Returns the folder of this process's programs.
fn folder() -> PathBuf {
    own_folder(env!("CARGO_TARGET_TMPDIR"), "utofu")
}

/// Removes all programs.
pub(crate) fn remove_programs() {
    let _ = fs::remove_dir_all(folder());
}

fn unique() -> PathBuf {
    next_in(&folder())
}

/// The folder of the examples, whose header the other programs include too.
const EXAMPLES: &str = "../../examples/c";

/// Compiles a program of this package, or an example if it is called `utofu_…`; `None` without a
/// compiler.
pub(crate) fn compiled(name: &str, linkage: Linkage) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compilation = Compilation::new(package, &[&source(name)], &unique())?;
    compilation.args([Path::new("-I"), package.join(EXAMPLES).as_path()]);
    compilation.link("tofucom", linkage);
    Some(compilation.args(["-lm", "-lpthread"]).compile())
}

fn source(name: &str) -> String {
    if name.starts_with("utofu_") { format!("{EXAMPLES}/{name}.c") } else { format!("tests/own/{name}.c") }
}

/// Compiles a program with another compiler, which adds `flags`; `None` if it fails, or is not installed.
pub(crate) fn compiled_by(compiler: &str, flags: &[&str], name: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compilation = Compilation::by(compiler, package, &[&source(name)], &unique())?;
    compilation.args([Path::new("-I"), package.join(EXAMPLES).as_path()]);
    compilation.link("tofucom", Linkage::Shared).args(["-g", "-lm", "-lpthread"]).compile_with(flags)
}

/// Runs a program as `ranks` ranks.
pub(crate) fn job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    let mut command = launched(ranks, program, args);
    command.env("ASAN_OPTIONS", ASAN);
    ended(command)
}

/// Runs a program without a launcher.
pub(crate) fn alone(program: &Path, args: &[&str]) -> Ended {
    let mut command = child::program(program, args);
    command.env("ASAN_OPTIONS", ASAN);
    ended(command)
}

/// Runs a command until its end. Killing a launcher that hangs also kills its ranks.
pub(crate) fn ended(command: Command) -> Ended {
    ended_within(2 * HANG, command)
}

/// Checks that a program succeeded and printed one line that starts with `text`.
#[track_caller]
pub(crate) fn says(ended: &Ended, text: &str) {
    let is_one = ended.out.lines().count() == 1 && ended.out.starts_with(text);
    assert!(ended.code() == Some(0) && is_one && ended.err.is_empty(), "{text}: {ended}");
}
