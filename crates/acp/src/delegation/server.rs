//! Executing the requests of other ranks.

use super::{
    ARMED, REQUEST, Slots,
    queues::Listening,
    reply_at,
    request::{Outcome, ReplyTo, Request, WORDS},
    slot_at,
};
use crate::{
    AcpError, GlobalAddress, Result, cost,
    directory::{Resolver, is_stale},
    engine,
};
use core::{
    future::{pending, poll_fn},
    task::Poll,
};
use rdma_fabric::{
    Amo, AtomicWord, Deps, Fabric, LocalSpan, LocalWord, Rank, RemoteAddr, RemoteWord,
    join::{Either, race},
    provider::Boxed,
};

/// Serves this rank's area forever, with any number of requests in flight; also requests that
/// arrive through a control queue, if there is one.
pub(crate) fn serve(memory: Resolver, me: Rank, listening: Option<Listening>) -> Boxed<'static, Result<()>> {
    Box::pin(async move {
        let fabric = memory.fabric().clone();
        let (at, slots) = (memory.world_at(me, memory.layout().delegation())?, memory.layout().slots());
        let armed = fabric.local_word::<u64>(RemoteAddr { offset: at.offset + ARMED, ..at })?;
        let mut server = Server { memory, at, fabric: fabric.clone(), serving: Vec::new() };
        loop {
            // The loss of a rank does not end this wait, because any rank may send the next
            // request.
            let more = fabric.wait_until(&armed, Deps::One(fabric.rank()), |bits| bits != 0);
            let more = race(more, noticed(&listening));
            match race(more, one_over(&mut server.serving)).await {
                Either::First(Either::Second(noticed)) => {
                    let (slot, owner) = noticed?;
                    match slots {
                        Slots::Shared(_) => server.take_of(slot, owner).await?,
                        Slots::Own(_) => {
                            let words = server.request(slot)?;
                            server.take(words).await;
                        }
                    }
                }
                Either::First(Either::First(more)) => {
                    let bits = more?;
                    match slots {
                        Slots::Shared(_) => server.take_all(&armed.as_remote(), bits).await?,
                        Slots::Own(_) => {
                            // Reset before the slots are checked: if a rank arms the word later,
                            // the server checks them again.
                            fabric.store(&armed, 0)?;
                            for slot in 0..slots.count() {
                                server.take_own(slot).await?;
                            }
                        }
                    }
                }
                Either::Second(ended) => server.end(ended).await,
            }
        }
    })
}

/// Waits for a request through a control queue; forever if there is none.
async fn noticed(listening: &Option<Listening>) -> Result<(u64, Rank)> {
    match listening {
        Some(listening) => listening.next().await,
        None => pending().await,
    }
}

struct Server {
    memory: Resolver,
    fabric: Fabric,
    /// This rank's area.
    at: RemoteAddr,
    serving: Vec<Boxed<'static, Ended>>,
}

/// A request, and its result.
struct Ended {
    request: Request,
    reply: ReplyTo,
    /// Whether this is the second attempt, after a region did not exist.
    again: bool,
    /// The previous value of an atomic's word.
    result: Result<u64>,
}

/// Removes and returns a completed request.
async fn one_over(serving: &mut Vec<Boxed<'static, Ended>>) -> Ended {
    poll_fn(|cx| {
        let over = serving.iter_mut().enumerate().find_map(|(at, request)| match request.as_mut().poll(cx) {
            Poll::Ready(ended) => Some((at, ended)),
            Poll::Pending => None,
        });
        over.map_or(Poll::Pending, |(at, ended)| {
            drop(serving.swap_remove(at));
            Poll::Ready(ended)
        })
    })
    .await
}

impl Server {
    /// Takes the requests of the slots whose bits are set in `armed`, frees these slots, and starts
    /// the requests. While its bit is set, a slot belongs to its owner; once the bit is cleared,
    /// another rank may immediately take over a slot whose owner has died. So the request is read
    /// before its bit is cleared, and the slot is freed only if the owner is still the same.
    async fn take_all(&mut self, armed: &RemoteWord<u64>, bits: u64) -> Result<()> {
        let mut requests = Vec::new();
        for slot in (0..self.memory.layout().slots().count()).filter(|slot| bits & 1 << slot != 0) {
            let owner = self.owner(slot)?;
            requests.push((owner.as_remote(), self.fabric.load(&owner)?, self.request(slot)?));
        }
        self.fabric.fetch_and(armed, !bits).await?;
        for (owner, before, words) in requests {
            self.fabric.compare_swap(&owner, before, 0).await?;
            self.take(words).await;
        }
        Ok(())
    }

