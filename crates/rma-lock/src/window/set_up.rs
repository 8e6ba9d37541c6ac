//! Creates and frees windows.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    Window,
    core::{Core, MemberPart, Parts, WindowMemory, Words},
    epochs::OpenEpochs,
    error::{WindowError, WindowResult},
    fence::MemberBarrier,
    in_flight::InFlightTable,
};
use crate::AccessLock;
use core::{any::Any, marker::PhantomData, sync::atomic::AtomicBool};
use rdma_fabric::{
    Fabric, FabricError, Group, GroupMemory, Pod, Rank, RegionKey, RegisterError, Registered, RemoteAddr, Uses,
    error::{Mismatch, OutOfMemory},
    provider::Boxed,
};
use std::sync::{Arc, Mutex};

const LINE: usize = 64;

/// The options of a window, the same at all members. `O` is the type of its lock's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WindowOptions<O = ()> {
    /// The rank with the lock's words; the first member if `None`.
    pub home: Option<Rank>,
    /// The options of the lock.
    pub lock: O,
}

/// The layout of each member's memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    words: usize,
    lock: usize,
    lock_bytes: usize,
    bytes: usize,
}

impl Layout {
    /// Returns the layout; `None` if it exceeds the address range.
    fn new(data: usize, words: usize, lock_bytes: usize) -> Option<Self> {
        let after = data.checked_next_multiple_of(LINE)?;
        let lock = after.checked_add(words)?.checked_next_multiple_of(LINE)?;
        let bytes = lock.checked_add(lock_bytes)?;
        Some(Layout { words: after, lock, lock_bytes, bytes })
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Makes a window of the whole job with `elements` elements, all zero, at each rank
    /// (`MPI_Win_allocate`). Collective over the job: all ranks call this in the same order
    /// relative to other symmetric allocations.
    ///
    /// No rank stores a table of the other ranks.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`]; errors of the lock.
    pub async fn allocate(fabric: &Fabric, elements: usize) -> WindowResult<Self> {
        Self::allocate_with(fabric, elements, WindowOptions::default()).await
    }

    /// Makes a window of the whole job as [`Window::allocate`] does, with other options.
    ///
    /// # Errors
    /// As [`Window::allocate`], and [`FabricError::NotInGroup`], [`FabricError::NoSuchRank`] for
    /// the home.
    pub async fn allocate_with(
        fabric: &Fabric,
        elements: usize,
        options: WindowOptions<L::Options>,
    ) -> WindowResult<Self> {
        let layout = Self::layout(fabric, elements, &options, fabric.ranks())?;
        let memory = GroupMemory::symmetric(fabric, layout.bytes).await?;
        Self::over(fabric, memory, elements, layout, options)
    }

    /// Makes a window of a group's members. Collective over the group; ranks outside it are not
    /// involved, alive or dead.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`FabricError::Mismatch`] at every member (in the world group, at one
    /// or more) if they request different numbers of elements; errors of the lock.
    pub async fn in_group(group: &mut Group, elements: usize) -> WindowResult<Self> {
        Self::in_group_with(group, elements, WindowOptions::default()).await
    }

    /// Makes a window of a group's members as [`Window::in_group`] does, with other options.
    ///
    /// # Errors
    /// As [`Window::in_group`], and [`FabricError::NotInGroup`] for the home.
    pub async fn in_group_with(
        group: &mut Group,
        elements: usize,
        options: WindowOptions<L::Options>,
    ) -> WindowResult<Self> {
        let fabric = group.fabric().clone();
        agree(group, elements).await?;
        let layout = Self::layout(&fabric, elements, &options, group.len())?;
        let memory = group.memory(layout.bytes).await?;
        Self::over(&fabric, memory, elements, layout, options)
    }

    fn layout(
        fabric: &Fabric,
        elements: usize,
        options: &WindowOptions<L::Options>,
        members: usize,
    ) -> WindowResult<Layout> {
        let data = elements.checked_mul(size_of::<T>());
        let lock_bytes = L::bytes(&options.lock, members);
        let layout = data.and_then(|data| Layout::new(data, Words::bytes(members), lock_bytes));
        let too_much =
            FabricError::from(OutOfMemory { rank: fabric.rank(), requested: usize::MAX, available: 0, segment: 0 });
        layout.ok_or_else(|| too_much.into())
    }

    fn over(
        fabric: &Fabric,
        memory: GroupMemory,
        elements: usize,
        layout: Layout,
        options: WindowOptions<L::Options>,
    ) -> WindowResult<Self> {
        let data = memory.part(0, elements.saturating_mul(size_of::<T>()))?;
        let data = WindowMemory { members: data, element: size_of::<T>(), parts: Parts::Allocated { elements } };
        Ok(Self::around(fabric, data, Self::frame(fabric, &memory, layout, options)?))
    }

    /// Creates the parts other than the data: the window's own words, and its lock.
    fn frame(
        fabric: &Fabric,
        memory: &GroupMemory,
        layout: Layout,
        options: WindowOptions<L::Options>,
    ) -> WindowResult<(Words, L)> {
        let home = match options.home {
            Some(home) => home,
            None => memory.member(0)?,
        };
        let words = Words::new(memory.part(layout.words, Words::bytes(memory.members()))?);
        let lock = L::over(fabric, memory.part(layout.lock, layout.lock_bytes)?, home, options.lock)?;
        Ok((words, lock))
    }

    fn around(fabric: &Fabric, data: WindowMemory, (words, lock): (Words, L)) -> Self {
        let core = Core {
            fabric: fabric.clone(),
            memory: data,
            words,
            barrier: MemberBarrier::default(),
            in_flight: InFlightTable::new(),
            open: OpenEpochs::default(),
            exposed: Mutex::default(),
            reads_registered: AtomicBool::new(false),
        };
        Window { core: Arc::new(core), lock, element: PhantomData }
    }

    /// Waits until all members have called this, then drops the window (`MPI_Win_free`).
    ///
    /// # Errors
    /// As [`Window::barrier`]; the first error of an operation that has not been reported yet. The
    /// window is dropped in any case.
    pub async fn free(self) -> WindowResult<()> {
        let flushed = self.core.flush(None).await;
        self.barrier().await?;
        Ok(flushed?)
    }
}

impl<T: Pod + Send + Sync, L: AccessLock> Window<T, L> {
    /// Makes a window of memory that the members of a group already have (`MPI_Win_create`), of any
    /// length at each. Collective over the group. [`Window::detach`] returns the memory.
    ///
    /// Accumulates need memory registered for [`Uses::Atomics`]; `docs/contract/existing-memory.md`
    /// lists the costs. Each member stores a table of all members.
    ///
    /// # Errors
    /// Each returns the memory: [`WindowError::Fabric`] from [`Fabric::register`];
    /// [`WindowError::NotAttached`] if another member's memory could not be registered; as
    /// [`Window::in_group`].
    pub async fn attach(
        group: &mut Group,
        memory: Vec<T>,
        uses: Uses,
        options: WindowOptions<L::Options>,
    ) -> Result<Self, (WindowError, Vec<T>)> {
        let fabric = group.fabric().clone();
        let registered = match uses {
            Uses::Transfers => fabric.register(memory),
            Uses::Atomics => fabric.register_for_atomics(memory),
        };
        let part = match &registered {
            Ok(mine) => Some(MemberPart { key: mine.key(), elements: mine.elements() as u64 }),
            Err(_) => None,
        };
        // Every member reaches this point, so that none waits for one that could not register.
        match (registered, Self::surround(group, part, options).await) {
            (Ok(mine), Ok(around)) => Ok(around(Box::new(mine))),
            (Err(RegisterError { error, memory }), _) => Err((error.into(), memory)),
            (Ok(mine), Err(error)) => Err((error, mine.take().await.unwrap_or_default())),
        }
    }

