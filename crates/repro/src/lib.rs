//! Published figures of systems built on remote memory access, reproduced in virtual time.
//!
//! The problem: a simulator that was tuned until it agrees proves nothing. Here every number that
//! the five papers print is [recorded](figures) with what it is good for; a few calibrate the
//! model, the rest must come out of it within a stated bound; and beside each prediction stands
//! what a [trivial model](null_model) would have said. Only a prediction whose null model misses
//! the bound is *informative*.
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
//! [`lock_paper`], [`acp_paper`], [`fmpl_paper`], [`prdma_paper`] and [`xmp_paper`] are simulated. Same
//! plan and seed, same trace hashes: [`provenance`] carries them.

#![forbid(unsafe_code)]

pub mod acp_paper;
pub mod figures;
pub mod fmpl_paper;
pub mod lock_bench;
pub mod lock_paper;
pub mod null_model;
pub mod outcome;
pub mod platforms;
pub mod prdma_paper;
pub mod progress;
pub mod provenance;
mod quantity;
pub mod report;
mod simulate;
pub mod statistics;
pub mod table;
pub mod unpublished;
pub mod workloads;
pub mod xmp_paper;

pub use simulate::Cost;
pub use simulate::JobRecord;
pub use simulate::Shape;
pub use simulate::Traced;

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
