//! Creates and frees windows.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    Window,
    core::{Core, Parts, WindowMemory, Words},
    epochs::OpenEpochs,
    error::WindowResult,
    fence::MemberBarrier,
    in_flight::InFlightTable,
};
use crate::AccessLock;
use core::{marker::PhantomData, sync::atomic::AtomicBool};
use rdma_fabric::{
    Fabric, FabricError, Group, GroupMemory, Pod, Rank,
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
pub(super) struct Layout {
    words: usize,
    lock: usize,
    lock_bytes: usize,
    pub(super) bytes: usize,
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

    pub(super) fn layout(
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
    pub(super) fn frame(
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

    pub(super) fn around(fabric: &Fabric, data: WindowMemory, (words, lock): (Words, L)) -> Self {
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