    /// Makes a window of memory that has a key at each member, of any length at each
    /// (`MPI_Win_create`): for example a [`rdma_fabric::Region`], or a buffer of requests.
    /// Collective over the group. The window keeps `memory`, which owns the memory of `key`, until
    /// it is dropped.
    ///
    /// Other accesses to that memory remain possible: they see the writes of an epoch after the
    /// epoch. Each member stores a table of all members.
    ///
    /// # Errors
    /// As [`Window::in_group`]; [`WindowError::Fabric`] if `key` grants access to fewer than
    /// `elements` elements of this rank, in which case the other members receive
    /// [`WindowError::NotAttached`].
    pub async fn over_region<M: Send + Sync + 'static>(
        group: &mut Group,
        memory: M,
        (key, elements): (RegionKey, usize),
        options: WindowOptions<L::Options>,
    ) -> WindowResult<Self> {
        let fabric = group.fabric().clone();
        let start = RemoteAddr { rank: fabric.rank(), region: key, offset: 0 };
        let opened = fabric.local_span::<T>(start, elements);
        let part = opened.is_ok().then_some(MemberPart { key, elements: elements as u64 });
        let around = Self::surround(group, part, options).await;
        opened?;
        Ok(around?(Box::new(memory)))
    }

    /// Exchanges the parts of all members, and creates the other parts of the window. The returned
    /// function creates the window, which keeps the owner of this rank's part.
    async fn surround(
        group: &mut Group,
        part: Option<MemberPart>,
        options: WindowOptions<L::Options>,
    ) -> WindowResult<impl FnOnce(Box<dyn Any + Send + Sync>) -> Self + use<T, L>> {
        let fabric = group.fabric().clone();
        let parts = exchange(group, part, options.home).await?;
        let layout = Self::layout(&fabric, 0, &options, group.len())?;
        let members = group.memory(layout.bytes).await?;
        let frame = Self::frame(&fabric, &members, layout, options)?;
        Ok(move |mine| {
            let parts = Parts::Attached { mine, parts };
            Self::around(&fabric, WindowMemory { members, element: size_of::<T>(), parts }, frame)
        })
    }

