//! The interface of a provider, in terms of words, bytes and places; nothing here is generic.
//!
//! `docs/contract/fabric.md`, *Providers* (V1 to V11), states the properties on which a [`Fabric`]
//! relies.
//!
//! # Places
//! If memory is [mapped](Place::mapped), short accesses are made directly, without calling the
//! provider; this is decided by a comparison with a word of the place. Accesses reach the provider
//! if they are long, or if their memory isn't mapped, is [hidden](Place::hidden) or has been
//! deregistered.
//!
//! # Arguments
//! * An operation is [`Posted`]: complete immediately, or in flight and identified by a [`Token`],
//!   which the caller passes to [`Provider::poll`].
//! * A wait is a [`WaitFor`] and a [`WaitState`], four words in which the provider keeps its state
//!   between two polls. The caller itself checks the awaited condition, so closures are never passed
//!   down.
//! * Memory is a [`Region`](crate::Region), whose `registration` deregisters it when it is dropped,
//!   and a [`Place`] in one.
//!
//! # Threads
//! A provider is `Send` and `Sync`, so that futures over any fabric are `Send`. Simulators, which
//! live on one thread, check that they are used there.
//!
//! # Example
//! A provider of a single rank, which reaches its own memory. Every operation completes when it is
//! posted. `fabric-conformance` tests a provider against the contract.
//!
//! ```
//! use rdma_fabric::{
//!     Amo, Caps, Fabric, FabricError, Notice, Rank, Region, RegionKey, RemoteAddr, Result, Time, join, provider::*,
//! };
//! use std::{
//!     collections::VecDeque,
//!     sync::{Arc, Mutex},
//!     task::{Context, Poll, Waker},
//!     time::Instant,
//! };
//!
//! const ME: Rank = Rank::new(0);
//!
//! /// The bytes of a region; `None` once it is deregistered. No other code can name this type, so a place
//! /// that keeps one was resolved by this provider.
//! #[derive(Debug)]
//! struct Memory(Mutex<Option<Vec<u8>>>);
//!
//! /// Deregisters a region when it is dropped.
//! #[derive(Debug)]
//! struct Registered(Arc<Memory>);
//!
//! impl Drop for Registered {
//!     fn drop(&mut self) {
//!         *self.0.0.lock().unwrap() = None;
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct Loopback {
//!     regions: Mutex<Vec<Arc<Memory>>>,
//!     notices: Mutex<VecDeque<Notice>>,
//!     started: Instant,
//! }
//!
//! /// Calls `act` with the bytes of a place.
//! fn access<R>(place: &Place, act: impl FnOnce(&mut [u8]) -> R) -> Result<R> {
//!     let foreign = FabricError::Unsupported { feature: &"a place of another provider" };
//!     let (memory, addr) = (place.keep_alive::<Arc<Memory>>().ok_or(foreign)?, place.addr());
//!     let start = addr.offset as usize;
//!     match &mut *memory.0.lock().unwrap() {
//!         Some(bytes) => Ok(act(&mut bytes[start..start + place.len()])),
//!         None => Err(FabricError::StaleRegion { rank: ME, region: addr.region }),
//!     }
//! }
//!
//! fn posted(outcome: Result<u64>) -> Posted {
//!     outcome.map_or_else(Posted::failed, Posted::Complete)
//! }
//!
//! impl Provider for Loopback {
//!     fn alloc(&self, bytes: usize) -> Result<Region> {
//!         let memory = Arc::new(Memory(Mutex::new(Some(vec![0; bytes]))));
//!         let mut regions = self.regions.lock().unwrap();
//!         regions.push(memory.clone());
//!         let key = RegionKey { index: regions.len() as u32 - 1, generation: 0 };
//!         Ok(Region::new(key, bytes, None, Registered(memory)))
//!     }
//!     fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
//!         Box::pin(async move { self.alloc(bytes) })
//!     }
//!     fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _: usize) -> Result<Place> {
//!         let RemoteAddr { rank, region, .. } = addr;
//!         if rank != ME {
//!             return Err(FabricError::NoSuchRank { rank, ranks: 1 });
//!         }
//!         let memory = self.regions.lock().unwrap().get(region.index as usize).cloned();
//!         let memory = memory.ok_or(FabricError::NoSuchRegion { rank, region })?;
//!         let bytes = memory.0.lock().unwrap().as_ref().map(Vec::len);
//!         addr.fits(len, align, bytes.ok_or(FabricError::StaleRegion { rank, region })? as u64)?;
//!         Ok(Place::remote(addr, len, KeepAlive::new(memory)))
//!     }
//!     fn read(&self, from: &Place, into: &mut [u8], _waiting: bool) -> Result<()> {
//!         access(from, |bytes| into.copy_from_slice(bytes))
//!     }
//!     fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
//!         access(to, |bytes| bytes.copy_from_slice(from))
//!     }
//!     fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
//!         let copied = match from {
//!             Source::Bytes(bytes) => Ok(bytes.to_vec()),
//!             Source::Place(place) => access(place, |bytes| bytes.to_vec()),
//!         };
//!         let written = copied.and_then(|bytes| self.write(to, &bytes, false));
//!         if let (Ok(()), Some(data)) = (&written, notice) {
//!             let RemoteAddr { region, offset, .. } = to.addr();
//!             let notice = Notice { from: ME, data, region, end: offset + to.len() as u64 };
//!             self.notices.lock().unwrap().push_back(notice);
//!         }
//!         posted(written.map(|()| 0))
//!     }
//!     fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
//!         let copied = access(from, |bytes| bytes.to_vec());
//!         posted(copied.and_then(|bytes| match to {
//!             Sink::Bytes(into) => Ok(into.copy_from_slice(&bytes)),
//!             Sink::Place(place) => self.write(place, &bytes, false),
//!         }.map(|()| 0)))
//!     }
//!     fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
//!         posted(access(word, |bytes| {
//!             let mut bits = [0; 8];
//!             bits[..bytes.len()].copy_from_slice(bytes);
//!             let before = u64::from_ne_bytes(bits);
//!             let after = amo.apply(before).to_ne_bytes();
//!             bytes.copy_from_slice(&after[..bytes.len()]);
//!             before
//!         }))
//!     }
//!     fn nop(&self) -> Posted {
//!         Posted::Complete(0)
//!     }
//!     // There are no operations in flight.
//!     fn poll(&self, _: &mut Token, _: Sink<'_>, _: &mut Context<'_>) -> Poll<Result<u64>> {
//!         unreachable!()
//!     }
//!     fn test(&self, _: &Token) -> bool {
//!         unreachable!()
//!     }
//!     fn forget(&self, _: Token) {}
//!     fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
//!         Ok(self.notices.lock().unwrap().pop_front())
//!     }
//!     fn poll_wait(&self, _: &mut WaitState, goal: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
//!         match goal {
//!             WaitFor::Until(time) if self.now() < time => {}
//!             // Another task of this rank may write the word, or put with a notice.
//!             WaitFor::Word(..) | WaitFor::Notice(_) => {}
//!             _ => return Poll::Ready(Ok(())),
//!         }
//!         cx.waker().wake_by_ref();
//!         Poll::Pending
//!     }
//!     fn end_wait(&self, _: &mut WaitState, _: WaitFor<'_>, _: Ended) {}
//!     fn now(&self) -> Time {
//!         Time::from_picos(self.started.elapsed().as_nanos() as u64 * 1000)
//!     }
//!     fn detach(&self, deferred: Deferred<'_>) {
//!         let _ = deferred.poll_once(&mut Context::from_waker(Waker::noop()));
//!     }
//! }
//!
//! let facts = JobFacts { ranks: 1, nodes: Nodes::Blocks(1), caps: Caps::weakest() };
//! let loopback = Loopback { regions: Mutex::default(), notices: Mutex::default(), started: Instant::now() };
//! let fabric = Fabric::new(ME, Arc::new(facts), loopback);
//! let program = async {
//!     let region = fabric.alloc_symmetric(16).await?;
//!     let word = fabric.remote_word::<u64>(region.at(ME, 8))?;
//!     fabric.put_word(&word, 40).await?;
//!     assert_eq!(fabric.fetch_add(&word, 2).await?, 40);
//!     assert_eq!(fabric.load(&region.word::<u64>(&fabric, 8)?)?, 42);
//!     drop(region);
//!     assert!(matches!(fabric.get_word(&word).await, Err(FabricError::StaleRegion { .. })));
//!     Ok::<_, FabricError>(())
//! };
//! join::now(program).expect("nothing is in flight")?;
//! # Ok::<_, FabricError>(())
//! ```

use crate::{Fabric, ProgramResult};
use core::{future::Future, pin::Pin};

pub mod barrier;
mod blocks;
pub mod control_queue;
mod deferred;
mod forward;
mod in_flight;
mod interface;
mod lender;
mod multicast;
mod one_thread;
mod operation;
mod protected;
mod turn_cell;
mod wait;

pub use crate::{
    job::{JobFacts, Nodes},
    memory::{KeepAlive, Place, SHORT},
};
pub use barrier::{BarrierUnit, Colours};
pub use blocks::BlockPuts;
pub use control_queue::{Queue, QueueSide, Queues};
pub use deferred::Deferred;
pub use in_flight::InFlightTable;
pub use interface::{Provider, Registration};
pub use lender::{Lender, Loan};
pub use multicast::Multicast;
pub use one_thread::OneThread;
pub use operation::{Posted, Sink, Source, Token};
pub use protected::Protected;
pub use turn_cell::{Turn, TurnCell};
pub use wait::{Ended, WaitFor, WaitGuard, WaitState};

/// The code of a [helper](Fabric::helper): called once, by the helper's own task, with that task's
/// fabric.
pub type HelperTask = Box<dyn FnOnce(Fabric) -> Pin<Box<dyn Future<Output = ProgramResult<()>>>> + Send>;

/// A future behind a pointer: for rare calls.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
