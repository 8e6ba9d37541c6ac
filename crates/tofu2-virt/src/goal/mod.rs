//! Schedules of messages (GOAL) replayed in virtual time by the LogGPS model.
//!
//! A [`Schedule`] lists the sends, receives and calculations of each rank and their dependencies. It is read
//! from the text or the binary format of LogGOPSim, built ([`Builder`]), or generated ([`Pattern`]),
//! and [replayed](Schedule::replay) on a machine of six parameters ([`LogGps`]): each message takes the
//! same time between any two ranks, whatever else is on the network. A replay executes no program; a
//! [`Job`](crate::Job) does, on a model of a machine.
//!
//! ```
//! use tofu2_virt::goal::{LogGps, Pattern};
//!
//! let schedule = Pattern::Dissemination.schedule(16, 1)?;
//! let replay = schedule.replay(&LogGps::default())?;
//! // Four rounds of o + L + o.
//! assert_eq!(replay.end(), 4 * (1_500 + 2_500 + 1_500) * 1_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The formats and the model are those of T. Hoefler, T. Schneider, A. Lumsdaine: LogGOPSim –
//! Simulating Large-Scale Applications in the LogGOPS Model (2010), and of T. Hoefler, C. Siebert,
//! A. Lumsdaine: Group Operation Assembly Language (2009).

mod binary;
mod builder;
mod error;
mod operation;
mod parameters;
mod patterns;
mod replay;
mod schedule;
mod text;

pub use builder::{Builder, Label};
pub use error::{BadSchedule, Reason, ReplayError};
pub use operation::{Operation, Work};
pub use parameters::{BadLogGps, LogGps, Nanoseconds};
pub use patterns::Pattern;
pub use replay::Replay;
pub use schedule::Schedule;
