//! A group of ranks that exchange messages only with each other.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    Algorithm, Collective, FmplError, Op, Options, Result, Scalar, Threads,
    area::{Layout, meet, supplied},
    collective::{Algorithms, ByUnit, Collectives, Hardware, Memories},
    point::{SPIN_LIMIT, spin_limit},
    spool::{Siblings, Spool},
    state::State,
};
use core::{fmt, future::Future};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, GroupMemory, LocalSpan, Pod, Rank, Region,
    provider::{Boxed, Turn, TurnCell},
};
use std::sync::Arc;

/// A group of ranks that exchange messages with each other.
///
/// Members are numbered from 0. Messages of different communicators are independent, as are two
/// operations whose peer, index or direction differ. [`Options::threads`] selects the threads that
/// may call.
pub struct Communicator {
    pub(crate) fabric: Fabric,
    group: Group,
    pub(crate) memory: GroupMemory,
    pub(crate) layout: Layout,
    /// The size of each of a window's two buffers.
    pub(crate) window: usize,
    /// Whether the fabric's puts become visible in order.
    pub(crate) puts_in_order: bool,
    /// Whether a call may give up its CPU: other ranks use it, and no other thread of this rank waits for the call.
    pub(crate) may_yield: bool,
    /// The number of times that a receive polls before it prepares for a longer wait.
    pub(crate) receive_polls: u32,
    /// The members' ranks; `None` if they are all ranks of the job.
    pub(crate) listed: Option<Box<[Rank]>>,
    /// How collectives are executed.
    pub(crate) algorithms: Algorithms,
    /// The spools of the rank.
    pub(crate) siblings: Siblings,
    state: Arc<TurnCell<State>>,
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Communicator(member {} of {}, ", self.me(), self.len())?;
        match self.enter() {
            Ok(state) => write!(f, "{:?})", *state),
            Err(_) => f.write_str("of another thread)"),
        }
    }
}

/// Memory for receives, which stays registered until it is dropped.
#[derive(Debug)]
pub struct Buffer<T: Pod> {
    span: LocalSpan<T>,
    _region: Region,
}

impl<T: Pod> core::ops::Deref for Buffer<T> {
    type Target = LocalSpan<T>;

    fn deref(&self) -> &LocalSpan<T> {
        &self.span
    }
}

/// The maximum size of an allocation in bytes.
const MOST: usize = isize::MAX as usize;

