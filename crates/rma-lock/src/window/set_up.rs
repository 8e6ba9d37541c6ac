//! Creating and ending windows.

use super::{
    Window,
    core::{Core, MemberPart, Parts, WindowMemory, Words},
    epochs::OpenEpochs,
    error::{WindowError, WindowResult},
    fence::MemberBarrier,
    in_flight::InFlightTable,
};
use crate::AccessLock;
use core::{marker::PhantomData, sync::atomic::AtomicBool};
use rdma_fabric::{
    Fabric, FabricError, Group, GroupMemory, Pod, Rank, RegionKey, RegisterError, Registered, Uses,
    error::{Mismatch, OutOfMemory},
    provider::Boxed,
};
use std::sync::{Arc, Mutex};

const LINE: usize = 64;

/// The choices made when a window is created, the same at all members. `O` is the type of its
/// lock's options.
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
}

impl Layout {
    /// Returns the layout; `None` if it can't be addressed.
    fn new(data: usize, words: usize, lock_bytes: usize) -> Option<Self> {
        let after = data.checked_next_multiple_of(LINE)?;
        let lock = after.checked_add(words)?.checked_next_multiple_of(LINE)?;
        lock.checked_add(lock_bytes)?;
        Some(Layout { words: after, lock, lock_bytes })
    }

    fn bytes(self) -> usize {
        self.lock + self.lock_bytes
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Makes a window of the whole job with `elements` elements, all zero, at each rank
    /// (`MPI_Win_allocate`). Collective over the job: all ranks call it in the same order relative
    /// to other symmetric allocations.
    ///
    /// No rank keeps a table of the other ranks.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`]; whatever the lock reports.
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
        let memory = GroupMemory::symmetric(fabric, layout.bytes()).await?;
        Self::over(fabric, memory, elements, layout, options)
    }

    /// Makes a window of a group's members. Collective over the group; ranks outside it are not
    /// involved, alive or dead.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`FabricError::Mismatch`] at every member (in the world group, at one
    /// or more) if they ask for different numbers of elements; whatever the lock reports.
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
        let memory = group.memory(layout.bytes()).await?;
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
        let data = memory.part(0, elements * size_of::<T>())?;
        let data = WindowMemory { members: data, element: size_of::<T>(), parts: Parts::Allocated { elements } };
        Ok(Self::around(fabric, data, Self::frame(fabric, &memory, layout, options)?))
    }

    /// Makes what is around the data: the window's own words, and its lock.
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
    /// window is dropped nevertheless.
    pub async fn free(self) -> WindowResult<()> {
        let flushed = self.core.flush(None).await;
        self.barrier().await?;
        Ok(flushed?)
    }
}

impl<T: Pod + Send + Sync, L: AccessLock> Window<T, L> {
    /// Makes a window of memory that the members of a group already have (`MPI_Win_create`), of any
    /// length at each. Collective over the group. [`Window::detach`] gives the memory back.
    ///
    /// Accumulates need memory registered for [`Uses::Atomics`]; `docs/contract/existing-memory.md`
    /// says what that costs. Each member keeps a table of all members.
    ///
    /// # Errors
    /// Each with the memory: [`WindowError::Fabric`] from [`Fabric::register`];
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
        // Every member gets here, so that nobody waits for one that could not register.
        let attached = exchange(group, part, options.home).await;
        let attached = match attached {
            Ok(parts) => match Self::layout(&fabric, 0, &options, group.len()) {
                Ok(layout) => group.memory(layout.bytes()).await.map_err(Into::into).and_then(|memory| {
                    let frame = Self::frame(&fabric, &memory, layout, options)?;
                    Ok((parts, memory, frame))
                }),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        match (registered, attached) {
            (Ok(mine), Ok((parts, members, frame))) => {
                let parts = Parts::Attached { mine: Box::new(mine), parts };
                let data = WindowMemory { members, element: size_of::<T>(), parts };
                Ok(Self::around(&fabric, data, frame))
            }
            (Err(RegisterError { error, memory }), _) => Err((error.into(), memory)),
            (Ok(mine), Err(error)) => Err((error, mine.take().await.unwrap_or_default())),
        }
    }

    /// Ends a window of existing memory, and returns that memory with what was written to it.
    /// Collective over the members. Returns `None` for a window that was allocated.
    ///
    /// # Errors
    /// As [`Window::free`] and [`rdma_fabric::Registered::take`].
    pub async fn detach(self) -> WindowResult<Option<Vec<T>>> {
        let flushed = self.core.flush(None).await;
        self.barrier().await?;
        let taken = match Arc::try_unwrap(self.core) {
            Ok(Core { memory: WindowMemory { parts: Parts::Attached { mine, .. }, .. }, .. }) => {
                let mine = mine.downcast::<Registered<T>>().expect("it was registered as elements of the window");
                Some(mine.take().await?)
            }
            _ => None,
        };
        flushed?;
        Ok(taken)
    }
}

/// Checks that all members of a group ask for the same number of elements.
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
        let card = part.map_or([0; 3], |part| [1, part.key.to_bits(), part.elements]);
        let cards = group.allgather(card).await?;
        if let Some(number) = cards.iter().position(|[registered, ..]| *registered == 0) {
            return Err(WindowError::NotAttached { rank: group.rank(number)? });
        }
        let part = |[_, key, elements]: &[u64; 3]| MemberPart { key: RegionKey::from_bits(*key), elements: *elements };
        Ok(cards.iter().map(part).collect())
    })
}
