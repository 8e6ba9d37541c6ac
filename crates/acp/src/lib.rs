//! Advanced Communication Primitives: 64-bit addresses for all registered memory of a job.
//!
//! The problem: programs whose data is one linked structure over all ranks need to identify any
//! byte of any rank by one word, to copy and change it wherever it is, and to specify the order of
//! operations, without a buffer for each peer. Here every rank registers memory; each byte of it
//! has a [`GlobalAddress`], which any rank may [copy](Acp::copy) from or to, or change by an
//! [atomic](Acp::atomic), without participation of the owner. Each operation specifies the earlier
//! operations that it [waits for](Order), so a chain of copies needs no action by its caller
//! between them.
//!
//! # Start
//! Call [`Acp::init`] on all ranks; exchange addresses in [`Acp::starter`] memory; use
//! [`Acp::allocate`] and [`Acp::register`] for more memory; wait with [`Acp::complete`].
//! [`Acp::malloc`] allocates in any rank's heap, where containers such as [`Vector`], [`List`] and
//! [`Map`] are; a [`WorkSpace`] is one array over all ranks.
//!
//! ```
//! use acp::{Acp, GlobalAddress, Order};
//! use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
//! use tofu2_sim::shm::Threads;
//!
//! /// Rank 0 has rank 1's word copied to rank 2, and then adds 10 to the copy.
//! async fn program(fabric: Fabric) -> ProgramResult<u64> {
//!     let acp = Acp::init(&fabric).await?;
//!     let me = acp.rank();
//!     let own = acp.register(vec![u64::from(me.number()); 4], 0)?;
//!     acp.store(acp.starter(me)?, acp.address(own, 0)?.to_bits()).await?;
//!     acp.sync().await?;
//!     if me == Rank::new(0) {
//!         let mut at = Vec::new();
//!         for rank in 0..3 {
//!             let word = acp.load(acp.starter(Rank::new(rank))?).await?;
//!             at.push(GlobalAddress::from_bits(word).ok_or("no address")?);
//!         }
//!         let copy = acp.copy(at[2], at[1], 8, Order::None).await?;
//!         // Its previous value goes to rank 0's own word.
//!         let add = acp.atomic(at[0], at[2], Amo::Add(10u64), copy).await?;
//!         acp.complete(add).await?;
//!     }
//!     acp.sync().await?;
//!     let words = acp.take::<u64>(own).await?;
//!     acp.finalize().await?;
//!     Ok(words[0])
//! }
//!
//! assert_eq!(Threads::new(3).run(&program).unwrap(), [1, 1, 11]);
//! ```
//!
//! [`GlobalPtr`], [`GlobalSlice`] and [`GlobalAtomic`] are the same addresses with a type.
//!
//! ```
//! use acp::{Acp, GlobalSlice, Order};
//! use rdma_fabric::{Fabric, ProgramResult, Rank};
//!
//! async fn rank(fabric: Fabric) -> ProgramResult<()> {
//!     let acp = Acp::init(&fabric).await?;
//!     let me = acp.rank().number();
//!     // Each rank lends some memory, and says where it is in its starter memory.
//!     let lent: GlobalSlice<u64> = acp.allocate_slice(4, 0)?;
//!     acp.starter_slice::<[u64; 2]>(acp.rank())?.at(0)?.write(&acp, lent.to_words()).await?;
//!     acp.sync().await?;
//!     if me == 0 {
//!         // Rank 0 has rank 1's memory filled, and then copied on to rank 2, whoever carries it out.
//!         let mut there = Vec::new();
//!         for rank in 1..3 {
//!             let words = acp.starter_slice::<[u64; 2]>(Rank::new(rank))?.at(0)?.read(&acp).await?;
//!             there.push(GlobalSlice::<u64>::from_words(words).ok_or("no slice")?);
//!         }
//!         lent.write(&acp, &[1, 2, 3, 4]).await?;
//!         let first = lent.copy_to(&acp, there[0], Order::None).await?;
//!         let second = there[0].copy_to(&acp, there[1], first).await?;
//!         acp.complete(second).await?;
//!         assert_eq!(there[1].at(3)?.as_atomic().fetch_add(&acp, 10).await?, 4);
//!     }
//!     acp.sync().await?;
//!     let last = if me == 2 { 14 } else { 4 };
//!     assert_eq!(lent.to_vec(&acp).await?, [1, 2, 3, last]);
//!     Ok(acp.finalize().await?)
//! }
//!
//! # checks::documented::run(3, &rank);
//! ```
//!
//! # Words
//! * A *global address* names a byte by rank, colour, region and offset, in 64 bits, never 0.
//! * *Starter memory* exists from the start, at an address that follows from the rank alone.
//! * The *colour* of a region selects the parallel path that its transfers should take.
//! * A *handle* is the number of an operation of this rank. *Complete* means visible at the
//!   destination, and a wait for an operation is also a wait for all earlier ones.
//! * *Delegation*: another rank executes operations that the network cannot execute, whenever that
//!   rank waits.
//!
//! # Guarantees
//! * Copies from one rank to another become visible in the order issued, whatever their [`Order`].
//! * A call that returns an error has issued nothing and moved nothing; see [`AcpError`].
//! * Issuing never fails for lack of room: it waits.
//! * The loss of a rank fails every call that depends on it, in bounded time. A lock word in a heap
//!   or table identifies its holder; if the holder is lost, calls on the protected data return
//!   [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost) from then on.
//! * Futures may be dropped, except those of collective calls: a change that has started is
//!   completed, and no lock stays taken.
//! * Without [`Atomics::Delegated`], a rank's memory does not grow with the job.
//!
//! # Modes
//! [`Mode::Direct`]: the calls execute operations themselves, and a rank serves others whenever it
//! waits in a call of this crate. [`Mode::CommandQueue`]: a helper on its own core executes them
//! and serves, as in the paper; [`Acp::entry_state`] shows its queue. [`Mode::Split`]: two helpers,
//! one for each. Results are the same.
//!
//! `docs/systems/acp.md` in the repository describes the protocols, and maps each C function to a
//! call.
//!
//! # Source
//! T. Nose, Y. Ajima, K. Saga, N. Shida, S. Sumimoto: Performance optimisation of the ACP library
//! (IPSJ 2015-HPC-150); the interface of ACP 3.0.

#![forbid(unsafe_code)]

mod acp;
mod address;
mod amo;
mod channel;
mod completion;
mod container;
mod cost;
mod counters;
mod delegation;
mod directory;
mod engine;
mod error;
mod memory;
mod operations;
mod options;
mod order;
mod pace;
mod program_memory;
mod queue;
mod resolve;
mod shared;
mod starter;
mod state;
mod typed;
mod values;

pub use acp::Acp;
pub use address::{GlobalAddress, MAX_COLOURS, MAX_RANKS, MAX_REGION_BYTES};
pub use channel::{Arrival, ChannelOptions, Outcome, Receiver, Request, SegmentDestination, SegmentSource, Sender};
pub use container::{
    Arrangement, Circular, Cursor, Deque, Entry, Iter, Linear, List, ListElement, ListIter, ListPosition, Map,
    Multimap, Multiset, Position, Sequence, Set, Stored, Striping, TableRef, Vector, WorkSpace,
};
pub use counters::{AtomicCounts, CopyCounts, Counters};
pub use error::{AcpError, OptionError, OutOfBounds, Result, SegmentsDiffer};
pub use memory::{Key, RegisterError};
pub use options::{Atomics, Mode, Options, Threads};
pub use order::{Handle, Order};
pub use queue::EntryState;
pub use typed::{GlobalAtomic, GlobalPtr, GlobalSlice, Link};
