//! Counters of a job's operations and waits, and traces for a timeline viewer.
//!
//! The problem: a program is slow or hangs, and its user wants to know which rank waited for which,
//! without changing the program and at no cost to programs that are not observed. Here the observer
//! is a [provider](rdma_fabric::provider::Provider) between the program and its fabric
//! ([`observed`]). It is added (or not) when a job starts: the program is the same code, and a job
//! that isn't observed has no overhead. An observed job also pays for each access to mapped memory,
//! because the mapping is hidden from the program so that the observer receives the accesses.
//!
//! # Parts
//! * [`Gathering`] wraps the programs of the ranks of this process and keeps their [`RankRecord`]s.
//!   Memory is bounded: counters grow with the number of a rank's peers, and only the latest of its
//!   [events](Event) are kept.
//! * [`RecordDirectory`] transfers the records of ranks that are processes to their launcher, as
//!   files in a directory that is removed at the job's end. A killed rank leaves no record; tables,
//!   JSON and traces report this.
//! * [`Observation`] is the whole job's result. It is written as a table, as JSON, or as a trace
//!   that Perfetto and Chrome's viewer read.
//!
//! # Counted operations and waits
//! An operation counts when it has been posted, with any outcome; a notice, when it is taken; a
//! flush, when it begins. A *wait* is a future of the fabric that was pending when it was first
//! polled; it lasts until it is ready or dropped. Collectives of [`rdma_fabric::Group`] and locks
//! consist of these and are counted as such. Waits outside the fabric (a runtime's timers, blocking
//! calls) are not seen. Time is the fabric's own, so virtual time is observed as well; observation
//! does not change a simulated run.

#![forbid(unsafe_code)]

mod counts;
mod error;
mod event;
mod gathering;
mod observation;
mod observer;
mod output;
mod record_files;
mod recorder;
mod table;
mod trace;
mod wanted;

pub use counts::{Atomics, Counts, PeerCounts, RankCounts, WaitKind, Waits};
pub use error::ObserveError;
pub use event::{Event, EventKind, Events};
pub use gathering::{Detail, Gathering, Watched};
pub use observation::Observation;
pub use observer::{observed, observed_queue};
pub use output::{Output, emit, print};
pub use record_files::{ProcessRecord, RECORDS_VARIABLE, RecordDirectory, RecordWriter};
pub use recorder::{RankRecord, Recorder};
pub use wanted::{PreparedReport, WantedReport};
