//! The [`Provider`] over shared memory: all operations that mapped places do not execute
//! themselves.

use super::{
    endpoint::Endpoint,
    helpers,
    memory::{
        adopted, existing, locked,
        place::{self, LocatedPlace},
        regions::{self, RegionKind, Resolved},
        registration::Registration,
        transfers,
    },
    waiting::{Wait, WaitsFor, wait},
};
use core::{
    hint::spin_loop,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    AccessPolicy, Amo, Blocks, Fabric, FabricError, Keyring, Mapped, Notice, OwnedMemory, Rank, Region, RegionKey,
    RemoteAddr, Result, Time, Uses, access,
    provider::{
        BarrierUnit, BlockPuts, Boxed, Deferred, Ended, HelperTask, Multicast, Place, Posted, Protected, Provider,
        Queues, SHORT, Sink, Source, Token, WaitFor, WaitState,
    },
};

impl Provider for Endpoint {
    /// Allocates memory. If only memory that was freed within the last 20 ms is left, blocks until
    /// that time has elapsed.
    fn alloc(&self, bytes: usize) -> Result<Region> {
        let taken = match self.keyring() {
            None => self.take_extent(bytes, RegionKind::Heap, |_, _| ())?,
            Some(ring) => self.take_policy_extent(bytes, ring.local_terms())?,
        };
        Ok(Registration::local(self.clone(), bytes, taken))
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(locked::alloc_symmetric(self, bytes))
    }

    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        if let Err(error) = self.only_with_keys() {
            return Err((error, memory));
        }
        existing::adopt(self, memory, uses).map(|held| Registration::existing(self.clone(), held))
    }

    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        Box::pin(async move {
            let allocated = FabricError::Unsupported { feature: &"giving memory back that was allocated" };
            let Ok(mut kept) = region.into_registration::<Registration>() else { return Err(allocated) };
            if !kept.close() {
                return Err(allocated);
            }
            let mut memory = None;
            wait::until_ready(self, WaitsFor::Itself, || {
                memory = kept.try_take();
                Ok(memory.is_some())
            })
            .await?;
            memory.ok_or(FabricError::Unsupported { feature: &"taking memory twice" })
        })
    }

    /// Resolves a place for any width: where memory is accessed in cells, other widths are
    /// assembled from them.
    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, _width: usize) -> Result<Place> {
        let target = self.job().segment(addr.rank)?;
        if self.job().is_lost(addr.rank) {
            return Err(self.job().loss_of(addr.rank));
        }
        let opens = |key, terms: Option<_>| {
            self.keyring()
                .is_some_and(|ring| terms.map_or_else(|| ring.opens(key), |terms| ring.local_terms() == terms))
        };
        let outside = match regions::resolve(target, addr, len, align, opens)? {
            Resolved::Heap(piece) => {
                let corrupt = FabricError::Corrupt { rank: addr.rank, what: &"an entry of the region table" };
                return piece.place(addr, self.job().keep_alive(addr.rank)?).ok_or(corrupt);
            }
            Resolved::Staged(piece) => adopted::Outside::Staged(piece),
            Resolved::Adopted { region_len } => adopted::resolve(self.job(), self.me(), addr, len, align, region_len)?,
        };
        Ok(place::outside_of(target, addr, outside))
    }

    fn read(&self, from: &Place, into: &mut [u8], _waiting: bool) -> Result<()> {
        transfers::get(self, &self.located(from)?, Sink::Bytes(into))
    }

    fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
        let to = self.located(to)?;
        transfers::put(self, &to, &Source::Bytes(from))?;
        to.ring();
        Ok(())
    }

    fn wake(&self, place: &Place) {
        place::ring(place);
    }

    #[inline]
    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if let Some(data) = notice
            && self.notify_fast(to, &from, data)
        {
            return Posted::Complete(0);
        }
        self.put_general(to, &from, notice)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        let own = if let Sink::Place(own) = &to { Some(*own) } else { None };
        match self.located(from).and_then(|from| transfers::get(self, &from, to)) {
            Ok(()) => {
                if let Some(Ok(own)) = own.map(|own| self.located(own)) {
                    own.ring();
                }
                Posted::Complete(0)
            }
            Err(error) => Posted::failed(error),
        }
    }

    /// Copies with this CPU, from segment to segment.
    fn copy(&self, to: &Place, from: &Place) -> Posted {
        let copied = self.located(to).and_then(|to| {
            transfers::between(self, &to, &self.located(from)?)?;
            to.ring();
            Ok(())
        });
        copied.map_or_else(Posted::failed, |()| Posted::Complete(0))
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        match self.located(word).and_then(|word| transfers::modify(self, &word, amo)) {
            Ok(old) => Posted::Complete(old),
            Err(error) => Posted::failed(error),
        }
    }

    fn nop(&self) -> Posted {
        Posted::Complete(0)
    }

    fn poll(&self, _: &mut Token, _: Sink<'_>, _: &mut Context<'_>) -> Poll<Result<u64>> {
        Poll::Ready(Err(FabricError::Unsupported { feature: &"an operation of another provider" }))
    }

    fn test(&self, _: &Token) -> bool {
        true
    }

    fn forget(&self, _: Token) {}

    #[inline]
    fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
        if self.is_of_helper() {
            return Err(helpers::NO_NOTICES);
        }
        match self.take_fast() {
            Some(notice) => Ok(Some(notice)),
            None => self.take_general(),
        }
    }

    /// Polls a wait. A rank's own queues are never full. A target's notice queue is checked
    /// periodically, at most 200 µs apart; if it is full and the target has left, the result is
    /// [`FabricError::PeersLeft`]. A flush is a full barrier, after which all puts of this CPU are
    /// visible. Computing takes real time, so waits for it end immediately.
    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Word(..) | WaitFor::Notice(_) if Wait::polls_once_more(self, wait_state) => {
                spin_loop();
                Poll::Ready(Ok(()))
            }
            WaitFor::Word(word, deps) => {
                let what = WaitsFor::Word(self.located(word)?.watched_at());
                Wait::resume(self, wait_state, |wait| wait.until_polled(cx, what, &deps))
            }
            WaitFor::Notice(deps) => {
                Wait::resume(self, wait_state, |wait| wait.until_polled(cx, WaitsFor::Notice, &deps))
            }
            WaitFor::Room(None) | WaitFor::Busy(_) | WaitFor::Charge(..) => Poll::Ready(Ok(())),
            WaitFor::Room(Some(rank)) => Wait::resume(self, wait_state, |wait| {
                wait.until_ready(cx, WaitsFor::Room(rank), &mut || self.has_room(rank))
            }),
            WaitFor::Flush(target) => {
                access::barrier();
                Poll::Ready(match target.map(|rank| (rank, self.job().segment(rank))) {
                    Some((rank, Ok(_))) if self.job().is_lost(rank) => Err(self.job().loss_of(rank)),
                    Some((_, Err(error))) => Err(error),
                    Some(_) => Ok(()),
                    None => self.job().control.not_aborted(),
                })
            }
            WaitFor::Until(at) => {
                let at = self.instant(at);
                Wait::resume(self, wait_state, |wait| wait.until_time(cx, at))
            }
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState, _: WaitFor<'_>, _: Ended) {
        Wait::end(self, wait_state);
    }

    fn now(&self) -> Time {
        Time::ZERO + self.job().start().elapsed()
    }

    fn detach(&self, deferred: Deferred<'_>) {
        finish_leftover(self.me(), deferred);
    }

    fn abort(&self, text: &str, code: i32) -> FabricError {
        self.abort_job(text, code)
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        Some(self)
    }

    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        Some(self)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        Some(self)
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        Some(self)
    }

    fn protected(&self) -> Option<&dyn Protected> {
        Some(self)
    }

    fn helper(&self, _: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        helpers::start(self, name, task)
    }
}

