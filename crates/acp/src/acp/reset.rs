//! Starting over with other ranks.

use super::{Acp, channel_table};
use crate::{AcpError, Result, directory::Resolver, starter::Layout, state::State};
use core::{future::Future, sync::atomic::Ordering::Relaxed};
use rdma_fabric::{Group, Rank, provider::Boxed};

impl Acp {
    /// Starts over as rank `rank`: completes all operations, frees every registration, and zeroes
    /// the starter memories. The numbers given by all ranks must be a permutation. Collective.
    /// Earlier addresses must no longer be used.
    ///
    /// # Errors
    /// [`AcpError::NoPermutation`], on all ranks, in which case nothing has changed;
    /// [`AcpError::Overlapping`]; [`AcpError::Fabric`].
    pub fn reset(&self, rank: Rank) -> impl Future<Output = Result<()>> {
        let reset: Boxed<'_, Result<()>> = Box::pin(async move {
            self.complete_all().await?;
            let mut world = self.take_world("a reset")?;
            let done = self.restart(&mut world, rank).await;
            self.give_world(world);
            done
        });
        reset
    }

    async fn restart(&self, world: &mut Group, rank: Rank) -> Result<()> {
        let fabric = self.fabric();
        let numbers = self.while_serving(world.allgather(rank.number())).await.map_err(|error| self.named(error))?;
        let mut places = vec![None; numbers.len()];
        for (place, number) in numbers.iter().enumerate() {
            if let Some(entry) = places.get_mut(*number as usize) {
                *entry = Some(Rank::new(place as u32));
            }
        }
        if let Some(missing) = places.iter().position(Option::is_none) {
            return Err(AcpError::NoPermutation { rank: Rank::new(missing as u32) });
        }
        let same = numbers.iter().enumerate().all(|(place, number)| place == *number as usize);
        let places = (!same).then(|| places.into_iter().flatten().collect());
        let layout = Layout::new(fabric, &self.inner.options);
        // No peer has operations in flight: each has completed its own.
        let memory = fabric.alloc_symmetric(layout.bytes()).await?;
        let resolver = Resolver::new(fabric, layout, memory.key(), places);
        let table = channel_table(&resolver, rank)?;
        self.channels(|channels| channels.renew(rank, table))??;
        let begun = State::new(memory, rank, resolver, &self.inner.options)?;
        if let Some(queue) = &begun.queue {
            queue.running().await?;
        }
        let mut before = self.with(|state| {
            self.settle(0);
            self.passed(0);
            core::mem::replace(state, begun)
        })?;
        if let Some(queue) = before.queue.take() {
            queue.end().await?;
        }
        drop(before);
        self.inner.me.store(rank.number(), Relaxed);
        world.barrier().await.map_err(|error| self.named(error))
    }
}
