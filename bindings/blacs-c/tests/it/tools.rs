//! Compilers, compiled programs, and the jobs that run them.

use process_tests::{
    child::{self, Child, this_program},
    programs::NATIVE_LIBRARIES,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

pub(crate) use process_tests::{
    child::{Ended, HANG},
    programs::{is_installed, libraries},
};

/// Returns the folder of this process's programs.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("blacs-{}", std::process::id()))
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
pub(crate) fn scalapack_is_there() -> bool {
    let file = format!("lib{SCALAPACK}.so");
    let found = Command::new("gfortran").arg(format!("-print-file-name={file}")).output();
    let there = found.is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_absolute());
    let there = there && cfg!(not(feature = "int64"));
    if !there {
        println!("    SKIPPED: there is no `{file}` for these integers");
    }
    there
}

/// Compiles sources, whose paths are relative to this package, with their language's compiler; `None`
/// if it is missing.
pub(crate) fn compiled(sources: &[&str], linked: Linked) -> Option<PathBuf> {
    static UNIQUE: AtomicU32 = AtomicU32::new(0);
    let fortran = sources.iter().any(|source| source.ends_with(".f90"));
    let compiler = if fortran { "gfortran" } else { "cc" };
    if !is_installed(compiler) {
        return None;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Fortran modules are written there, too.
    let scratch = programs().join(UNIQUE.fetch_add(1, Relaxed).to_string());
    fs::create_dir_all(&scratch).expect("a folder for the program");
    let mut command = Command::new(compiler);
    command.current_dir(&scratch).args(["-o", "program", "-O1", "-Wall", "-Wextra", "-Werror"]);
    // The Fortran programs compare floats that are only transferred and so keep their bits.
    command.args(if fortran { &["-Wno-compare-reals"][..] } else { &["-std=c99"] });
    if cfg!(feature = "int64") {
        command.arg(if fortran { "-fdefault-integer-8" } else { "-DBLACS_INT64" });
    }
    for folder in ["include", "tests/programs"] {
        command.arg("-I").arg(package.join(folder));
    }
    command.args(sources.iter().map(|source| package.join(source)));
    let folder = libraries();
    match linked {
        Linked::Shared | Linked::BeforeScalapack => {
            command.arg("-L").arg(&folder).arg("-lblacs_fmpl");
            command.arg(format!("-Wl,-rpath,{}", folder.display()));
            if linked == Linked::BeforeScalapack {
                command.arg(format!("-l{SCALAPACK}"));
            }
        }
        Linked::Static => drop(command.arg(folder.join("libblacs_fmpl.a")).args(NATIVE_LIBRARIES)),
    }
    let output = command.args(["-lm", "-lpthread"]).output().expect("the compiler is there");
    assert!(output.status.success(), "{sources:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(scratch.join("program"))
}

/// Runs a program as `ranks` ranks.
pub(crate) fn job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended(launched(ranks, program, args))
}

/// Runs a program that takes much longer than the others, especially without optimisation.
pub(crate) fn long_job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended_within(10 * HANG, launched(ranks, program, args))
}

fn launched(ranks: usize, program: &Path, args: &[&str]) -> Command {
    let mut command = this_program(["launch", &ranks.to_string()]);
    command.arg(program).args(args);
    command
}

/// Runs a program without a launcher.
pub(crate) fn alone(program: &Path, args: &[&str]) -> Ended {
    ended(child::program(program, args))
}

pub(crate) fn ended(command: Command) -> Ended {
    ended_within(HANG, command)
}

/// Killing a launcher that hangs also kills its ranks.
fn ended_within(hang: Duration, mut command: Command) -> Ended {
    // Cargo's own path contains libraries that `cargo build` may have left behind.
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Child::start(command).end_within(hang)
}
