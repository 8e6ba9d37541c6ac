//! Published figures of systems built on remote memory access, reproduced in virtual time.
//!
//! Agreement of a simulator that was tuned until it agrees proves nothing. Therefore every number
//! printed in the five papers is [recorded](figures) with its role: a few numbers calibrate the
//! model, and the model has to predict the others within a stated bound. Each prediction is shown
//! next to that of a [trivial model](null_model). A prediction is *informative* only if its null
//! model misses the bound.
//!
//! ```no_run
//! use repro::{lock_paper, progress::Progress, table};
//!
//! let plan = lock_paper::LockPlan::quick(lock_paper::Shapes::One, 0);
//! let runs = lock_paper::run(&plan, &mut Progress::stderr())?;
//! print!("{}", table::render(&lock_paper::compare(&runs), None));
//! # Ok::<(), repro::ReproError>(())
//! ```
//!
//! The simulated papers are [`lock_paper`], [`acp_paper`], [`fmpl_paper`], [`prdma_paper`] and
//! [`xmp_paper`]. Equal plans and seeds give equal trace hashes, which [`provenance`] contains.

#![forbid(unsafe_code)]

pub mod acp_paper;
pub mod documented;
pub mod figures;
pub mod fmpl_paper;
pub mod lock_paper;
pub mod null_model;
pub mod outcome;
pub mod peers;
pub mod platforms;
pub mod prdma_paper;
pub mod progress;
pub mod provenance;
pub mod quantity;
pub mod report;
mod shape;
pub mod simulate;
pub mod statistics;
pub mod table;
pub mod tally;
pub mod unpublished;
pub mod xmp_paper;

pub use shape::Shape;
pub use simulate::{Cost, JobRecord, Traced};
#[doc(no_inline)]
pub use workloads;

use std::path::PathBuf;
use tofu2_sim::{JobError, virt::TopologyError};

/// A failed reproduction. The results of previous jobs are lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproError {
    /// A simulated job failed.
    #[error("{stage}: {error}")]
    Job {
        /// The failed part of the reproduction.
        stage: String,
        /// The reason.
        error: JobError,
    },
    /// There is no network of the shape of a job.
    #[error("{stage}: {error}")]
    Network {
        /// The failed part of the reproduction.
        stage: String,
        /// The reason.
        error: TopologyError,
    },
    /// A result file could not be written.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// A plot could not be drawn.
    #[error("cannot draw {plot}: {problem}")]
    Plot {
        /// The plot.
        plot: &'static str,
        /// The reason.
        problem: String,
    },
}
