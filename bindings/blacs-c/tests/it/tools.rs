//! Compilers, compiled programs, and the jobs that run them.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Ten times the duration of the slowest job.
const HANG: Duration = Duration::from_secs(60);

/// The libraries that the static library needs on Linux.
const NEEDED: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// Returns whether a tool exists. If not, reports that the case is skipped.
pub(crate) fn there(tool: &str) -> bool {
    let ran = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = ran.is_ok_and(|status| status.success());
    if !there {
        println!("    SKIPPED: there is no `{tool}`");
    }
    there
}

/// Returns the folder of this test and the libraries, as chosen by Cargo.
pub(crate) fn libraries() -> PathBuf {
    let own = env::current_exe().expect("own path");
    own.parent().expect("a folder").to_owned()
}

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
    if !there(compiler) {
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
        Linked::Static => drop(command.arg(folder.join("libblacs_fmpl.a")).args(NEEDED)),
    }
    let output = command.args(["-lm", "-lpthread"]).output().expect("the compiler is there");
    assert!(output.status.success(), "{sources:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(scratch.join("program"))
}

/// The exit code and output of a job.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "code {:?}\n--- out\n{}--- err\n{}", self.code, self.out, self.err)
    }
}

/// Runs a program as `ranks` ranks.
pub(crate) fn job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended(&mut launched(ranks, program, args))
}

/// Runs a program that takes much longer than others, in particular without optimisation.
pub(crate) fn long_job(ranks: usize, program: &Path, args: &[&str]) -> Ended {
    ended_within(10 * HANG, &mut launched(ranks, program, args))
}

fn launched(ranks: usize, program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env::current_exe().expect("own path"));
    command.args(["launch", &ranks.to_string()]).arg(program).args(args);
    command
}

/// Runs a program without a launcher.
pub(crate) fn alone(program: &Path, args: &[&str]) -> Ended {
    ended(Command::new(program).args(args))
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    ended_within(HANG, command)
}

fn ended_within(hang: Duration, command: &mut Command) -> Ended {
    // Cargo's own path contains libraries that `cargo build` may have left behind.
    for variable in ["ONESIDED_JOB", "ONESIDED_FABRIC", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program is there");
    let number = child.id();
    let waiting = thread::spawn(move || child.wait_with_output());
    let began = Instant::now();
    while !waiting.is_finished() {
        if began.elapsed() >= hang {
            // Killing a launcher also kills its ranks.
            let _ = Command::new("kill").args(["-KILL", &number.to_string()]).status();
            panic!("process {number} hangs: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let Output { status, stdout, stderr } = waiting.join().expect("no panic").expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: status.code(), out: text(stdout), err: text(stderr) }
}
