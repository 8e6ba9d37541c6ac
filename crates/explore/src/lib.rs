//! A model checker for protocols over [`Fabric`]: it runs their unmodified source under every
//! delivery order that the contract allows.
//!
//! The problem: a protocol of one-sided operations is correct only if it is correct regardless of
//! when its puts arrive, which atomic takes effect first, and when each CPU executes its next
//! instruction. Tests on real machines see a few of these orders. [`Explorer`] explores all of
//! them, for a few ranks and rounds, and shows the shortest run that fails: a panic, an error, a
//! broken invariant, a rank that waits forever.
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
//! The program is any unmodified code over a [`Fabric`]; the explorer is a provider like any other.
//! A program communicates with the explorer through its [`Probe`].
//!
//! # Which orders
//! * A put arrives at any time after it was posted, each of its 8-byte words separately, but before
//!   a flush that waits for it completes, and before a later atomic, or before any part of a later
//!   put to the same target, if [`Explorer::caps`] guarantees that order. Source bytes in
//!   registered memory are read at any time until the put is complete.
//! * An atomic or get takes effect at any time between post and completion, a get separately for
//!   each of its words. Completion follows at any time after the effect. Where
//!   [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not promised, an atomic
//!   reads at one moment and writes at a later one: a put or an owner's store in between is lost;
//!   another atomic cannot occur in between.
//! * Under [`Explorer::acknowledged`], such an atomic takes effect for other atomics at one moment and
//!   in memory at a later one, before it is complete; [`Explorer::without_read`] makes it complete too
//!   early.
//! * A region is dropped by its owner, at the latest when the owner's program returns. An operation
//!   that arrives too late changes nothing, and its poster receives
//!   [`StaleRegion`](rdma_fabric::FabricError::StaleRegion): from the handle of a get or atomic,
//!   from the next flush after a put, or immediately if the drop precedes the call.
//!   [`Explorer::leave_together`] is for jobs in which the end does not matter.
//! * A multicast, if [`Explorer::caps`] includes them, reaches each rank independently, like a put
//!   to each.
//! * A notice arrives at any time after its own put's bytes and after its poster's earlier notices
//!   to that target.
//! * Between any two acts of a rank that others could observe (an access to memory or a fact that
//!   others touch as well, a check of a notice queue or a handle), any other event may happen. This
//!   also holds between acts of its program and acts of the futures it has detached.
//! * A clock stands still until it jumps, at any moment, to a deadline that its rank waits for.
//!
//! # The loss of ranks
//! [`Explorer::mortal`] names ranks that may die, each at any moment before it has ended, or not at
//! all. No other rank is ever lost.
//! * A rank that dies performs no further acts, nor do the futures it has detached. Operations that
//!   it had posted may still take effect, as before. Its memory still exists, and ranks that do not
//!   know of its death use it as before.
//! * Each other rank learns of the death independently, at any moment, or ends without learning.
//!   From the first such moment on, no operation that the dead rank had in flight takes effect any
//!   longer, for any rank, including those that do not know yet. If all ranks have ended without
//!   learning, the remaining operations take effect or are lost.
//! * For a rank that has learned of the death, operations on the dead rank's memory,
//!   [`Fabric::remote_word`], `room` and `flush` fail with
//!   [`PeerLost`](rdma_fabric::FabricError::PeerLost). So do its operations in flight to the dead
//!   rank, unless their handles had already reported completion; they may nevertheless have taken
//!   effect, visibly to ranks that did not know yet. Puts that had not arrived never do; the next
//!   `flush_all` reports this, once.
//! * Such a rank's waits that depend on the dead rank end with `PeerLost`, unless they are
//!   satisfied. Its other waits are not affected. Notices that have arrived can be taken.
//! * A job has ended when all ranks have ended or died. A possible death does not resolve a
//!   deadlock, because it need not happen. Facts and memory remain as the dead rank left them;
//!   invariants can query [`View::is_lost`].
//!
//! A rank whose program returns an error is not a lost rank but a finding (wrap the program if its
//! ranks may end with `PeerLost`). In memory that only a dead rank's CPU has ever touched, the rank
//! may have progressed further than any other rank could observe. A job without mortal ranks has no
//! additional states.
//!
//! # Not explored
//! * **Control queues, session mode and gates.* They are not supported: opening one fails with
//!   [`Unsupported`](rdma_fabric::FabricError::Unsupported). A protocol that can work without them
//!   is explored in that form only.
//! * *Simultaneous execution of helpers and their programs.* Where [`Explorer::caps`] has
//!   [`helpers`](rdma_fabric::Caps::helpers), they are tasks of the rank, which interleave in every
//!   order, but switch only where one of them waits: the acts of one task between two waits are one
//!   act for the others, in registered memory and in other state that they share. A helper that
//!   fails before its program has returned is a finding.
//! * *Aborts of whole jobs.* [`Fabric::abort`](rdma_fabric::Fabric::abort) is `Unsupported`, so a
//!   rank that aborts is a finding.
//! * *Third-party copies*, and copies within local memory whose source and destination overlap.
//!   Both are `Unsupported`; other copies are explored as gets and puts.
//! * *Existing memory.* It can't be registered; protected memory is copied, without references.
//! * *Memory orders of CPUs.* There is a single memory, and a write is seen by all ranks at once
//!   (O15), including its writer. So a store that its own rank sees before others do is not
//!   explored; use loom for that.
//! * *Full queues* and split transfers.
//! * **Waits that end because the other ranks have left.* They appear as deadlocks.
//! * *Some cases of dropped regions.* An operation that is posted after the drop is refused
//!   immediately, although a put's error could also be reported by a flush. A get whose own sink is
//!   dropped while it is in flight fails; it could also succeed. A mortal rank dies with its
//!   regions still present; a rank that fails drops them first. Under [`Explorer::leave_together`],
//!   regions that ranks release when their programs end are not covered.
//! * *Some cases of atomics that are not coherent.* A random run loses a store only if the owner's
//!   CPU runs between two events. Of the values that atomics of an interface that acknowledges early
//!   write to a word, some may not be seen.
//! * *Failed allocations.* They succeed even if a rank is dead.
//! * The bytes of one aligned 8-byte word arrive together. A put of an owned buffer is complete as
//!   soon as it is posted. Waits that are polled together observe a single moment.
//! * Liveness is not checked: possible cycles of a rank are [counted](Report::circles), and a step
//!   that never ends is [cut](Report::cut).
//!
//! # Proving that a check can fail
//! A protocol with one defect shows that a check can fail. [`mutant`] alters operations on their
//! way to a fabric.
//!
//! # Method
//! The answers given to a deterministic program determine its state. So a rank's state is its
//! history of answers; its behaviour in that state is determined by running it from the start,
//! once, and kept in a table. A state of the job consists of memory, operations in flight, and each
//! rank's state. It is identified by a 128-bit hash (a collision among 10^8 states has a
//! probability of 10^-23). Where a rank remembers less than its history, the program may [say
//! so](Probe::step); the explorer checks this by comparing continuations.
//!
//! Acts of a rank that no other rank can observe (posting, touching memory that only its own CPU
//! touches, continuing with a result when it waits for nothing else) happen immediately: they
//! commute with all acts of other ranks, so no order is lost. The explorer detects by itself which
//! memory is private to a rank; if such memory turns out to be shared, the exploration starts over.

#![forbid(unsafe_code)]

mod acknowledged;
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
mod parted;
mod probe;
mod report;
mod rules;
mod running;
mod sample;
mod schedule;
mod search;
mod session;
pub mod space;
mod state;
mod timeline;
mod turns;
mod words;
mod world;

pub use acknowledged::Unread;
pub use checks::View;
pub use effect::{Access, Effect};
pub use explorer::Explorer;
pub use live::{Event, LiveJob};
pub use probe::Probe;
pub use rdma_fabric::{Fabric, Rank, Region};
pub use report::{CounterExample, Replay, Report, Stop, Verdict};
pub use sample::{Failure, Sample};
pub use space::Progress;
