//! The libraries beside which operations are measured, each with the program built for it.

use super::samples::Samples;
use crate::foreign::{lines_of::lines_of, mpi, source::Source, ucx};
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The sampling that the programs share.
const HEADER: Option<[&str; 2]> = Some(["sampling.h", include_str!("../../../../benches/sampling.h")]);
/// The programs.
pub(super) const OF_MPI: Source =
    Source { name: "mpi", text: include_str!("../../../../benches/mpi/operations.c"), header: HEADER };
pub(super) const OF_UCX: Source =
    Source { name: "ucx", text: include_str!("../../../../benches/ucx/operations.c"), header: HEADER };
/// The length of a sample in ns, and the number of samples: usually and for a quick run.
const FULL: [u32; 2] = [250_000, 31];
const QUICK: [u32; 2] = [50_000, 7];

/// A library.
#[derive(Debug)]
pub(super) struct Library {
    /// Its name and version.
    pub(super) name: String,
    program: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Mpi(mpi::Library),
    Ucx,
}

impl Library {
    /// Returns the libraries of this machine, with the program built in `folder`.
    ///
    /// # Errors
    /// A compiler fails.
    pub(super) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for mpi in mpi::Library::all() {
            let program = mpi.compiled(&OF_MPI, folder)?;
            all.push(Library { name: mpi.name.clone(), program, kind: Kind::Mpi(mpi) });
        }
        if let Some(ucx) = ucx::Library::installed() {
            all.push(Library { program: ucx.compiled(&OF_UCX, folder)?, name: ucx.name, kind: Kind::Ucx });
        }
        Ok(all)
    }

    /// Returns whether it is UCX.
    pub(super) fn is_ucx(&self) -> bool {
        matches!(self.kind, Kind::Ucx)
    }

    /// Measures all that its program has, and adds the samples.
    ///
    /// # Errors
    /// A program fails or hangs.
    pub(super) fn measure(&self, quick: bool, cores: &[usize], samples: &mut Samples) -> Result<()> {
        let words = (if quick { QUICK } else { FULL }).map(|number| number.to_string());
        for mut command in self.commands() {
            command.args(&words).args(cores.iter().map(usize::to_string));
            let lines = lines_of(command).map_err(|error| format!("{}: {error}", self.name))?;
            lines.iter().try_for_each(|(line, _)| samples.add(line))?;
        }
        Ok(())
    }

    /// Returns the commands of its jobs: of MPI one of two ranks and one of four.
    fn commands(&self) -> Vec<Command> {
        match &self.kind {
            Kind::Mpi(mpi) => [2, 4].map(|ranks| mpi.unbound(ranks, &self.program)).into(),
            Kind::Ucx => vec![Command::new(&self.program)],
        }
    }
}
