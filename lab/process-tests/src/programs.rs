//! Programs in other languages that are linked with a library of a package.

use crate::child::{self, Child, Ended};
use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
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

/// How a program is linked with a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// With `libNAME.so`, which the program finds when it starts.
    Shared,
    /// With `libNAME.a`.
    Static,
}

/// The compilation of a program in C or Fortran, warnings being errors.
#[derive(Debug)]
pub struct Compilation {
    command: Command,
    program: PathBuf,
    is_fortran: bool,
}

impl Compilation {
    /// Prepares to compile `sources`, whose paths are relative to the package at `package`, into a program in
    /// `folder`, which is created if it is missing. Headers are found in the package's `include`. Returns `None`,
    /// and prints that the case is skipped, if the compiler is not installed.
    ///
    /// # Panics
    /// If the folder cannot be created.
    pub fn new(package: &Path, sources: &[&str], folder: &Path) -> Option<Self> {
        let is_fortran = sources.iter().any(|source| source.ends_with(".f90"));
        let compiler = if is_fortran { "gfortran" } else { "cc" };
        Self::by(compiler, package, sources, folder)
    }

    /// As [`Compilation::new`], with a compiler of this name.
    ///
    /// # Panics
    /// If the folder cannot be created.
    pub fn by(compiler: &str, package: &Path, sources: &[&str], folder: &Path) -> Option<Self> {
        let is_fortran = sources.iter().any(|source| source.ends_with(".f90"));
        if !is_installed(compiler) {
            return None;
        }
        fs::create_dir_all(folder).expect("a folder for the program");
        let program = folder.join("program");
        let mut command = Command::new(compiler);
        // Fortran modules are written to the current folder.
        command.current_dir(folder).args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        if !is_fortran {
            command.arg("-std=c99");
        }
        command.arg("-I").arg(package.join("include")).args(sources.iter().map(|source| package.join(source)));
        Some(Compilation { command, program, is_fortran })
    }

    /// Returns whether a source is in Fortran.
    pub fn is_fortran(&self) -> bool {
        self.is_fortran
    }

    /// Adds arguments of the compiler.
    pub fn args<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> &mut Self {
        self.command.args(args);
        self
    }

    /// Links with library `name` of [`libraries`]. Other libraries whose names this one replaces come later.
    pub fn link(&mut self, name: &str, linkage: Linkage) -> &mut Self {
        self.link_in(&libraries(), name, linkage)
    }

    /// Links with library `name` of a folder.
    pub fn link_in(&mut self, folder: &Path, name: &str, linkage: Linkage) -> &mut Self {
        match linkage {
            Linkage::Shared => {
                self.command.arg("-L").arg(folder).arg(format!("-l{name}"));
                self.command.arg(format!("-Wl,-rpath,{}", folder.display()));
            }
            Linkage::Static => {
                self.command.arg(folder.join(format!("lib{name}.a"))).args(NATIVE_LIBRARIES);
            }
        }
        self
    }

    /// Compiles the program, and returns its path.
    ///
    /// # Panics
    /// If the compiler fails or warns.
    #[track_caller]
    pub fn compile(&mut self) -> PathBuf {
        let output = self.command.output().expect("the compiler is installed");
        assert!(output.status.success(), "{:?}: {}", self.command, String::from_utf8_lossy(&output.stderr));
        self.program.clone()
    }

    /// Compiles the program with flags that the compiler may not have on this machine, such as those of
    /// sanitizers; `None` if it fails, which is reported.
    ///
    /// # Panics
    /// If the compiler cannot be started.
    pub fn compile_with(&mut self, flags: &[&str]) -> Option<PathBuf> {
        let output = self.command.args(flags).output().expect("the compiler is installed");
        if output.status.success() {
            return Some(self.program.clone());
        }
        println!("    SKIPPED: {flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        None
    }
}

/// Returns the folder `NAME-PROCESS` for the programs of this process, in `temporary`.
pub fn own_folder(temporary: &str, name: &str) -> PathBuf {
    Path::new(temporary).join(format!("{name}-{}", process::id()))
}

/// Returns another folder in `folder` with each call.
pub fn next_in(folder: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    folder.join(NEXT.fetch_add(1, Relaxed).to_string())
}

/// Starts a command without input, and keeps its output. Shared libraries are those that the program was linked
/// with.
///
/// # Panics
/// As [`Child::start`].
#[track_caller]
pub fn started(mut command: Command) -> Child {
    // Cargo's own path contains libraries that `cargo build` may have left behind.
    command.env_remove("LD_LIBRARY_PATH").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Child::start(command)
}

/// Runs a command as [`started`], waits for its end at most for `time`, and returns it.
///
/// # Panics
/// As [`started`] and [`Child::end_within`].
#[track_caller]
pub fn ended_within(time: Duration, command: Command) -> Ended {
    started(command).end_within(time)
}

/// Returns a command that runs a program under Open MPI, also as root and with more ranks than CPUs.
pub fn mpirun(ranks: usize, program: &Path) -> Command {
    let mut command = child::program("mpirun", ["-n", &ranks.to_string()]);
    for allowed in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"] {
        command.env(allowed, "1");
    }
    command.arg(program);
    command
}

/// The variables that launchers set for the ranks of a job of two, after the variable of the rank: those of MPICH's
/// launcher, and of Slurm without PMI.
const LAUNCHERS: [(&str, &[(&str, &str)]); 2] = [
    ("PMI_RANK", &[("PMI_SIZE", "2"), ("PMI_FD", "9"), ("MPI_LOCALNRANKS", "2")]),
    (
        "SLURM_PROCID",
        &[
            ("SLURM_JOB_ID", "9"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NODELIST", "node"),
        ],
    ),
];

/// Runs a program as two ranks with the variables of MPICH's launcher, then with those of Slurm. The ranks are
/// children of this process, as they are of the launchers' daemons. Returns the ends of ranks 0 and 1 for each.
///
/// # Panics
/// As [`ended_within`].
#[track_caller]
pub fn ended_by_variables(time: Duration, program: &Path) -> [[Ended; 2]; 2] {
    LAUNCHERS.map(|(name, variables)| {
        // The first rank comes last: the other waits for it.
        let [second, first] = ["1", "0"].map(|rank| {
            let mut command = child::program(program, [""; 0]);
            command.envs(variables.iter().copied()).env(name, rank);
            started(command)
        });
        let second = second.end_within(time);
        [first.end_within(time), second]
    })
}

/// Returns the names that the shared library `name` of [`libraries`] exports. Returns `None`, and prints that the
/// case is skipped, if `nm` is not installed.
///
/// # Panics
/// If `nm` fails.
#[track_caller]
pub fn exported_names(name: &str) -> Option<BTreeSet<String>> {
    if !is_installed("nm") {
        return None;
    }
    let library = libraries().join(format!("lib{name}.so"));
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library).output();
    let output = output.expect("nm is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("names");
    Some(names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}
