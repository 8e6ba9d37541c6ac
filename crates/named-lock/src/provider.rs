//! A lock's file as the fabric of one process: the minimal provider on which the lock's protocol
//! runs.
//!
//! Each rank has one region, its part of the file, with the same key. The caller executes
//! operations immediately in mapped memory; the provider handles only long copies and accesses to
//! dead ranks. Notices, queues and allocations are not supported.

use crate::{
    doorbell,
    layout::{self, ALIVE, RANKS},
    mapping::Mapping,
    slots::{self, State},
};
use core::task::{Context, Poll, Waker};
use rdma_fabric::{
    Amo, Atomics, Caps, Deps, Fabric, FabricError, Notice, PutOrder, Rank, Region, RegionKey, RemoteAddr, Result, Time,
    access,
    error::Literal,
    provider::{
        Boxed, Deferred, Ended, JobFacts, KeepAlive, Nodes, Place, Posted, Provider, Sink, Source, Token, WaitFor,
        WaitState,
    },
};
use std::{sync::Arc, time::Instant};

/// The key of each rank's part.
const PART: RegionKey = RegionKey { index: 0, generation: ALIVE };

/// One process's access to a lock's file.
#[derive(Debug)]
pub(crate) struct RankHandle {
    map: Arc<Mapping>,
    keep_alive: KeepAlive,
    me: Rank,
    start: Instant,
}

/// Returns the fabric of `me`, whose clock starts at `start`.
pub(crate) fn fabric(map: &Arc<Mapping>, me: Rank, start: Instant) -> Fabric {
    let mut caps = Caps::weakest();
    // Operations complete when they are posted, in the order in which a processor executes them.
    caps.put_order = PutOrder::AllTargets;
    caps.puts_in_order = access::STORES_IN_ORDER;
    caps.coherent_atomics = true;
    caps.atomics = Atomics::Hardware;
    caps.strong_progress = true;
    let facts = JobFacts { ranks: RANKS, nodes: Nodes::Blocks(RANKS), caps };
    let handle = RankHandle { map: map.clone(), keep_alive: KeepAlive::new(map.clone()), me, start };
    Fabric::new(me, Arc::new(facts), handle)
}

fn unsupported(feature: Literal) -> FabricError {
    FabricError::Unsupported { feature }
}

impl RankHandle {
    /// Returns an error if an access that cannot be made directly is refused.
    fn refusal(&self, addr: RemoteAddr) -> Result<()> {
        if addr.rank.index() >= RANKS {
            return Err(FabricError::NoSuchRank { rank: addr.rank, ranks: RANKS });
        }
        if addr.region != PART {
            return Err(FabricError::StaleRegion { rank: addr.rank, region: addr.region });
        }
        if slots::is_dead(&self.map, addr.rank.index()) {
            return Err(FabricError::PeerLost { rank: addr.rank });
        }
        Ok(())
    }

    /// Executes an operation at `addr` unless it is refused, and returns its result.
    fn done<T>(&self, addr: RemoteAddr, act: impl FnOnce(&Mapping) -> Option<T>) -> Result<T> {
        self.refusal(addr)?;
        act(&self.map).ok_or_else(|| FabricError::out_of_bounds(addr, 0, layout::part_bytes() as u64))
    }

    fn posted(outcome: Result<u64>) -> Posted {
        outcome.map_or_else(Posted::failed, Posted::Complete)
    }

    /// Copies between two parts through this process.
    fn copied(&self, to: RemoteAddr, from: RemoteAddr, len: usize) -> Result<()> {
        let mut bytes = vec![0; len];
        self.done(from, |map| map.copy_out(from, &mut bytes).then_some(()))?;
        self.done(to, |map| map.copy_in(to, &bytes).then_some(()))?;
        doorbell::ring(&self.map, to.rank.index());
        Ok(())
    }

    /// Checks that a wait for `deps` can still succeed. A process that has left ends only waits for
    /// that process alone: other processes may still join.
    fn outlook(&self, deps: &Deps<'_>) -> Result<()> {
        let lost = |rank: &Rank| rank.index() < RANKS && slots::is_dead(&self.map, rank.index());
        let lost = match *deps {
            Deps::All => (0..RANKS as u32).map(Rank::new).find(lost),
            Deps::One(rank) => Some(rank).filter(lost),
            Deps::Ranks(ranks) => ranks.iter().copied().find(lost),
            Deps::Step { writer, group } => {
                Some(writer).filter(lost).or_else(|| group.unwrap_or_default().iter().copied().find(lost))
            }
        };
        match (lost, *deps) {
            (Some(rank), _) => Err(FabricError::PeerLost { rank }),
            (None, Deps::One(rank)) if self.has_left(rank) => Err(FabricError::PeersLeft),
            (None, _) => Ok(()),
        }
    }

