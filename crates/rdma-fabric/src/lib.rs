//! One-sided communication: the contract between protocols and the networks they run on.
//!
//! The problem: protocols over remote memory access (locks, halo exchanges, matching areas) are
//! written against one machine's interface and can then be neither measured elsewhere nor checked.
//! This crate is the small set of words in which they can be written *once*: a [`Fabric`] is the
//! same type over real shared memory, a simulated network in virtual time and model checkers, which
//! all implement [`provider::Provider`]. So a protocol has no type parameter for its fabric and is
//! compiled once.
//!
//! # The words
//! * A [`Rank`] is a member of the job; a [`Node`] a machine; a [`Group`] an ordered set of ranks with
//!   barrier, broadcast and allgather.
//! * Memory is [allocated](Fabric::alloc) from the fabric as a [`Region`]; peers address it by
//!   ([`Rank`], [`RegionKey`], offset) and *resolve* that once into a [`RemoteWord`] or [`RemoteSpan`]. Memory that a
//!   program already has is [registered](Fabric::register) by handing it over.
//! * An [operation](Operation) is *posted* and yields a [handle](Handle); when that is done, the
//!   operation is *complete*; a put is *visible* at its target after a [flush](Fabric::flush).
//! * A [control queue](control_queue) holds commands that the network runs by itself, when peers' arrivals release them.
//! * A [triggered] put leaves when words say so; without such queues, in whatever call its rank waits next.
//! * A rank waits only for its own memory or queues: [`Fabric::wait_until`], [`Fabric::next_notice`].
//! * A [provider] is what is below a fabric. What counts, delays or breaks what runs over a fabric
//!   is one, too: it stands in between, and [hands on](forward) what it does not do differently.
//! * A [`Program`] is what every rank runs. A provider's launcher starts it; this crate has none.
//!
//! # Safety
//! All of it is safe to call but for what makes a [`Pact`] that allows references or uses one. Memory that others may write is
//! never handed out as a slice: it is read and written by copying. References exist only to memory [without a key](Fabric::keyless),
//! under a lock's guard. What a wrong peer can do is to write wrong *values* into memory that was registered for it.

pub mod access;
pub mod barrier;
mod caps;
pub mod control_queue;
pub mod error;
mod existing;
mod fabric;
mod forward;
mod group;
mod handle;
pub mod join;
mod locked;
mod notice;
mod one_thread;
pub mod op;
mod place;
mod pointer;
mod program;
pub mod provider;
mod rank;
mod region;
mod time;
pub mod triggered;
mod wait;
mod word;

pub use bytemuck::{self, Pod, Zeroable};
pub use caps::{Caps, Existing, PutOrder};
pub use control_queue::ControlQueue;
pub use error::{FabricError, Refused, Result};
pub use existing::{OwnedMemory, RegisterError, Registered, Uses};
pub use fabric::Fabric;
pub use group::{Group, GroupMemory};
pub use handle::Handle;
pub use locked::{Keyring, LockedMemory, Mapped, Pact};
pub use notice::{Notice, PutOptions};
pub use op::{GetSink, Operation, PutSource};
pub use pointer::{LocalSpan, LocalWord, RemoteSpan, RemoteWord};
pub use program::{Program, ProgramResult};
pub use rank::{Node, Rank};
pub use region::{Region, RegionKey, RemoteAddr};
pub use time::Time;
pub use triggered::Triggers;
pub use wait::Deps;
pub use word::{Amo, AtomicWord};
