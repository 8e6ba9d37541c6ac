//! Layers: fabrics that change a little of another fabric.
//!
//! The problem: to count what a protocol does, to slow it down, to break it or to kill it at a chosen call, one stands between it
//! and its fabric. But a wrapper has to repeat all of [`Fabric`], of [`SessionFabric`](crate::SessionFabric) and of
//! [`BarrierFabric`](crate::barrier::BarrierFabric), most of which is none of its business, and to translate places, buffers and handles. Here that is
//! written once. A [`Layer`] says what it does differently; [`Layered`] is the fabric under it, and keeps as many of the three contracts as the one below.
//!
//! # A layer
//! It is a state that all clones of a rank's fabric share, and methods like those of [`Fabric`] that are given the fabric *below* and places, sources and sinks of that.
//! Unless it says otherwise, a call goes below as it is. What a call is made of goes through it too: `fetch_add` comes as
//! [`Layer::try_atomic`], after [`Layer::room`] where there was none.
//!
//! ```
//! use rdma_fabric::{Amo, AtomicWord, Fabric, Refused, RemoteWord, Result, layer::Layer};
//! use std::sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}};
//!
//! /// Counts atomics.
//! #[derive(Clone, Debug, Default)]
//! struct Counting(Arc<AtomicU64>);
//!
//! impl<F: Fabric> Layer<F> for Counting {
//!     type Handle<T: Unpin + 'static> = F::Handle<T>;
//!
//!     fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> F::Handle<T> {
//!         handle
//!     }
//!
//!     fn try_atomic<W: AtomicWord>(
//!         &self, below: &F, word: &RemoteWord<F, W>, amo: Amo<W>,
//!     ) -> Result<F::Handle<W>, Refused<()>> {
//!         let handle = below.try_atomic(word, amo)?;
//!         self.0.fetch_add(1, Relaxed);
//!         Ok(handle)
//!     }
//! }
//!
//! /// Any protocol, and how many atomics it took.
//! async fn counted<F: Fabric>(fabric: F) -> Result<u64> {
//!     let counting = Counting::default();
//!     let fabric = counting.clone().over(fabric);
//!     let counter = fabric.alloc_symmetric(8).await?;
//!     fabric.fetch_add(&fabric.remote_word::<u64>(counter.at(fabric.rank(), 0))?, 1).await?;
//!     Ok(counting.0.load(Relaxed))
//! }
//! # use rdma_fabric::Region as _;
//! ```
//!
//! # What it must not break
//! Protocols rely on the contract, so a layer that is not there to break it keeps to this:
//! * Who is refused gets the operation back, and the layer has not posted it ([`Refused`](crate::Refused)). It posts once what it is asked to post once.
//! * Order is that of the calls: it hands nothing on later than its method returns, or where it does, [`Caps`](crate::Caps) and flushes account for it.
//! * Its waits end when those below do, with the same errors; it adds no wait for a peer that [`Deps`](crate::Deps) don't name. Dropping its future drops the one below.
//! * A handle, dropped, cancels nothing, and never blocks in [`OpHandle::test`](crate::OpHandle::test).
//! * Time is the fabric's: no other clock, no random source that isn't given as a seed, or simulated runs can't be replayed.
//! * [`Layer::node`], [`Layer::nodes`] and [`Layer::rank_on`] agree.
//!
//! # What does not pass through it
//! References: memory without a key is reached by copies only, and [`Caps::locked_memory`](crate::Caps::locked_memory) says so, since what passes by reference is seen by
//! no layer. What control queues do by themselves, in the network. A store that [need not wake](Fabric::store_unwaited) comes as
//! any store, and commands that are [posted together](crate::ControlQueue::post_all) come one by one, unless the layer asks for the difference; that costs
//! time on some providers, and changes nothing else.
//!
//! # Cost
//! That of what it changes: everything is dispatched statically, no box is made, and what only passes is small enough to be inlined. `()` is the layer that changes
//! nothing.

mod gates;
mod handle;
mod hooks;
mod layered;
mod nothing;
mod queue;

pub use handle::LayeredHandle;
pub use hooks::Layer;
pub use layered::Layered;
pub use queue::LayeredQueue;

#[cfg(doc)]
use crate::Fabric;
