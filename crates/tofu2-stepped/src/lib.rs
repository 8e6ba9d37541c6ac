//! Processes as ranks of a job in virtual time.
//!
//! [`Launcher`] starts the ranks' processes and simulates their network on one thread. A rank's library
//! reaches the simulator through a socket ([`SteppedRank`]): each call that needs the network is a
//! request. The simulator handles the requests of a rank while it polls that rank's task, and waits for
//! the next one before it polls another task. So exactly one process runs at a time, from its first
//! request on, and the order of all requests is that of virtual time: equal programs give equal runs.
//!
//! # Time
//! A process's computation takes no virtual time. A post takes the time in the platform's table. A poll that finds
//! nothing takes one turn of a polling loop; after two in a row a poll waits for the rank's next report or
//! write to its memory, for at most 1 ms, and after some thousands without a limit, so that ranks that
//! poll forever are a deadlock.
//!
//! # Memory
//! A rank's memory is that of its process: a registered buffer stays where it is, and an allocated region is
//! mapped there. The simulator stores none of it, so that programs use their pointers. The simulator reads and writes it through `/proc/PID/mem`, at
//! the moments at which the network does.
//!
//! # Fabric
//! [`SteppedRank::fabric`] is a provider that forwards the operations of the network. Waits are deferred until the thread
//! parks, in one request, which ends when the simulator would poll a task of the rank again; so a program takes the
//! same turns as a task of the simulator.
//!
//! # Ends
//! A process whose socket closes has ended: with code 0 its rank has finished, otherwise it is lost, which
//! the next poll of every other rank reports. A process that computes for long is reported on standard
//! error; one that sleeps for long without a request waits for something that the simulator does not
//! know, which is an error.

#![cfg(target_os = "linux")]

mod launcher;
mod rank;
mod wire;

pub use launcher::{EndedRun, LaunchError, Launcher};
pub use rank::{SteppedRank, is_rank};

/// The environment variable by which a launcher names a process its rank. Launchers of jobs over shared
/// memory use the same.
pub const JOB_VARIABLE: &str = tofu2_shm::JOB_VARIABLE;

/// The version of the requests, which follows [`tofu2_shm::VIRTUAL_JOB`] in its value.
const VERSION: &str = "1";

/// Polls in a row that find nothing and take one turn each; a later one also waits.
const TURNS: u32 = 2;