impl Communicator {
    pub(crate) fn new(
        mut group: Group,
        options: &Options,
        memory: Option<GroupMemory>,
        memories: Memories,
        siblings: &Siblings,
    ) -> impl Future<Output = Result<Self>> {
        let (options, siblings) = (options.clone(), siblings.clone());
        let made: Boxed<'static, Result<Self>> = Box::pin(async move {
            let fabric = group.fabric().clone();
            let layout = Layout::of(&options, &fabric, group.len());
            let memory = match memory {
                Some(memory) => supplied(&mut group, memory, &layout).await?,
                None => group.memory_with_control(layout.bytes()).await?,
            };
            let spool = Spool::new(&fabric, options.spool_bytes, options.time_out, options.patience)?;
            let (hardware, algorithms) = Hardware::claim(&mut group, &options, memories).await?;
            group.barrier().await?;
            let state = State::new(group.me(), options.indices, spool, Collectives::new(hardware, &fabric.caps()));
            let state = match options.threads {
                Threads::One => TurnCell::of_this_thread(state),
                Threads::Many => TurnCell::of_any_thread(state),
            };
            let state = Arc::new(state);
            siblings.add(&state);
            let caps = fabric.caps();
            let listed = (group.len() < fabric.ranks()).then(|| memory.ranks().collect());
            Ok(Communicator {
                fabric,
                group,
                memory,
                layout,
                window: options.window,
                puts_in_order: caps.puts_in_order,
                may_yield: caps.oversubscribed && options.threads == Threads::One,
                receive_polls: spin_limit(&caps, SPIN_LIMIT),
                listed,
                algorithms,
                siblings,
                state,
            })
        });
        made
    }

    /// Returns this rank's number in the communicator.
    pub fn me(&self) -> usize {
        self.group.me()
    }

    /// Returns the number of members.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.group.len()
    }

    /// Returns the rank of a member.
    ///
    /// # Errors
    /// [`FmplError::NoSuchMember`].
    pub fn rank(&self, member: usize) -> Result<Rank> {
        self.group.rank(member).map_err(|_| FmplError::NoSuchMember { member, members: self.len() })
    }

    /// Returns the algorithm for a collective of `bytes` bytes at each member; for a broadcast, of
    /// `bytes` bytes at its root. For a reduction it is the algorithm used if the barrier unit
    /// supports the reduction; see [`Communicator::reduction_algorithm`].
    ///
    /// # Errors
    /// [`FmplError::NoHardware`], which the collective would return.
    pub fn algorithm(&self, collective: Collective, bytes: usize) -> Result<Algorithm> {
        self.algorithms.at(collective, bytes)
    }

    /// Returns the algorithm for a reduction of `elements` elements, to one member or to all.
    ///
    /// # Errors
    /// [`FmplError::NoHardware`], which the reduction would return.
    pub fn reduction_algorithm<T: Scalar>(&self, to_all: bool, op: Op, elements: usize) -> Result<Algorithm> {
        let collective = if to_all { Collective::Allreduce } else { Collective::Reduce };
        let bytes = elements.saturating_mul(size_of::<T>());
        self.reduction_way(collective, ByUnit::new::<T>(op).as_ref(), elements, bytes)
    }

    /// Allocates memory for receives of up to `elements` elements.
    ///
    /// # Errors
    /// [`FmplError::TooManyElements`]; [`FmplError::Fabric`] if memory runs out.
    pub fn buffer<T: Pod>(&self, elements: usize) -> Result<Buffer<T>> {
        let element = size_of::<T>();
        let bytes = elements.checked_mul(element).filter(|bytes| *bytes <= MOST);
        let bytes = bytes.ok_or(FmplError::TooManyElements { elements, element, most: MOST })?;
        let region = self.fabric.alloc(bytes.max(1))?;
        Ok(Buffer { span: region.span(&self.fabric, 0, elements)?, _region: region })
    }

    /// Returns the fabric, with which receive buffers are read and written.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    pub(crate) fn group(&mut self) -> &mut Group {
        &mut self.group
    }

    /// Returns the communicator's state, for users that hold it beyond a turn.
    pub(crate) fn state(&self) -> &Arc<TurnCell<State>> {
        &self.state
    }

    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Turn<'_, State>> {
        self.state.enter().ok_or(FmplError::OtherThread)
    }

    #[inline(always)]
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> Result<T> {
        Ok(f(&mut *self.enter()?))
    }

    /// Returns the index of a peer among the known peers; contacts it first if necessary.
    pub(crate) async fn met(&self, member: usize) -> Result<usize> {
        if let Some(place) = self.with(|state| state.place_of(member))? {
            return Ok(place);
        }
        self.rank(member)?;
        let ends = meet(&self.fabric, &self.memory, &self.layout, self.me(), member).await?;
        self.with(|state| state.keep(member, ends, self.layout.channels()))
    }

    /// Returns the channel of an index.
    #[inline(always)]
    pub(crate) fn channel_of(&self, index: usize) -> Result<usize> {
        let indices = self.layout.indices();
        if index < indices { Ok(index) } else { Err(FmplError::NoSuchIndex { index, indices }) }
    }

    /// Waits until all messages that this member has spooled have been received, and until all
    /// members have called this function.
    ///
    /// # Errors
    /// [`FmplError::TooLong`] if a receiver refused a message that was spooled; the loss of a member.
    pub fn finish(mut self) -> impl Future<Output = Result<()>> {
        let finished: Boxed<'static, Result<()>> = Box::pin(async move {
            let fetched = self.all_fetched().await;
            let met = match self.group.barrier().await {
                Err(error @ FabricError::StaleRegion { .. }) => Err(self.loss().await.unwrap_or(error)),
                met => met,
            };
            let met = met.map_err(FmplError::from);
            if met.is_ok() {
                self.with(|state| state.collectives.finish())?;
            }
            fetched.and(met)
        });
        finished
    }

    /// Returns the loss of a member, if it is known. One that has noticed it may drop its memory before others do.
    async fn loss(&self) -> Option<FabricError> {
        let deps = self.listed.as_deref().map_or(Deps::All, Deps::Ranks);
        let word = self.fabric.local_word::<u64>(self.memory.at(self.fabric.rank(), 0).ok()?).ok()?;
        let never = self.fabric.wait_until(&word, deps, |_| false);
        let lost = self.fabric.before(self.fabric.now(), never).await?.err();
        lost.filter(|error| matches!(error, FabricError::PeerLost { .. }))
    }
}
