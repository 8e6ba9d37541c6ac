//! Compiled C programs, and the jobs that run them.

use process_tests::{
    child::{self, Ended, HANG},
    jobs::launched,
    programs::{Compilation, Linkage, ended_within, libraries, next_in, own_folder},
};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Returns the folder of this process's programs.
fn programs() -> PathBuf {
    own_folder(env!("CARGO_TARGET_TMPDIR"), "acp")
}

/// Removes all programs.
pub(crate) fn remove_programs() {
    let _ = fs::remove_dir_all(programs());
}

/// Returns a folder with the libraries under the names that programs link.
fn linked() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = programs().join("lib");
        fs::create_dir_all(&folder).expect("a folder for libraries");
        for ending in ["so", "a"] {
            let library = libraries().join(format!("libacp_c.{ending}"));
            symlink(library, folder.join(format!("libacp.{ending}"))).expect("a link to a library");
        }
        folder
    })
}

/// Compiles C sources, whose paths are relative to this package; `None` without a compiler.
pub(crate) fn compiled(sources: &[&str], linkage: Linkage) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = next_in(&programs());
    let mut compilation = Compilation::new(package, sources, &folder)?;
    compilation.args([Path::new("-I"), package.join("tests/own").as_path()]);
    Some(compilation.link_in(linked(), "acp", linkage).args(["-lpthread"]).compile())
}

/// Compiles a C source with clang's address sanitizer; `None` without it.
pub(crate) fn sanitized(source: &str) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compilation = Compilation::by("clang", package, &[source], &next_in(&programs()))?;
    compilation.args([Path::new("-I"), package.join("tests/own").as_path()]);
    compilation.link_in(linked(), "acp", Linkage::Shared).args(["-g", "-lpthread"]);
    compilation.compile_with(&["-fsanitize=address"])
}

/// Runs a program as `ranks` ranks, started by a launcher like that of `onesided run`.
pub(crate) fn job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended(launched(ranks, program, args))
}

/// Runs a program without a launcher.
pub(crate) fn alone(program: &Path, args: &[&str]) -> Ended {
    ended(child::program(program, args))
}

/// Runs a command until its end. Killing a launcher that hangs also kills its ranks.
pub(crate) fn ended(command: Command) -> Ended {
    ended_within(HANG, command)
}
