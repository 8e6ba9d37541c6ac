//! Errors of observing.

use std::{io, path::PathBuf};

/// An error of the observation. The observed job is not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// A file or directory can't be used.
    #[error("{} can't be {done}: {error}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operation on it.
        done: &'static str,
        /// The error that the system reported.
        error: io::Error,
    },
    /// A rank's record contains data that no rank writes.
    #[error("{} is not the record of a rank: {error}", path.display())]
    Record {
        /// The record's file.
        path: PathBuf,
        /// The defect.
        error: serde_json::Error,
    },
    /// The environment variable with the location of the ranks' records is malformed.
    #[error("setting {name}: {value:?} is not `stats:DIRECTORY` or `trace:DIRECTORY`")]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its content.
        value: String,
    },
}

/// Makes an error about a file, for `map_err`.
pub(crate) fn file(path: &std::path::Path, done: &'static str) -> impl FnOnce(io::Error) -> ObserveError + use<> {
    let path = path.to_owned();
    move |error| ObserveError::File { path, done, error }
}
