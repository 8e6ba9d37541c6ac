//! Compilers, compiled programs, and the jobs that run them.

use process_tests::{
    child::{self, Ended, HANG},
    jobs::launched,
    programs::{Compilation, Linkage, ended_within, next_in, own_folder},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Returns the folder of this process's programs.
fn programs() -> PathBuf {
    own_folder(env!("CARGO_TARGET_TMPDIR"), "blacs")
}

/// Removes all programs.
pub(crate) fn remove_programs() {
    let _ = fs::remove_dir_all(programs());
}

/// The library that a program is linked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linked {
    Shared,
    Static,
    /// The shared library, before a ScaLAPACK that was built for BLACS over MPI.
    BeforeScalapack,
}

/// The ScaLAPACK that the packages of Debian and other distributions install for programs over Open
/// MPI.
const SCALAPACK: &str = "scalapack-openmpi";

/// Returns whether ScaLAPACK exists, for the library's integer size. If not, reports that the case is
/// skipped.
pub(crate) fn has_scalapack() -> bool {
    let file = format!("lib{SCALAPACK}.so");
    let found = Command::new("gfortran").arg(format!("-print-file-name={file}")).output();
    let is_found = found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_absolute());
    let is_usable = is_found && cfg!(not(feature = "int64"));
    if !is_usable {
        println!("    SKIPPED: there is no `{file}` for these integers");
    }
    is_usable
}

/// Compiles sources, whose paths are relative to this package, with their language's compiler; `None`
/// if it is missing.
pub(crate) fn compiled(sources: &[&str], linked: Linked) -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = next_in(&programs());
    let mut compilation = Compilation::new(package, sources, &folder)?;
    let is_fortran = compilation.is_fortran();
    if is_fortran {
        // The Fortran programs compare floats that are only transferred and so keep their bits.
        compilation.args(["-Wno-compare-reals"]);
    }
    if cfg!(feature = "int64") {
        compilation.args([if is_fortran { "-fdefault-integer-8" } else { "-DBLACS_INT64" }]);
    }
    compilation.args([Path::new("-I"), package.join("tests/programs").as_path()]);
    let linkage = if linked == Linked::Static { Linkage::Static } else { Linkage::Shared };
    compilation.link("blacs_fmpl", linkage);
    if linked == Linked::BeforeScalapack {
        compilation.args([format!("-l{SCALAPACK}")]);
    }
    Some(compilation.args(["-lm", "-lpthread"]).compile())
}

/// Runs a program as `ranks` ranks.
pub(crate) fn job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended(launched(ranks, program, args))
}

/// Runs a program that takes much longer than the others, especially without optimisation.
pub(crate) fn long_job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended_within(10 * HANG, launched(ranks, program, args))
}

/// Runs a program without a launcher.
pub(crate) fn alone(program: &Path, args: &[&str]) -> Ended {
    ended(child::program(program, args))
}

/// Runs a command until its end. Killing a launcher that hangs also kills its ranks.
pub(crate) fn ended(command: Command) -> Ended {
    // Alone the longest takes 10 s; it took 48 s beside a compiler.
    ended_within(2 * HANG, command)
}
