//! The [`Provider`] of a cluster: memory of this rank's node is accessed as shared memory, memory
//! of other nodes through libfabric.

use super::{directory::FarRegion, net::Net, polling, region::SharedRegion, transfer::Transfer};
use core::{
    pin::pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    Amo, Fabric, FabricError, Notice, OwnedMemory, Pact, Rank, Region, RegionKey, RemoteAddr, Result, Time, Uses,
    provider::{
        BarrierUnit, Boxed, Ended, Goal, HelperTask, Keyless, Leftover, Place, Posted, Provider, Queues, Sink, Slot,
        Source, Token,
    },
};
use std::{future::poll_fn, sync::Arc};
use tofu2_sim::shm::part::Part;

/// A handle of a rank, with its access to the node and the rank's state in the cluster.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) net: Arc<Net>,
    /// The rank's handle of its node's shared memory.
    pub(super) below: Fabric,
}

impl Cluster {
    /// Unwraps a region of this provider.
    fn below_of(region: Region) -> Result<(Region, super::region::Closing)> {
        let foreign = FabricError::Unsupported { feature: &"a region of another provider" };
        region.into_kept::<SharedRegion>().ok().and_then(SharedRegion::take).ok_or(foreign)
    }

    /// Returns the region of a place on another node. This rank must have looked it up: its offset
    /// in the owner's heap is meaningless in another job.
    fn far<'a>(&self, place: &'a Place) -> Result<&'a Arc<FarRegion>> {
        let foreign = FabricError::Unsupported { feature: &"a place of another provider" };
        place.kept::<Arc<FarRegion>>().filter(|region| region.net == self.net.id).ok_or(foreign)
    }

    /// Returns an operation on a place of another node.
    fn transfer<'a>(&'a self, far: &'a Place) -> Result<Transfer<'a>> {
        Transfer::new(&self.net, &self.below, self.far(far)?, far)
    }
}

fn posted(outcome: Result<Posted>) -> Posted {
    outcome.unwrap_or_else(Posted::failed)
}

