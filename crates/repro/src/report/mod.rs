//! One self-contained page: plots, table, constants, and how to make it again.

mod escape;
mod page;
mod plots;

use crate::{ReproError, lock_paper::LockRuns, outcome::Row, provenance::Provenance};
use std::path::{Path, PathBuf};

/// Write `index.html` into `directory`, which is created if need be; returns its path.
///
/// The page needs nothing else: style and plots are inside, no script, no font and no link to anywhere.
///
/// # Errors
/// [`ReproError::Plot`], [`ReproError::Write`].
pub fn write(directory: &Path, runs: &LockRuns, rows: &[Row], made: &Provenance) -> Result<PathBuf, ReproError> {
    let page = page::render(runs, rows, made)?;
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
pub fn render(runs: &LockRuns, rows: &[Row], made: &Provenance) -> Result<String, ReproError> {
    page::render(runs, rows, made)
}
