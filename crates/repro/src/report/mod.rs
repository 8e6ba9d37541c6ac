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

/// Write `index.html` into `directory`, which is created if need be; returns its path.
///
/// The page needs nothing else: style and plots are inside, no script, no font and no link to anywhere.
///
/// # Errors
/// [`ReproError::Plot`], [`ReproError::Write`].
pub fn write(directory: &Path, results: Results<'_>, rows: &[Row], made: &Provenance) -> Result<PathBuf, ReproError> {
    let page = page::render(results, rows, made)?;
    let path = directory.join("index.html");
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, page));
    match written {
        Ok(()) => Ok(path),
        Err(error) => Err(ReproError::Write { path, error }),
    }
}

/// The page's text.
///
/// # Errors
/// [`ReproError::Plot`].
pub fn render(results: Results<'_>, rows: &[Row], made: &Provenance) -> Result<String, ReproError> {
    page::render(results, rows, made)
}
