//! The MPI libraries of this machine, each with the program built for it.

use super::samples::Samples;
use rustix::process::geteuid;
use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The program.
pub(super) const SOURCE: &str = include_str!("operations.c");
/// A compiler and a launcher of one library: Debian's names of two, and those of other installations.
const NAMES: [[&str; 2]; 3] =
    [["mpicc.openmpi", "mpirun.openmpi"], ["mpicc.mpich", "mpirun.mpich"], ["mpicc", "mpirun"]];
/// The length of a sample in ns, and the number of samples: usually and for a quick run.
const FULL: [u32; 2] = [250_000, 31];
const QUICK: [u32; 2] = [50_000, 7];
/// The time after which a program counts as hung, in seconds.
const WITHIN: &str = "300";

/// An MPI library.
#[derive(Debug)]
pub(super) struct Library {
    /// Its name and version.
    pub(super) name: String,
    launcher: &'static str,
    program: PathBuf,
}

/// Returns the libraries for which the program can be built in `folder`.
///
/// # Errors
/// A compiler fails.
pub(super) fn found(folder: &Path) -> Result<Vec<Library>> {
    let source = folder.join("operations.c");
    fs::write(&source, SOURCE)?;
    let mut libraries: Vec<Library> = Vec::new();
    for [compiler, launcher] in NAMES {
        let Some(name) = version(launcher) else { continue };
        if version(compiler).is_none() || libraries.iter().any(|known| known.name == name) {
            continue;
        }
        let program = folder.join(compiler);
        let built = Command::new(compiler).args(["-std=gnu11", "-O2", "-o"]).arg(&program).arg(&source).output()?;
        if !built.status.success() {
            return Err(format!("{compiler}: {}", String::from_utf8_lossy(&built.stderr)).into());
        }
        libraries.push(Library { name, launcher, program });
    }
    Ok(libraries)
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

impl Library {
    /// Measures two ranks, then four, and adds their samples.
    ///
    /// # Errors
    /// A program fails or hangs.
    pub(super) fn measure(&self, quick: bool, cores: &[usize], samples: &mut Samples) -> Result<()> {
        for ranks in ["2", "4"] {
            let mut command = Command::new("timeout");
            command.args(["--kill-after", "5", WITHIN, self.launcher, "-n", ranks]);
            if !self.name.starts_with("MPICH") {
                // The program binds its ranks.
                command.args(["--oversubscribe", "--bind-to", "none"]);
                if geteuid().is_root() {
                    command.arg("--allow-run-as-root");
                }
            }
            command.arg(&self.program).args((if quick { QUICK } else { FULL }).map(|number| number.to_string()));
            command.args(cores.iter().map(usize::to_string)).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn()?;
            for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
                samples.add(&line?)?;
            }
            let status = child.wait()?;
            if !status.success() {
                return Err(format!("{} with {ranks} ranks: {status}", self.name).into());
            }
        }
        Ok(())
    }
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
