//! One self-contained page: plots, table, constants, and how to make it again.

mod escape;
mod exchange;
mod lock;
mod page;
mod plots;

use crate::{ReproError, lock_paper::LockRuns, outcome::Row, prdma_paper::PrdmaRuns, provenance::Provenance};
use std::path::{Path, PathBuf};

/// What was run, by paper.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results<'a> {
    /// The lock.
    pub lock: Option<&'a LockRuns>,
    /// Persistent neighbourhood collectives.
    pub prdma: Option<&'a PrdmaRuns>,
}

/// The page's place in `directory`, which is made if need be.
///
/// # Errors
/// [`ReproError::Write`].
pub fn page_in(directory: &Path) -> Result<PathBuf, ReproError> {
    let path = directory.join("index.html");
    match std::fs::create_dir_all(directory) {
        Ok(()) => Ok(path),
        Err(error) => Err(ReproError::Write { path, error }),
    }
}

/// The page's text. It needs nothing else: style and plots are inside, no script, no font and no link to anywhere.
///
/// # Errors
/// [`ReproError::Plot`].
pub fn render(results: Results<'_>, rows: &[Row], made: &Provenance) -> Result<String, ReproError> {
    page::render(results, rows, made)
}