impl Provider for Cluster {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        self.below.provider().alloc(bytes).map(|region| SharedRegion::over(&self.net, region))
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move {
            let mut below = pin!(self.below.provider().alloc_symmetric(bytes));
            let region = poll_fn(|cx| {
                self.net.look();
                below.as_mut().poll(cx)
            })
            .await?;
            Ok(SharedRegion::over(&self.net, region))
        })
    }

    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        self.below.provider().adopt(memory, uses).map(|region| SharedRegion::over(&self.net, region))
    }

    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        let taken = Self::below_of(region);
        Box::pin(async move {
            let (region, _closing) = taken?;
            self.below.provider().release(region).await
        })
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        if !self.net.is_far(addr.rank) {
            let place = self.below.provider().resolve(addr, len, align, width);
            // With such words, atomics of the CPU must not bypass the network.
            return if self.net.watched.is_some() { place.map(Place::hidden) } else { place };
        }
        let (region, anchor) = self.net.region(addr.rank, addr.region)?;
        if !Part::opens(&self.below, addr.region, region.lock) {
            return Err(FabricError::Locked { rank: addr.rank, region: addr.region });
        }
        addr.fits(len, align, region.len)?;
        Ok(Place::remote(addr, len, anchor))
    }

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        self.below.provider().read(from, into, waiting)?;
        if waiting && let Some(watched) = &self.net.watched {
            watched.saw(&self.net.part, from, into);
        }
        Ok(())
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        self.below.provider().write(to, from, waited)
    }

    fn ring(&self, place: &Place) {
        self.below.provider().ring(place);
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if !self.net.is_far(to.rank()) {
            return self.below.provider().put(to, from, notice);
        }
        posted(self.transfer(to).and_then(|transfer| match notice {
            None => transfer.put(from),
            Some(data) => transfer.put_with_notice(from, data),
        }))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        if !self.net.is_far(from.rank()) {
            return self.below.provider().get(from, to);
        }
        posted(self.transfer(from).and_then(|transfer| transfer.get(&to)))
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        if self.net.is_far(to.rank()) || self.net.is_far(from.rank()) {
            return Posted::failed(FabricError::Unsupported { feature: &"third-party copy" });
        }
        self.below.provider().copy(to, from)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        if !self.net.is_far(word.rank()) {
            return match self.net.own_by_nic(word) {
                Some(own) => posted(Transfer::new(&self.net, &self.below, &own, word).and_then(|own| own.atomic(amo))),
                None => self.below.provider().atomic(word, amo),
            };
        }
        posted(self.transfer(word).and_then(|transfer| transfer.atomic(amo)))
    }

    fn nop(&self) -> Posted {
        Posted::Over(0)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        polling::operation(&self.net, *token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.net.looking(|state| state.core.flights.is_over(token.0.get()))
    }

    fn forget(&self, token: Token) {
        self.net.with(|state| {
            let id = token.0.get();
            let core = &mut state.core;
            let Some(flight) = core.flights.get(id) else { return };
            flight.wanted = false;
            core.shed.extend(flight.waker.take());
            if flight.outcome.is_some() {
                core.flights.remove(id);
            }
        });
    }

    fn is_flushed(&self) -> bool {
        // Puts on this node are visible once they are posted, on processors that do not reorder
        // stores; on others, a flush needs a barrier.
        cfg!(target_arch = "x86_64") && !self.net.owes()
    }

    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>> {
        let found = self.below.provider().try_notice(waiting)?;
        if found.is_some() {
            self.net.attention.found();
        }
        // A waiting caller next polls its wait, which polls the network.
        if found.is_some() || waiting || !self.net.attention.wants() {
            return Ok(found);
        }
        self.net.progress();
        self.below.provider().try_notice(waiting)
    }

    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match goal {
            Goal::Flush(Some(rank)) if self.net.is_far(rank) => polling::flush(&self.net, slot, Some(rank), cx),
            Goal::Flush(None) => match self.below.provider().poll_wait(&mut Slot::default(), goal, cx) {
                Poll::Ready(Ok(())) => polling::flush(&self.net, slot, None, cx),
                other => other,
            },
            Goal::Room(None) => polling::room(&self.net, slot, None, cx),
            Goal::Room(Some(rank)) if self.net.is_far(rank) => polling::room(&self.net, slot, Some(rank), cx),
            Goal::Busy(_) | Goal::Charge(..) => Poll::Ready(Ok(())),
            _ => {
                if let (Some(watched), Goal::Word(word, _), true) = (&self.net.watched, goal, slot.is_empty()) {
                    watched.begin(word);
                }
                self.net.look_while_waiting();
                self.below.provider().poll_wait(slot, goal, cx)
            }
        }
    }

    fn end_wait(&self, slot: &mut Slot, goal: Goal<'_>, ended: Ended) {
        self.net.attention.found();
        if let (Some(watched), Goal::Word(word, _), false) = (&self.net.watched, goal, slot.is_empty()) {
            watched.end(word);
        }
        let own = match goal {
            Goal::Flush(rank) | Goal::Room(rank) => rank.is_none_or(|rank| self.net.is_far(rank)),
            _ => false,
        };
        if own {
            *slot = Slot::default();
        } else {
            self.below.provider().end_wait(slot, goal, ended);
        }
    }

    fn now(&self) -> Time {
        self.below.provider().now()
    }

    /// Runs the deferred cleanup of a dropped future on this thread. It waits only for the network,
    /// on which this thread makes progress.
    fn detach(&self, rest: Leftover<'_>) {
        let mut rest = rest.boxed();
        let mut patience = super::wait::Patience::new();
        while rest.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            if self.net.part.outlook(&rdma_fabric::Deps::Ranks(&[])).is_err_and(|error| error != FabricError::PeersLeft)
            {
                return;
            }
            self.net.look();
            patience.rest();
        }
    }

    fn abort(&self, text: &str, code: i32) -> FabricError {
        let error = self.below.provider().abort(text, code);
        self.net.aborted(text, code);
        error
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        Some(self)
    }

    fn keyless(&self) -> Option<&dyn Keyless> {
        Some(self)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        Some(self)
    }

    fn helper(&self, like: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let (net, facts) = (self.net.clone(), like.facts().clone());
        let task: HelperTask = Box::new(move |below: Fabric| {
            let me = below.rank();
            task(Fabric::new(me, facts, Cluster { net, below }))
        });
        self.below.provider().helper(&self.below, name, task)
    }
}

impl Keyless for Cluster {
    fn open(&self, like: &Fabric, pact: Pact) -> Result<Fabric> {
        if like.rank() != self.net.me {
            return Err(FabricError::Unsupported { feature: &"a handle like that of another rank" });
        }
        let none = FabricError::Unsupported { feature: &"memory without a key" };
        let below = self.below.provider().keyless().ok_or(none)?.open(&self.below, pact)?;
        Ok(like.beside(Cluster { net: self.net.clone(), below }))
    }

    fn holds(&self, _: Rank, _: RegionKey) -> Result<bool> {
        // No fabric over this provider is trusted.
        Ok(false)
    }

    fn abandon(&self, region: Region) {
        if let (Ok((region, _closing)), Some(keyless)) = (Self::below_of(region), self.below.provider().keyless()) {
            keyless.abandon(region);
        }
    }
}
