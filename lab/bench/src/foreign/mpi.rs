//! The MPI libraries of this machine: their compilers and launchers.

use super::source::Source;
use rustix::process::geteuid;
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A compiler and a launcher of one library: Debian's names of two, and those of other installations.
const NAMES: [[&str; 2]; 3] =
    [["mpicc.openmpi", "mpirun.openmpi"], ["mpicc.mpich", "mpirun.mpich"], ["mpicc", "mpirun"]];

/// The reason for which nothing is measured beside MPI.
pub(crate) const NONE: &str = "there is no MPI library with its compiler (packages openmpi-bin, libopenmpi-dev)";

/// An MPI library.
#[derive(Debug)]
pub(crate) struct Library {
    /// Its name and version.
    pub(crate) name: String,
    compiler: &'static str,
    launcher: &'static str,
}

impl Library {
    /// Returns the libraries of which both compiler and launcher are installed.
    pub(crate) fn all() -> Vec<Self> {
        let mut all: Vec<Library> = Vec::new();
        for [compiler, launcher] in NAMES {
            let Some(name) = version(launcher) else { continue };
            if version(compiler).is_some() && !all.iter().any(|known| known.name == name) {
                all.push(Library { name, compiler, launcher });
            }
        }
        all
    }

    pub(crate) fn is_open_mpi(&self) -> bool {
        self.name.starts_with("Open MPI")
    }

    /// Compiles a program in C in `folder`.
    ///
    /// # Errors
    /// The compiler fails.
    pub(crate) fn compiled(&self, source: &Source, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
        source.compiled(self.compiler, &[], folder)
    }

    /// Returns a command that starts ranks of a program that binds them itself.
    pub(crate) fn unbound(&self, ranks: usize, program: &Path) -> Command {
        let mut command = self.run(ranks);
        if self.is_open_mpi() {
            command.args(["--bind-to", "none"]);
        }
        command.arg(program);
        command
    }

    /// Returns a command that starts ranks, also more than there are CPUs, of the program that is its next argument.
    pub(crate) fn run(&self, ranks: usize) -> Command {
        let mut command = Command::new(self.launcher);
        command.args(["-n", &ranks.to_string()]);
        if self.is_open_mpi() {
            command.arg("--oversubscribe");
            if geteuid().is_root() {
                command.arg("--allow-run-as-root");
            }
        }
        command
    }
}

/// Returns the name and version that a launcher or compiler prints; `None` if it is not installed.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    named(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the short name of a library, by what its programs print.
fn named(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.next()?;
    let last = first.split_whitespace().next_back()?;
    Some(match () {
        () if first.contains("Open MPI") || first.contains("OpenRTE") => format!("Open MPI {last}"),
        // MPICH's launcher describes itself in lines.
        () if first.starts_with("HYDRA") => {
            let number = lines.find_map(|line| line.strip_prefix("Version:"));
            format!("MPICH {}", number.map_or("", str::trim))
        }
        () => first.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_name_their_library() {
        let name = |text: &str| named(text).unwrap();
        assert_eq!(name("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to http://x"), "Open MPI 4.1.4");
        assert_eq!(name("mpirun (Open MPI) 4.1.4\n"), "Open MPI 4.1.4");
        assert_eq!(name("HYDRA build details:\n    Version:          4.0.2\n"), "MPICH 4.0.2");
        assert_eq!(named(""), None);
    }
}