    fn has_left(&self, rank: Rank) -> bool {
        slots::MEMBERS.contains(&rank.index()) && matches!(State::of(&self.map, rank.index()).0, State::Free { .. })
    }
}

impl Provider for RankHandle {
    fn alloc(&self, _: usize) -> Result<Region> {
        Err(unsupported(&"memory beside a lock's own"))
    }

    /// Returns this rank's part, even if it was returned before: the file belongs to a single lock.
    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        let fits = bytes <= layout::part_bytes();
        let region = if fits { Ok(Region::new(PART, bytes, None, ())) } else { self.alloc(bytes) };
        Box::pin(async move { region })
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        addr.fits(len, align, layout::part_bytes() as u64)?;
        self.done(addr, |map| map.place(addr, len, &self.keep_alive))
    }

    fn read(&self, from: &Place, into: &mut [u8], _waiting: bool) -> Result<()> {
        self.done(from.addr(), |map| map.copy_out(from.addr(), into).then_some(()))
    }

    fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
        self.done(to.addr(), |map| map.copy_in(to.addr(), from).then_some(()))?;
        doorbell::ring(&self.map, to.rank().index());
        Ok(())
    }

    fn wake(&self, place: &Place) {
        if place.rank().index() < RANKS {
            doorbell::ring(&self.map, place.rank().index());
        }
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        RankHandle::posted(match (from, notice) {
            (_, Some(_)) => Err(unsupported(&"notices")),
            (Source::Bytes(bytes), None) => self.write(to, bytes, true).map(|()| 0),
            (Source::Place(own), None) => self.copied(to.addr(), own.addr(), own.len()).map(|()| 0),
        })
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        RankHandle::posted(match to {
            Sink::Bytes(bytes) => self.read(from, bytes, false).map(|()| 0),
            Sink::Place(own) => self.copied(own.addr(), from.addr(), own.len()).map(|()| 0),
        })
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        if word.len() != 8 {
            return Posted::failed(unsupported(&"atomics of 4 bytes"));
        }
        let old = self.done(word.addr(), |map| map.modify(word.addr(), amo));
        self.wake(word);
        RankHandle::posted(old)
    }

    fn nop(&self) -> Posted {
        Posted::Complete(0)
    }

    fn poll(&self, _: &mut Token, _: Sink<'_>, _: &mut Context<'_>) -> Poll<Result<u64>> {
        Poll::Ready(Err(unsupported(&"an operation of another provider")))
    }

    fn test(&self, _: &Token) -> bool {
        true
    }

    fn forget(&self, _: Token) {}

    fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
        Err(unsupported(&"notices"))
    }

    /// Polls a wait, which [`crate::block_on`] polls again. The wait state stores the number of
    /// deaths at the last check.
    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, _: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Word(_, deps) => {
                let known = 1 + slots::deaths(&self.map);
                if wait_state.0[0] != known {
                    wait_state.0[0] = known;
                    self.outlook(&deps)?;
                } else if let Deps::One(_) = deps {
                    self.outlook(&deps)?;
                }
                Poll::Pending
            }
            WaitFor::Until(at) if self.now() < at => Poll::Pending,
            WaitFor::Flush(_) => {
                access::barrier();
                Poll::Ready(Ok(()))
            }
            WaitFor::Notice(_) => Poll::Ready(Err(unsupported(&"notices"))),
            WaitFor::Until(_) | WaitFor::Room(_) | WaitFor::Busy(_) | WaitFor::Charge(..) => Poll::Ready(Ok(())),
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState, _: WaitFor<'_>, _: Ended) {
        *wait_state = WaitState::default();
    }

    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// Operations complete when they are posted, so the remaining work never waits.
    fn detach(&self, deferred: Deferred<'_>) {
        let over = deferred.poll_once(&mut Context::from_waker(Waker::noop()));
        debug_assert!(over.is_ready() || std::thread::panicking(), "{} left a future that waits for others", self.me);
    }
}
