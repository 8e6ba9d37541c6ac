//! Windows of memory that their members already have.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    Window,
    core::{Core, MemberPart, Parts, WindowMemory},
    error::{WindowError, WindowResult},
    set_up::WindowOptions,
};
use crate::AccessLock;
use core::any::Any;
use rdma_fabric::{Group, Pod, Rank, RegionKey, RegisterError, Registered, RemoteAddr, Uses, provider::Boxed};
use std::sync::Arc;

impl<T: Pod + Send + Sync, L: AccessLock> Window<T, L> {
    /// Makes a window of memory that the members of a group already have (`MPI_Win_create`), of any
    /// length at each. Collective over the group. [`Window::detach`] returns the memory.
    ///
    /// Accumulates need memory registered for [`Uses::Atomics`]; `docs/contract/existing-memory.md`
    /// lists the costs. Each member stores a table of all members.
    ///
    /// # Errors
    /// Each returns the memory: [`WindowError::Fabric`] from [`rdma_fabric::Fabric::register`];
    /// [`WindowError::NotAttached`] if another member's memory could not be registered; as
    /// [`Window::in_group`].
    pub async fn attach(
        group: &mut Group,
        memory: Vec<T>,
        uses: Uses,
        options: WindowOptions<L::Options>,
    ) -> Result<Self, (WindowError, Vec<T>)> {
        let fabric = group.fabric().clone();
        let registered = Registered::new(&fabric, memory, uses);
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
