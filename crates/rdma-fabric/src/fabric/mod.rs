//! The type that programs hold, on any provider.
//!
//! `docs/contract/fabric.md` states the contract sentence by sentence; the conformance suite checks
//! every provider against it.

mod abort;
mod blocks;
mod copies;
mod direct;
mod helper;
mod memory;
mod multicast;
mod operation_future;
mod operations;
pub(crate) mod prepared;
mod wait_future;
mod wait_hook;
mod waits;
mod within;

pub use blocks::{BlockProgress, BlockPut};
pub(crate) use direct::DirectOp;
pub(crate) use memory::whole_words;
pub use multicast::MulticastSpan;
pub use prepared::Prepared;
pub use wait_hook::WaitHook;
pub use waits::Deps;
pub use within::Direct;

use crate::{
    Caps, LockedMemory, Node, Rank, Result,
    provider::{JobFacts, Place, Provider},
};
use core::{fmt, future::Future};
use std::sync::Arc;
use wait_hook::WaitHooks;

/// One rank's access to the job: identity, memory, operations, waiting, time.
///
/// Cloning is cheap and yields another handle of the same rank.
///
/// To *post* an operation is to hand it to the network; the operation is *complete* when its handle
/// reports this (the source is reusable, the result has arrived); a put is *visible* after
/// [`Fabric::flush`]. These are three separate events with three separate methods.
///
/// Operations of one rank to one target are executed in the order they are posted only to the
/// extent guaranteed by [`Caps::put_order`] and [`Caps::puts_in_order`]; everything else needs a
/// flush or an awaited handle in between.
///
/// It is one type on every [provider](crate::provider::Provider), so that the provider can be
/// chosen at run time and protocols are compiled once. A simulator's fabric must be used on the
/// thread that simulates; on any other thread it panics.
///
/// ```
/// use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank};
///
/// /// Rank 0 puts a block into each other rank's memory, then a flag, and counts the answers.
/// async fn scatter(fabric: Fabric) -> ProgramResult<()> {
///     let root = Rank::new(0);
///     let region = fabric.alloc_symmetric(8 + 4 * 8).await?;
///     let flag = region.word::<u64>(&fabric, 0)?;
///     if fabric.rank() == root {
///         for rank in (1..fabric.ranks() as u32).map(Rank::new) {
///             let block = fabric.remote_span::<u64>(region.at(rank, 8), 4)?;
///             fabric.put(&block, vec![u64::from(rank.number()); 4]).await?; // complete: the vector is back
///             fabric.flush(rank).await?; // visible at `rank`
///             fabric.put_word(&region.word_of::<u64>(&fabric, rank, 0)?, 1).await?;
///         }
///         fabric.wait_until(&flag, Deps::All, |answers| answers == fabric.ranks() as u64 - 1).await?;
///     } else {
///         fabric.wait_until(&flag, Deps::One(root), |flag| flag == 1).await?;
///         let mut block = [0; 4];
///         fabric.read(&region.span::<u64>(&fabric, 8, 4)?, &mut block)?;
///         assert_eq!(block, [u64::from(fabric.rank().number()); 4]);
///         fabric.fetch_add(&region.word_of::<u64>(&fabric, root, 0)?, 1).await?;
///     }
///     // A region is freed after its last access by any rank.
///     Ok(Group::world(&fabric).await?.barrier().await?)
/// }
/// # tofu2_sim::shm::Threads::new(3).run(&scatter).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 3).run(&scatter).unwrap();
/// ```
#[derive(Clone)]
pub struct Fabric {
    inner: Arc<FabricInner<dyn Provider>>,
}

struct FabricInner<P: ?Sized> {
    rank: Rank,
    /// Whether references may be made to protected memory, because the provider is known to
    /// fulfil the contract.
    trusted: bool,
    facts: Arc<JobFacts>,
    hooks: WaitHooks,
    provider: P,
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provider().fmt(f)
    }
}

impl Fabric {
    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.inner.rank
    }

    /// Returns the number of ranks of the job.
    #[inline]
    pub fn ranks(&self) -> usize {
        self.facts().ranks
    }

    /// Returns the machine on which a rank runs.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`](crate::FabricError::NoSuchRank).
    pub fn node(&self, rank: Rank) -> Result<Node> {
        self.facts().node(rank)
    }

    /// Returns the guarantees of this provider beyond the contract.
    pub fn caps(&self) -> Caps {
        let mut caps = self.facts().caps;
        if !self.inner.trusted {
            caps.locked_memory = caps.locked_memory.min(LockedMemory::Copies);
        }
        caps
    }

    /// Returns whether references may be made to protected memory.
    pub(crate) fn is_trusted(&self) -> bool {
        self.inner.trusted
    }
}

/// For providers and wrappers: the parts of a fabric.
impl Fabric {
    /// Creates the fabric of `rank` over `provider`. It may have [protected
    /// memory](Fabric::protected), but no references to that memory can be made.
    pub fn new(rank: Rank, facts: Arc<JobFacts>, provider: impl Provider) -> Self {
        Fabric { inner: Arc::new(FabricInner { rank, trusted: false, facts, hooks: WaitHooks::default(), provider }) }
    }

