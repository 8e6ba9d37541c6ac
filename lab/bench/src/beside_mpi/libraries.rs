//! The MPI libraries, each with the program built for it.

use super::samples::Samples;
use crate::foreign::{lines_of::lines_of, mpi};
use std::{
    error::Error,
    path::{Path, PathBuf},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The program.
pub(super) const SOURCE: &str = include_str!("operations.c");
/// The length of a sample in ns, and the number of samples: usually and for a quick run.
const FULL: [u32; 2] = [250_000, 31];
const QUICK: [u32; 2] = [50_000, 7];

/// An MPI library.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) mpi: mpi::Library,
    program: PathBuf,
}

impl Library {
    /// Returns the libraries of this machine, with the program built in `folder`.
    ///
    /// # Errors
    /// A compiler fails.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>> {
        let all = mpi::Library::all().into_iter();
        all.map(|mpi| Ok(Library { program: mpi.compiled(SOURCE, folder)?, mpi })).collect()
    }

    /// Measures two ranks, then four, and adds their samples.
    ///
    /// # Errors
    /// A program fails or hangs.
    pub(super) fn measure(&self, quick: bool, cores: &[usize], samples: &mut Samples) -> Result<()> {
        for ranks in [2, 4] {
            let mut command = self.mpi.run(ranks);
            if self.mpi.is_open_mpi() {
                // The program binds its ranks.
                command.args(["--bind-to", "none"]);
            }
            command.arg(&self.program).args((if quick { QUICK } else { FULL }).map(|number| number.to_string()));
            command.args(cores.iter().map(usize::to_string));
            let lines = lines_of(command).map_err(|error| format!("{}, {ranks} ranks: {error}", self.mpi.name))?;
            lines.iter().try_for_each(|(line, _)| samples.add(line))?;
        }
        Ok(())
    }
}