impl Endpoint {
    /// Returns the bytes of a place of this job.
    fn located<'a>(&self, place: &'a Place) -> Result<LocatedPlace<'a>> {
        LocatedPlace::of(self.job(), place)
    }

    #[inline(never)]
    fn put_general(&self, to: &Place, from: &Source<'_>, notice: Option<u64>) -> Posted {
        let to = match self.located(to) {
            Ok(to) => to,
            Err(error) => return Posted::failed(error),
        };
        if let Some(data) = notice {
            return self.notify_general(&to, from, data);
        }
        match transfers::put(self, &to, from) {
            Ok(()) => {
                to.ring();
                Posted::Complete(0)
            }
            Err(error) => Posted::failed(error),
        }
    }
}

/// Copies with this CPU, to one member after another.
impl Multicast for Endpoint {
    fn reaches(&self, _: &[Rank]) -> Result<()> {
        Ok(())
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        let mut puts = to.iter().map(|to| self.put_general(to, &from, None));
        puts.find(|put| !matches!(put, Posted::Complete(_))).unwrap_or(Posted::Complete(0))
    }
}

/// Copies with this CPU, and wakes the owner once.
impl BlockPuts for Endpoint {
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted {
        let copied = self.located(to).and_then(|to| {
            transfers::put_blocks(self, &to, &self.located(from)?, len, blocks)?;
            to.ring();
            Ok(())
        });
        copied.map_or_else(Posted::failed, |()| Posted::Complete(0))
    }
}

impl Protected for Endpoint {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        self.with_keys(Keyring::new(policy)).fabric_like(like)
    }

    fn holds(&self, rank: Rank, region: RegionKey) -> Result<bool> {
        let target = self.job().segment(rank)?;
        let terms = self.keyring().map(Keyring::local_terms);
        terms.map_or(Ok(false), |terms| regions::is_of_policy(target, rank, region, terms))
    }

    fn abandon(&self, region: Region) {
        if let Ok(kept) = region.into_registration::<Registration>() {
            kept.abandon();
        }
    }

    fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped> {
        locked::mapped(self, region, rank)
    }
}

const _: () = assert!(SHORT == 64, "what short operations are is part of the docs of `Registration`");

// ----- deferred work of dropped futures: done on the spot, since operations complete immediately
// -----

/// Runs `rest` to completion, which takes one poll.
#[inline]
fn finish_leftover(rank: Rank, deferred: Deferred<'_>) {
    if deferred.poll_once(&mut Context::from_waker(Waker::noop())).is_pending() {
        unfinished(rank);
    }
}

#[cold]
fn unfinished(rank: Rank) {
    eprintln!("onesided: {rank} detached a future that waits for others; it was dropped unfinished");
    // Not while unwinding: that would end the process.
    debug_assert!(std::thread::panicking(), "a detached future waits for others");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_detached_is_over_at_once() {
        let over = std::rc::Rc::new(std::cell::Cell::new(false));
        let there = over.clone();
        finish_leftover(Rank::new(0), Deferred::new(&mut Some(async move { there.set(true) })));
        assert!(over.get());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "waits for others")]
    fn what_waits_is_reported() {
        finish_leftover(Rank::new(0), Deferred::new(&mut Some(core::future::pending())));
    }
}
