//! Carrying out what other ranks ask for.

use super::{
    ARMED, REPLIES_AT, SLOTS,
    initiator::slot_at,
    request::{Outcome, ReplyTo, Request, WORDS},
};
use crate::{
    AcpError, GlobalAddress, Result,
    directory::{Resolver, is_stale},
    engine,
};
use core::{future::poll_fn, task::Poll};
use rdma_fabric::{
    Amo, AtomicWord, Deps, Fabric, LocalSpan, Rank, RemoteAddr, RemoteWord,
    join::{Either, race},
    provider::Boxed,
};

/// Serves this rank's area for ever, with any number of requests under way.
pub(crate) fn serve(memory: Resolver, me: Rank) -> Boxed<'static, Result<()>> {
    Box::pin(async move {
        let fabric = memory.fabric().clone();
        let at = memory.world_at(me, memory.layout().delegation())?;
        let armed = fabric.local_word::<u64>(RemoteAddr { offset: at.offset + ARMED, ..at })?;
        let taken = armed.as_remote();
        let mut server = Server { memory, at, fabric: fabric.clone(), serving: Vec::new() };
        loop {
            // No rank's loss ends this wait, and any rank can end it.
            let more = fabric.wait_until(&armed, Deps::One(fabric.rank()), |bits| bits != 0);
            match race(more, one_over(&mut server.serving)).await {
                Either::First(more) => {
                    more?;
                    let bits = fabric.swap(&taken, 0).await?;
                    for slot in (0..SLOTS).filter(|slot| bits & 1 << slot != 0) {
                        server.take(slot).await?;
                    }
                }
                Either::Second(ended) => server.end(ended).await,
            }
        }
    })
}

struct Server {
    memory: Resolver,
    fabric: Fabric,
    /// This rank's area.
    at: RemoteAddr,
    serving: Vec<Boxed<'static, Ended>>,
}

/// A request, and how it ended.
struct Ended {
    request: Request,
    reply: ReplyTo,
    /// Whether it was tried before, with a region that had gone.
    again: bool,
    result: Result<()>,
}

/// Returns a request that is over, which it removes.
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
    /// Takes a request out of its slot, frees the slot, and begins with the request.
    async fn take(&mut self, slot: u64) -> Result<()> {
        let mut words = [0; WORDS];
        let record: LocalSpan<u64> = self.fabric.local_span(slot_at(self.at, slot, 8), WORDS)?;
        self.fabric.read(&record, &mut words)?;
        let owner: RemoteWord<u64> = self.fabric.remote_word(slot_at(self.at, slot, 0))?;
        self.fabric.swap(&owner, 0).await?;
        // What is no request has nobody to reply to.
        if let Some((request, reply)) = Request::from_words(words) {
            self.begin(request, reply, false).await;
        }
        Ok(())
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

    /// Replies; or, if a region had gone, tries again, in case another one has taken its place.
    async fn end(&mut self, ended: Ended) {
        let Ended { request, reply, again, result } = ended;
        if !again && result.as_ref().is_err_and(is_stale) {
            request.addresses().iter().for_each(|address| self.memory.forget(address.id()));
            return self.begin(request, reply, true).await;
        }
        // Whoever is gone needs no reply.
        let _ = answer(&self.fabric, self.at, reply, Outcome::of(result)).await;
    }

    /// Resolves what a request names; returns what is left to do.
    async fn prepared(&mut self, request: Request) -> Result<Boxed<'static, Result<()>>> {
        match request {
            Request::Copy { to, from, bytes } => {
                let bytes = usize::try_from(bytes).map_err(|_| AcpError::out_of_bounds(from, bytes, 0))?;
                let (to, from) = (self.memory.span(to, bytes).await?, self.memory.span(from, bytes).await?);
                Ok(engine::copy(&self.fabric, to, from, false))
            }
            Request::Atomic { to, word, width: 4, amo } => self.atomic::<u32>(to, word, amo).await,
            Request::Atomic { to, word, amo, .. } => self.atomic::<u64>(to, word, amo).await,
        }
    }

    /// Changes an own word by the CPU: nobody else does where the network has no atomics.
    async fn atomic<W: AtomicWord>(
        &mut self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<u64>,
    ) -> Result<Boxed<'static, Result<()>>> {
        let to = self.memory.word::<W>(to).await?;
        let word = self.memory.word::<W>(word).await?;
        let before = engine::change_by_cpu(&self.fabric, &word, amo.map(W::from_bits))?;
        let fabric = self.fabric.clone();
        Ok(Box::pin(async move {
            fabric.put_word(&to, before).await?;
            Ok(fabric.flush(to.rank()).await?)
        }))
    }
}

async fn answer(fabric: &Fabric, at: RemoteAddr, to: ReplyTo, outcome: Outcome) -> Result<()> {
    let offset = at.offset + REPLIES_AT + 8 * u64::from(to.word);
    let word = fabric.remote_word::<u64>(RemoteAddr { rank: to.rank, offset, ..at })?;
    Ok(fabric.put_word(&word, outcome.to_word(to.number)).await?)
}