    /// Ends a window of memory that was contributed by [`Window::attach`], and returns that memory
    /// with its current contents. Collective over the members. Returns `None` for other windows.
    ///
    /// # Errors
    /// As [`Window::free`] and [`rdma_fabric::Registered::take`].
    pub async fn detach(self) -> WindowResult<Option<Vec<T>>> {
        let flushed = self.core.flush(None).await;
        self.barrier().await?;
        let taken = match Arc::try_unwrap(self.core) {
            Ok(Core { memory: WindowMemory { parts: Parts::Attached { mine, .. }, .. }, .. }) => {
                match mine.downcast::<Registered<T>>() {
                    Ok(mine) => Some(mine.take().await?),
                    Err(_) => None,
                }
            }
            _ => None,
        };
        flushed?;
        Ok(taken)
    }
}

/// Checks that all members of a group request the same number of elements.
fn agree(group: &mut Group, elements: usize) -> Boxed<'_, WindowResult<()>> {
    Box::pin(async move {
        let fabric = group.fabric().clone();
        if group.len() < fabric.ranks() {
            let all = group.allgather(elements as u64).await?;
            if let Some(other) = all.iter().position(|theirs| *theirs != elements as u64) {
                let (argument, other_argument) = (elements as u64, all[other]);
                let (collective, rank, other) = ("in_group", fabric.rank(), group.rank(other)?);
                let mismatch = Mismatch { collective, rank, argument, other, other_argument };
                return Err(FabricError::from(mismatch).into());
            }
        }
        Ok(())
    })
}

/// Returns the part that each member contributes.
fn exchange(
    group: &mut Group,
    part: Option<MemberPart>,
    home: Option<Rank>,
) -> Boxed<'_, WindowResult<Box<[MemberPart]>>> {
    Box::pin(async move {
        if let Some(home) = home {
            group.number(home)?;
        }
        // Whether the memory could be registered, its key, and its number of elements.
        let entry = part.map_or([0; 3], |part| [1, part.key.to_bits(), part.elements]);
        let entries = group.allgather(entry).await?;
        if let Some(number) = entries.iter().position(|[registered, ..]| *registered == 0) {
            return Err(WindowError::NotAttached { rank: group.rank(number)? });
        }
        let part = |[_, key, elements]: &[u64; 3]| MemberPart { key: RegionKey::from_bits(*key), elements: *elements };
        Ok(entries.iter().map(part).collect())
    })
}
