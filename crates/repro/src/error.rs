//! Why a reproduction did not come to its end.

use crate::figures::Paper;
use std::path::PathBuf;
use tofu2_sim::JobError;

/// A reproduction that failed. What was simulated before is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproError {
    /// A simulated job failed.
    #[error("{stage}: {error}")]
    Job {
        /// Which part of the reproduction.
        stage: String,
        /// Why.
        error: JobError,
    },
    /// The paper's figures are recorded, but its system is not simulated by this version.
    #[error(
        "the figures of `{paper}` ({subject}) are recorded but not simulated yet; only `lock` and `prdma` are. \
         `--all` lists them",
        subject = .paper.subject()
    )]
    NotSimulated {
        /// Which paper.
        paper: Paper,
    },
    /// A result file could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// Where to.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A plot could not be drawn.
    #[error("cannot draw {plot}: {problem}")]
    Plot {
        /// Which one.
        plot: &'static str,
        /// Why.
        problem: String,
    },
}
