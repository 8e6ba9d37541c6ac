//! A model checker for protocols over [`Fabric`]: it runs their own source under every delivery
//! order that the contract allows.
//!
//! The problem: a protocol of one-sided operations is right only if it is right whenever its puts
//! arrive, whichever atomic comes first, and whenever each CPU comes to its next line. Tests on
//! real machines see a few of these orders. [`Explorer`] goes through all of them, for a few ranks
//! and rounds, and shows the shortest run that breaks something: a panic, an error, an invariant, a
//! rank that waits for ever.
//!
//! ```
//! use explore::Explorer;
//! use rdma_fabric::{Deps, Fabric, ProgramResult, Rank};
//!
//! /// Rank 0 writes a record and raises a flag. What is missing?
//! async fn publish(fabric: Fabric, flushes: bool) -> ProgramResult<()> {
//!     let region = fabric.alloc_symmetric(16).await?;
//!     let [record, flag] = [0, 8].map(|offset| region.at(Rank::new(1), offset));
//!     if fabric.rank() == Rank::new(0) {
//!         fabric.put_word(&fabric.remote_word(record)?, 42u64).await?;
//!         if flushes {
//!             fabric.flush(Rank::new(1)).await?;
//!         }
//!         fabric.put_word(&fabric.remote_word(flag)?, 1u64).await?;
//!     } else {
//!         fabric.wait_until(&fabric.local_word(flag)?, Deps::All, |flag: u64| flag == 1).await?;
//!         assert_eq!(fabric.load::<u64>(&fabric.local_word(record)?)?, 42, "the record is older than its flag");
//!     }
//!     Ok(())
//! }
//!
//! let report = Explorer::new(2).run(|fabric| publish(fabric, false));
//! println!("{}", report.expect_violation()); // a timeline, and a schedule that replays it
//! Explorer::new(2).run(|fabric| publish(fabric, true)).expect_exhausted();
//! ```
//!
//! The program is any code over a [`Fabric`], unchanged; the explorer is a provider like others.
//! What it says to the explorer, it says to its [`Probe`].
//!
//! # Which orders
//! * A put arrives at any time after it was posted, each of its 8-byte words apart, before a flush
//!   that waits for it completes and before a later atomic as far as [`Explorer::caps`] say. Bytes
//!   in registered memory are read at any time until the put is complete.
//! * An atomic or get takes effect at any time between post and completion, a get for each of its
//!   words apart. Completion comes at any time after the effect. Where
//!   [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not promised, an atomic
//!   reads at one moment and writes at a later one: a put or its owner's store in between is lost,
//!   another atomic does not come between.
//! * A region goes when its owner drops it, at the latest when its program returns. What comes too
//!   late for it changes nothing, and its poster is told
//!   [`StaleRegion`](rdma_fabric::FabricError::StaleRegion): by the handle of a get or atomic, by
//!   the next flush of a put, at once where the drop came before the call.
//!   [`Explorer::leave_together`] is for jobs that are not about their end.
//! * A notice arrives after its own put's bytes and after its poster's earlier notices to that
//!   target, at any time.
//! * Between any two acts of a rank that others could notice (an access to memory or a fact that
//!   others touch as well, a look at a notice queue or a handle), anything else may happen; so
//!   between those of its program and those of the futures it has detached.
//! * A clock stands still until a deadline that its rank waits for comes, at any moment.
//!
//! # The loss of ranks
//! [`Explorer::mortal`] names ranks that may die, each at any moment before it has ended, or not at
//! all. Others are never lost.
//! * A rank that dies does nothing more, nor do the futures it has detached. What it had posted may
//!   still happen, as before. Its memory is still there, and whoever does not know of its death
//!   uses it as before.
//! * Each other rank learns of the death at a moment of its own, or ends without. From the first
//!   such moment on nothing happens any more of what the dead rank had under way: for all ranks,
//!   also those that do not know yet. If everybody has ended without learning, the rest of it
//!   happens or is lost.
//! * To a rank that has learned of it, operations on the dead rank's memory, [`Fabric::locate`],
//!   `room` and `flush` are [`PeerLost`](rdma_fabric::FabricError::PeerLost). So ends what it had
//!   under way there, unless its handle was told before that it is complete; it may have been done
//!   all the same, seen by those that did not know yet. Puts that had not arrived never do; the
//!   next `flush_all` tells so, once.
//! * Its waits that depend on the dead rank end with `PeerLost`, unless they are satisfied. Others
//!   are not disturbed. Notices that have arrived can be taken.
//! * A job has ended when all ranks have ended or died. That a death could come saves nobody from a
//!   deadlock: it need not. Facts and memory stay as the dead rank left them; invariants ask
//!   [`View::is_lost`].
//!
//! A rank whose program returns an error is not lost, but a finding (wrap it, if `PeerLost` is what
//! its ranks may end with). In memory that only a dead rank's CPU has ever touched it may have come
//! further than any other rank could tell. Without mortal ranks there is no more to explore than
//! without this.
//!
//! # What is not explored
//! * *Control queues, session mode and gates.* There are none: opening one is
//!   [`Unsupported`](rdma_fabric::FabricError::Unsupported). A protocol that has a form without
//!   them takes that, and is explored in that form only.
//! * *Memory that exists.* It can't be registered; keyless memory is copied, without references.
//! * *Memory orders of CPUs.* Memory is one, and what is written is seen by all at once (O15), its
//!   writer included. So a store that its rank sees before others do is not explored. Loom does
//!   that.
//! * *Queues that are full*, and transfers that are split.
//! * *Waits that end because the others have left.* They show as deadlocks.
//! * *Of regions that go*: an operation that is posted after the drop is refused at once, though a
//!   put's error could come with a flush. A get whose own sink is dropped while it is under way is
//!   told so; it could end well. A mortal rank dies with its regions there; one that fails drops
//!   them first. Under [`Explorer::leave_together`], what ranks let go of with their programs.
//! * *Of atomics that are not coherent*: a random run loses a store only if the owner's CPU goes on
//!   between two events.
//! * *Failed allocations*: they end well, whoever is dead.
//! * The bytes of one aligned 8-byte word arrive together. A put of an owned buffer is complete as
//!   soon as it is posted. Waits that are polled together see one moment.
//! * Liveness is not checked: that a rank may go in circles is [counted](Report::circles), a step
//!   that never ends is [cut](Report::cut).
//!
//! # That a check can fail
//! is shown by a protocol with a step done wrong. [`mutant`] spoils operations on their way to a
//! fabric.
//!
//! # How
//! A deterministic program is where the answers it was given have led it. So a rank's state is its
//! history of answers; what it does there is learned by running it from the start, once, and kept
//! in a table. A state of the job is memory, operations on their way, and each rank's state; it is
//! known by a 128-bit hash (a collision among 10^8 states has a probability of 10^-23). Where a
//! rank remembers less than its history, the program may [say so](Probe::step), which the explorer
//! checks by comparing continuations.
//!
//! What a rank does that nobody else can notice (posting, memory that only its own CPU touches,
//! going on with a result when it waits for nothing else) happens at once: it commutes with all
//! that others do, so no order is lost. Which memory is a rank's own is found out; if it turns out
//! to be shared, the exploration begins anew.

#![forbid(unsafe_code)]

mod act;
mod automaton;
mod awaiting;
mod cell;
mod checks;
mod cpu;
mod dropped;
mod effect;
mod explorer;
mod fabric;
mod live;
mod loss;
mod mix;
mod moves;
pub mod mutant;
mod operation;
mod probe;
mod report;
mod rules;
mod sample;
mod schedule;
mod search;
mod session;
mod state;
mod timeline;
mod words;
mod world;

pub use checks::View;
pub use effect::{Access, Effect};
pub use explorer::Explorer;
pub use live::{Event, LiveJob};
pub use probe::Probe;
pub use rdma_fabric::{Fabric, Rank, Region};
pub use report::{CounterExample, Report, Stop, Verdict};
pub use sample::{Failure, Sample};
pub use search::Progress;