    /// Creates the fabric of `rank` over a provider for which references to protected memory
    /// may be created.
    ///
    /// # Safety
    /// The provider fulfils the contract: its atomics are atomic, and the order that they establish
    /// also holds for plain accesses to mapped memory. It is the provider of `rank`, whose number
    /// no other job member has, and `facts` are those of its job: locks rely on both.
    #[allow(unsafe_code)]
    pub unsafe fn trusted(rank: Rank, facts: Arc<JobFacts>, provider: impl Provider) -> Self {
        Fabric { inner: Arc::new(FabricInner { rank, trusted: true, facts, hooks: WaitHooks::default(), provider }) }
    }

    /// Creates another handle of this rank, over another provider. The two handles share their
    /// [hooks](Fabric::wait_hook).
    ///
    /// For providers: the new handle's provider is assumed to break the contract, unless it is this
    /// handle's own.
    #[must_use]
    pub fn sibling(&self, provider: impl Provider) -> Self {
        self.another(false, provider)
    }

    /// Creates another handle of this rank, over another provider for which references may be
    /// created.
    ///
    /// # Safety
    /// As for [`Fabric::trusted`]; rank and facts of this handle are those of the provider's rank.
    #[allow(unsafe_code)]
    #[must_use]
    pub unsafe fn trusted_sibling(&self, provider: impl Provider) -> Self {
        self.another(true, provider)
    }

    fn another(&self, trusted: bool, provider: impl Provider) -> Self {
        let FabricInner { rank, facts, hooks, .. } = &*self.inner;
        let (rank, facts, hooks) = (*rank, facts.clone(), hooks.share());
        Fabric { inner: Arc::new(FabricInner { rank, trusted, facts, hooks, provider }) }
    }

    /// Wraps this fabric in another provider, which may change operations arbitrarily. The new
    /// fabric has no [hooks](Fabric::wait_hook).
    #[must_use]
    pub fn layered(&self, provider: impl Provider) -> Self {
        Fabric::new(self.inner.rank, self.inner.facts.clone(), provider)
    }

    /// Returns the size in bytes of one fabric over a provider `P`, shared by all its clones.
    pub const fn bytes_over<P: Provider>() -> usize {
        // The counts of an `Arc`, and its contents.
        2 * size_of::<usize>() + size_of::<FabricInner<P>>()
    }

    /// Returns the provider on which this fabric runs.
    #[inline(always)]
    pub fn provider(&self) -> &dyn Provider {
        &self.inner.provider
    }

    /// Returns whether there is no other handle over the same provider.
    pub fn is_only_handle(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// Returns the facts of the job, such as the ranks of a node.
    #[inline]
    pub fn facts(&self) -> &Arc<JobFacts> {
        &self.inner.facts
    }

    /// Wakes the owner of a place after a direct write, if the owner may be parked.
    #[inline(always)]
    fn wake_if_parked(&self, place: &Place) {
        if place.may_be_parked_at() {
            self.wake(place);
        }
    }

    /// Rings the owner's doorbell; out of line, so that the fast path keeps its values in
    /// registers.
    #[cold]
    #[inline(never)]
    fn wake(&self, place: &Place) {
        self.provider().wake(place);
    }
}

/// The result of one rank's program. Any error type converts with `?`.
pub type ProgramResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Code that all ranks of a job run: an `async fn(Fabric) -> ProgramResult<Out>`, or an `async`
/// closure that captures the values shared by all ranks.
///
/// A program uses the facilities of its provider; [`Fabric::caps`] and the limits of queues and
/// gates report them at run time. It has no hidden state, clock
/// or random source outside the fabric, so that a simulated run can be replayed.
///
/// A program must not share its fabric with other threads; a rank that does so is run by the
/// provider's entry points for such ranks (`run_with`, `launch_shared`), because a job whose
/// programs all wait is declared deadlocked.
///
/// A rank whose program returns an error, or panics, is *lost* to its peers: their waits that
/// depend on it end with [`FabricError::PeerLost`](crate::FabricError::PeerLost).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a program that ranks can run",
    label = "not an `async fn` of a fabric that yields a `ProgramResult`",
    note = "write `async fn name(fabric: Fabric) -> ProgramResult<()> {{ … Ok(()) }}`, or `async |fabric: Fabric| {{ … Ok(()) }}`"
)]
pub trait Program: Sync {
    /// The result of a rank.
    type Out: Send + 'static;

    /// Runs one rank.
    fn run(&self, fabric: Fabric) -> impl Future<Output = ProgramResult<Self::Out>>;
}

impl<Out: Send + 'static, P: AsyncFn(Fabric) -> ProgramResult<Out> + Sync> Program for P {
    type Out = Out;

    fn run(&self, fabric: Fabric) -> impl Future<Output = ProgramResult<Out>> {
        self(fabric)
    }
}
