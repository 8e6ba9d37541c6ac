//! The [`Provider`] of a cluster: memory of this rank's node is accessed as shared memory, memory
//! of other nodes through libfabric.

use super::{directory::RemoteRegion, net::Net, polling, region::SharedRegion, transfer::Transfer};
use core::{
    pin::pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    AccessPolicy, Amo, Fabric, FabricError, Notice, OwnedMemory, Rank, Region, RegionKey, RemoteAddr, Result, Time,
    Uses,
    provider::{
        BarrierUnit, Boxed, Deferred, Ended, HelperTask, Place, Posted, Protected, Provider, Queues, Sink, Source,
        Token, WaitFor, WaitState,
    },
};
use std::{future::poll_fn, sync::Arc};
use tofu2_shm::part::Part;

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
        region.into_registration::<SharedRegion>().ok().and_then(SharedRegion::take).ok_or(foreign)
    }

    /// Returns the region of a place on another node. This rank must have looked it up: its offset
    /// in the owner's heap is meaningless in another job.
    fn remote<'a>(&self, place: &'a Place) -> Result<&'a Arc<RemoteRegion>> {
        let foreign = FabricError::Unsupported { feature: &"a place of another provider" };
        place.keep_alive::<Arc<RemoteRegion>>().filter(|region| region.net == self.net.id).ok_or(foreign)
    }

    /// Returns an operation on a place of another node.
    fn transfer<'a>(&'a self, remote: &'a Place) -> Result<Transfer<'a>> {
        Transfer::new(&self.net, &self.below, self.remote(remote)?, remote)
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
        if !self.net.is_remote(addr.rank) {
            let place = self.below.provider().resolve(addr, len, align, width);
            // With such words, atomics of the CPU must not bypass the network.
            return if self.net.watched.is_some() { place.map(Place::hidden) } else { place };
        }
        let (region, keep_alive) = self.net.region(addr.rank, addr.region)?;
        if !Part::opens(&self.below, addr.region, region.lock) {
            return Err(FabricError::Locked { rank: addr.rank, region: addr.region });
        }
        addr.fits(len, align, region.len)?;
        Ok(Place::remote(addr, len, keep_alive))
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

    fn wake(&self, place: &Place) {
        self.below.provider().wake(place);
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if !self.net.is_remote(to.rank()) {
            return self.below.provider().put(to, from, notice);
        }
        posted(self.transfer(to).and_then(|transfer| match notice {
            None => transfer.put(from),
            Some(data) => transfer.put_with_notice(from, data),
        }))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        if !self.net.is_remote(from.rank()) {
            return self.below.provider().get(from, to);
        }
        posted(self.transfer(from).and_then(|transfer| transfer.get(&to)))
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        if self.net.is_remote(to.rank()) || self.net.is_remote(from.rank()) {
            return Posted::failed(FabricError::Unsupported { feature: &"third-party copy" });
        }
        self.below.provider().copy(to, from)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        if !self.net.is_remote(word.rank()) {
            return match self.net.own_by_nic(word) {
                Some(own) => posted(Transfer::new(&self.net, &self.below, &own, word).and_then(|own| own.atomic(amo))),
                None => self.below.provider().atomic(word, amo),
            };
        }
        posted(self.transfer(word).and_then(|transfer| transfer.atomic(amo)))
    }

    fn nop(&self) -> Posted {
        Posted::Complete(0)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        polling::operation(&self.net, *token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.net.after_polling(|state| state.core.flights.is_complete(token.0.get()))
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
        cfg!(target_arch = "x86_64") && !self.net.has_unreported()
    }

    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>> {
        let found = self.below.provider().try_notice(waiting)?;
        if found.is_some() {
            self.net.progress.found();
        }
        // A waiting caller next polls its wait, which polls the network.
        if found.is_some() || waiting || !self.net.progress.wants() {
            return Ok(found);
        }
        self.net.progress();
        self.below.provider().try_notice(waiting)
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Flush(Some(rank)) if self.net.is_remote(rank) => {
                polling::flush(&self.net, wait_state, Some(rank), cx)
            }
            WaitFor::Flush(None) => match self.below.provider().poll_wait(&mut WaitState::default(), wait_for, cx) {
                Poll::Ready(Ok(())) => polling::flush(&self.net, wait_state, None, cx),
                other => other,
            },
            WaitFor::Room(None) => polling::room(&self.net, wait_state, None, cx),
            WaitFor::Room(Some(rank)) if self.net.is_remote(rank) => {
                polling::room(&self.net, wait_state, Some(rank), cx)
            }
            WaitFor::Busy(_) | WaitFor::Charge(..) => Poll::Ready(Ok(())),
            _ => {
                if let (Some(watched), WaitFor::Word(word, _), true) =
                    (&self.net.watched, wait_for, wait_state.is_empty())
                {
                    watched.begin(word);
                }
                self.net.poll_while_waiting();
                self.below.provider().poll_wait(wait_state, wait_for, cx)
            }
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        self.net.progress.found();
        if let (Some(watched), WaitFor::Word(word, _), false) = (&self.net.watched, wait_for, wait_state.is_empty()) {
            watched.end(word);
        }
        let own = match wait_for {
            WaitFor::Flush(rank) | WaitFor::Room(rank) => rank.is_none_or(|rank| self.net.is_remote(rank)),
            _ => false,
        };
        if own {
            *wait_state = WaitState::default();
        } else {
            self.below.provider().end_wait(wait_state, wait_for, ended);
        }
    }

    fn now(&self) -> Time {
        self.below.provider().now()
    }

    /// Runs the deferred cleanup of a dropped future on this thread. It waits only for the network,
    /// on which this thread makes progress.
    fn detach(&self, deferred: Deferred<'_>) {
        let mut deferred = deferred.boxed();
        let mut patience = super::wait::Patience::new();
        while deferred.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            if self.net.part.outlook(&rdma_fabric::Deps::Ranks(&[])).is_err_and(|error| error != FabricError::PeersLeft)
            {
                return;
            }
            self.net.look();
            patience.pause();
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

    fn protected(&self) -> Option<&dyn Protected> {
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

impl Protected for Cluster {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        if like.rank() != self.net.me {
            return Err(FabricError::Unsupported { feature: &"a handle like that of another rank" });
        }
        let none = FabricError::Unsupported { feature: &"protected memory" };
        let below = self.below.provider().protected().ok_or(none)?.open(&self.below, policy)?;
        Ok(like.sibling(Cluster { net: self.net.clone(), below }))
    }

    fn holds(&self, _: Rank, _: RegionKey) -> Result<bool> {
        // No fabric over this provider is trusted.
        Ok(false)
    }

    fn abandon(&self, region: Region) {
        if let (Ok((region, _closing)), Some(protected)) = (Self::below_of(region), self.below.provider().protected()) {
            protected.abandon(region);
        }
    }
}