    /// Takes the request that a rank has sent to a slot, and frees the slot, unless that rank has
    /// died and the slot was taken over: then the slot may hold half of another request.
    async fn take_of(&mut self, slot: u64, rank: Rank) -> Result<()> {
        let (owner, mine) = (self.owner(slot)?, u64::from(rank.number()) + 1);
        if self.fabric.load(&owner)? == mine {
            let words = self.request(slot)?;
            if self.fabric.compare_swap(&owner.as_remote(), mine, 0).await? == mine {
                self.take(words).await;
            }
        }
        Ok(())
    }

    /// Takes the request of a slot that one task uses, if there is one, and frees the slot.
    async fn take_own(&mut self, slot: u64) -> Result<()> {
        let owner = self.owner(slot)?;
        if self.fabric.load(&owner)? != 0 {
            let words = self.request(slot)?;
            self.fabric.store(&owner, 0)?;
            self.take(words).await;
        }
        Ok(())
    }

    /// Returns the word of a slot's owner, which holds the owner's rank plus one.
    fn owner(&self, slot: u64) -> Result<LocalWord<u64>> {
        Ok(self.fabric.local_word::<u64>(slot_at(self.at, slot, 0))?)
    }

    /// Returns the words of the request in a slot.
    fn request(&self, slot: u64) -> Result<[u64; WORDS]> {
        let mut words = [0; WORDS];
        let record: LocalSpan<u64> = self.fabric.local_span(slot_at(self.at, slot, REQUEST), WORDS)?;
        self.fabric.read(&record, &mut words)?;
        Ok(words)
    }

    /// Starts a request.
    async fn take(&mut self, words: [u64; WORDS]) {
        // Invalid words do not contain a rank to reply to.
        if let Some((request, reply)) = Request::from_words(words) {
            self.fabric.charge(cost::SERVED).await;
            self.begin(request, reply, false).await;
        }
    }

    async fn begin(&mut self, request: Request, reply: ReplyTo, again: bool) {
        let work = self.prepared(request).await;
        self.serving.push(Box::pin(async move {
            let result = match work {
                Ok(work) => work.await,
                Err(error) => Err(error),
            };
            Ended { request, reply, again, result }
        }));
    }

    /// Replies; or, if a region did not exist, retries, in case another one has replaced it.
    async fn end(&mut self, ended: Ended) {
        let Ended { request, reply, again, result } = ended;
        if !again && result.as_ref().is_err_and(is_stale) {
            request.addresses().iter().for_each(|address| self.memory.forget(address.id()));
            return self.begin(request, reply, true).await;
        }
        // A rank that is lost needs no reply.
        let _ = answer(&self.fabric, self.at, reply, result).await;
    }

    /// Resolves the addresses of a request; returns the remaining work.
    async fn prepared(&mut self, request: Request) -> Result<Boxed<'static, Result<u64>>> {
        match request {
            Request::Copy { to, from, bytes } => {
                let bytes = usize::try_from(bytes).map_err(|_| AcpError::out_of_bounds(from, bytes, 0))?;
                let (to, from) = (self.memory.span(to, bytes).await?, self.memory.span(from, bytes).await?);
                let copy = engine::copy(&self.fabric, to, from);
                Ok(Box::pin(async move { copy.await.map(|()| 0) }))
            }
            Request::Atomic { word, width: 4, amo } => self.atomic::<u32>(word, amo).await,
            Request::Atomic { word, amo, .. } => self.atomic::<u64>(word, amo).await,
        }
    }

    /// Changes a local word by the CPU, the only one to do so where atomics are delegated.
    async fn atomic<W: AtomicWord>(
        &mut self,
        word: GlobalAddress,
        amo: Amo<u64>,
    ) -> Result<Boxed<'static, Result<u64>>> {
        let word = self.memory.word::<W>(word).await?;
        let before = engine::change_by_cpu(&self.fabric, &word, amo.map(W::from_bits))?;
        Ok(Box::pin(core::future::ready(Ok(before.to_bits()))))
    }
}

/// Puts a reply, whose value becomes visible before the status.
async fn answer(fabric: &Fabric, area: RemoteAddr, to: ReplyTo, result: Result<u64>) -> Result<()> {
    let status = RemoteAddr { rank: to.rank, ..reply_at(area, to.place) };
    if let Ok(value) = result {
        let at = RemoteAddr { offset: status.offset + 8, ..status };
        fabric.put_word(&fabric.remote_word::<u64>(at)?, value).await?;
        fabric.flush(to.rank).await?;
    }
    let outcome = Outcome::of(result.map(drop)).to_word(to.number);
    Ok(fabric.put_word(&fabric.remote_word::<u64>(status)?, outcome).await?)
}
