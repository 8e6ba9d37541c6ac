//! The provider of a rank's fabric: it passes what the network does to the simulator.
//!
//! The rank's own memory is that of this process, and read and written here. Operations on it are the
//! network's, as on any other memory, and take their time.

use super::{
    fabric::SteppedFabric,
    parking::{detach, is_noop},
    regions::{Registered, check},
};
use crate::wire::FabricCall;
use core::{
    future::ready,
    task::{Context, Poll},
};
use rdma_fabric::{
    Amo, Blocks, FabricError, Notice, OwnedMemory, Region, RemoteAddr, Result, Time, Uses,
    control_queue::{Queue, QueueLimits, QueueSpec},
    provider::{
        BarrierUnit, BlockPuts, Boxed, Deferred, Ended, Place, Posted, Provider, Queues, Sink, Source, Token, WaitFor,
        WaitState,
    },
};
use std::sync::PoisonError;

impl Provider for SteppedFabric {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        self.regions.alloc(&self.rank.0, bytes, false)
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move { self.regions.alloc(&self.rank.0, bytes, true) })
    }

    fn adopt(&self, memory: OwnedMemory, _: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        self.regions.adopt(&self.rank.0, memory)
    }

    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        let memory = region.into_registration::<Registered>().ok().and_then(Registered::release);
        let refused = FabricError::Unsupported { feature: &"giving memory back that was allocated" };
        Box::pin(ready(memory.ok_or(refused)))
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _: usize) -> Result<Place> {
        let link = &self.rank.0;
        if addr.rank == link.rank {
            return match self.regions.place(addr, len, align, self.keep_alive.clone()) {
                // The simulator knows whether there was such a region.
                Err(stale @ FabricError::StaleRegion { rank, region: key }) => {
                    let len: Result<usize> = link.fabric(FabricCall::RegionLen { rank, key });
                    Err(len.err().unwrap_or(stale))
                }
                resolved => resolved,
            };
        }
        let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
        let region = remote.len_of(link, addr.rank, addr.region)?;
        check(addr, len, align, region)?;
        Ok(Place::remote(addr, len, self.keep_alive.clone()))
    }

    fn read(&self, from: &Place, into: &mut [u8], _: bool) -> Result<()> {
        self.regions.copy_out(&self.target(from)?, into)
    }

    fn write(&self, to: &Place, from: &[u8], _: bool) -> Result<()> {
        let target = self.target(to)?;
        self.regions.copy_in(&target, from)?;
        self.rank.0.deferred().written(&target);
        Ok(())
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if let Source::Place(place) = from
            && let Err(error) = self.target(place)
        {
            return Posted::Failed(error);
        }
        self.post(self.target(to).map(|to| FabricCall::Put { to, from: from.into(), notice }))
    }

    fn get(&self, from: &Place, mut to: Sink<'_>) -> Posted {
        if let Sink::Place(place) = &to
            && let Err(error) = self.target(place)
        {
            return Posted::Failed(error);
        }
        self.post(self.target(from).map(|from| FabricCall::Get { from, to: (&mut to).into() }))
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        let targets = self.target(to).and_then(|to| Ok((to, self.target(from)?)));
        self.post(targets.map(|(to, from)| FabricCall::Copy { to, from }))
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.post(self.target(word).map(|word| FabricCall::Atomic { word, amo }))
    }

    fn nop(&self) -> Posted {
        self.post(Ok(FabricCall::Nop {}))
    }

    fn poll(&self, token: &mut Token, mut into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let (link, number) = (&self.rank.0, token.0.get());
        let (done, is_in_flight) = {
            let mut deferred = link.deferred();
            (deferred.done(number), deferred.is_in_flight(number))
        };
        let waits = !is_noop(cx);
        let polled = match done {
            Some(done) => done.map(Some),
            None if is_in_flight => Ok(None),
            None => link.fabric(FabricCall::Poll { number, into: (&mut into).into(), waits }),
        };
        let polled = polled.and_then(|polled| {
            if polled.is_none() && waits {
                link.deferred().awaits(number);
                link.listen(cx)?;
            }
            Ok(polled)
        });
        match polled {
            Ok(Some(word)) => Poll::Ready(Ok(word)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn test(&self, token: &Token) -> bool {
        let (link, number) = (&self.rank.0, token.0.get());
        let (is_done, is_in_flight) = {
            let deferred = link.deferred();
            (deferred.is_done(number), deferred.is_in_flight(number))
        };
        is_done || !is_in_flight && link.fabric(FabricCall::Test { number }).unwrap_or(true)
    }

    fn forget(&self, token: Token) {
        let (link, number) = (&self.rank.0, token.0.get());
        if link.deferred().forget(number) {
            link.tell(FabricCall::Forget { number });
        }
    }

    fn is_flushed(&self) -> bool {
        self.rank.0.fabric(FabricCall::IsFlushed {}).unwrap_or(false)
    }

    fn try_notice(&self, _: bool) -> Result<Option<Notice>> {
        self.rank.0.fabric(FabricCall::TryNotice {})
    }

    /// The state's first word is the number of the wait.
    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let link = &self.rank.0;
        if let WaitFor::Word(word, _) = &wait_for
            && let Err(error) = self.target(word)
        {
            return Poll::Ready(Err(error));
        }
        let wait = &mut wait_state.0[0];
        let (outcome, has_begun) = {
            let mut deferred = link.deferred();
            if *wait == 0 {
                *wait = deferred.next_wait();
            }
            (deferred.outcome(*wait), deferred.has_begun(*wait))
        };
        let ended = match outcome {
            Some(outcome) => Some(outcome),
            None if has_begun => None,
            // The caller has checked for the other events, and no time has passed. A task that waits receives the
            // outcome from a park.
            None if is_noop(cx) && !matches!(wait_for, WaitFor::Word(..) | WaitFor::Notice(_)) => {
                match link.fabric(FabricCall::PollWait { wait: *wait, event: wait_for.into() }) {
                    Ok(true) => Some(Ok(())),
                    Ok(false) => {
                        link.deferred().begin(*wait);
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            None => {
                link.deferred().defer(*wait, wait_for.into());
                None
            }
        };
        let ended = ended.or_else(|| link.listen(cx).err().map(Err));
        match ended {
            Some(ended) => {
                self.end(wait_state);
                Poll::Ready(ended)
            }
            None => Poll::Pending,
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState, _: WaitFor<'_>, _: Ended) {
        self.end(wait_state);
    }

    fn now(&self) -> Time {
        self.rank.0.fabric(FabricCall::Now {}).unwrap_or(Time::ZERO)
    }

    fn detach(&self, deferred: Deferred<'_>) {
        detach(deferred);
    }

    fn abort(&self, text: &str, code: i32) -> FabricError {
        let aborted = self.rank.0.fabric(FabricCall::Abort { text: text.to_owned(), code: code as u32 });
        let rank = self.rank.rank();
        aborted.map_or_else(|error| error, |()| FabricError::Aborted { rank, code })
    }

    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        Some(self)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        Some(self)
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        Some(&self.rank)
    }
}

impl SteppedFabric {
    fn end(&self, wait_state: &mut WaitState) {
        let WaitState([wait, ..]) = core::mem::take(wait_state);
        let link = &self.rank.0;
        if wait != 0 && link.deferred().end(wait) {
            link.tell(FabricCall::EndWait { wait });
        }
    }
}

impl BlockPuts for SteppedFabric {
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted {
        let targets = self.target(to).and_then(|to| Ok((to, self.target(from)?)));
        self.post(targets.map(|(to, from)| FabricCall::PutBlocks { to, from, len, blocks }))
    }
}

impl Queues for SteppedFabric {
    fn limits(&self) -> QueueLimits {
        self.rank.0.fabric(FabricCall::QueueLimits {}).unwrap_or(QueueLimits::NONE)
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>> {
        self.rank.open_queue(spec, None, false)
    }
}
