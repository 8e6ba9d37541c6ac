//! The communication helper.

use super::{
    Command, EntryState,
    program::{REFUSED, RUNNING, STOP, SharedQueue, Words},
};
use crate::{
    GlobalAddress, Mode, Order, Result, cost,
    delegation::{self, Replies, Request, Serving},
    directory::Resolver,
    engine::{self, Engine, Flight, Kind},
    options::Options,
};
use core::{
    future::{Future, poll_fn, ready},
    pin::pin,
    task::Poll,
};
use rdma_fabric::{Amo, AtomicWord, Deps, Fabric, Rank, Region, provider::Boxed};
use std::sync::Arc;

pub(super) struct Helper {
    fabric: Fabric,
    shared: Arc<SharedQueue>,
    words: Words,
    memory: Resolver,
    me: Rank,
    options: Options,
    engine: Engine,
    replies: Arc<Replies>,
    /// The last command taken.
    taken: i64,
    /// The last command, if it waits for others, and its state once it has started.
    held_up: Option<(i64, EntryState)>,
    /// The last command such that it and all earlier ones are known to be complete.
    published: i64,
}

/// An operation that is ready to start.
struct Prepared {
    kind: Kind,
    flight: Flight,
    state: EntryState,
}

impl Helper {
    pub(super) fn new(shared: Arc<SharedQueue>, memory: Resolver, me: Rank, options: Options) -> Result<Self> {
        let fabric = memory.fabric().clone();
        let words = Words::new(&memory, &fabric, me)?;
        let (engine, replies) = (Engine::new(&fabric), Replies::of_helper(None));
        Ok(Helper {
            fabric,
            shared,
            words,
            memory,
            me,
            options,
            engine,
            replies,
            taken: 0,
            held_up: None,
            published: 0,
        })
    }

    /// Executes commands until the program has dropped its queue. `world` is the memory that both
    /// use.
    pub(super) async fn run(mut self, world: Arc<Region>) -> Result<()> {
        let is_split = self.options.mode == Mode::Split;
        let needed = delegation::is_needed(&self.fabric, &self.options);
        let memory = self.memory.fresh(&self.fabric);
        let mut server = (needed && !is_split).then(|| delegation::serve(memory, self.me, None));
        let mut serving = None;
        if is_split {
            match self.split(needed, &world).await {
                Ok(started) => serving = started,
                Err(error) => {
                    *self.shared.refused() = Some(error);
                    return Ok(self.fabric.store(&self.words.running, REFUSED)?);
                }
            }
            self.fabric.store(&self.words.running, RUNNING)?;
        }
        loop {
            let issued = self.fabric.load(&self.words.issued)?;
            if issued == STOP {
                return if is_split { self.end(serving).await } else { Ok(()) };
            }
            self.publish()?;
            if (self.taken as u64) < issued && !self.engine.is_held_up() {
                self.take().await;
            } else {
                self.wait(issued, &mut server).await?;
            }
        }
    }

    /// Starts another helper for serving, if ranks have to serve each other.
    async fn split(&mut self, needed: bool, world: &Arc<Region>) -> Result<Option<Serving>> {
        if !needed {
            return Ok(None);
        }
        let (serving, sending) = delegation::split(&self.memory, world, self.me).await?;
        self.replies = Replies::of_helper(Some(sending));
        Ok(Some(serving))
    }

    /// Closes both control queues.
    async fn end(self, serving: Option<Serving>) -> Result<()> {
        let (fabric, words) = (self.fabric, self.words);
        // This helper's queue is closed with the last operation that may use it.
        drop((self.engine, self.replies));
        if let Some(serving) = serving {
            serving.end().await?;
        }
        Ok(fabric.store(&words.running, 0)?)
    }

    /// Waits for another command, or for progress with those taken, and serves other ranks in the
    /// meantime.
    async fn wait(&mut self, issued: u64, server: &mut Option<Boxed<'static, Result<()>>>) -> Result<()> {
        let me = Deps::One(self.fabric.rank());
        let mut more = pin!(self.fabric.wait_until(&self.words.issued, me, move |now| now != issued));
        let engine = &mut self.engine;
        poll_fn(|cx| {
            if engine.len() > 0 && engine.poll_front(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if let Some(serving) = server
                && serving.as_mut().poll(cx).is_ready()
            {
                *server = None;
            }
            more.as_mut().poll(cx).map(|more| more.map(drop))
        })
        .await?;
        Ok(())
    }

    /// Publishes which commands are complete, and frees their entries.
    fn publish(&mut self) -> Result<()> {
        if !self.engine.is_held_up()
            && let Some((number, state)) = self.held_up.take()
        {
            self.shared.ring.set(number, EntryState::OrderEnd);
            self.shared.ring.set(number, state);
        }
        if self.engine.over() == self.published {
            return Ok(());
        }
        let failed = self.engine.take_failures();
        if !failed.is_empty() {
            let explained = failed.into_iter().map(|(number, error)| (number, self.memory.explained(error)));
            self.shared.failures().append(explained);
        }
        for number in self.published + 1..=self.engine.over() {
            if self.shared.ring.state(number) != Some(EntryState::Finished) {
                self.shared.ring.set(number, EntryState::Finished);
            }
            self.shared.ring.free(number);
        }
        self.published = self.engine.over();
        Ok(self.fabric.store(&self.words.complete, self.published as u64)?)
    }

    /// Takes the next command, and starts it unless its order makes it wait.
    async fn take(&mut self) {
        self.taken += 1;
        let number = self.taken;
        let command = self.shared.ring.read(number).and_then(Command::from_words);
        if command != Some(Command::Posted) {
            self.fabric.charge(cost::THREAD).await;
        }
        let order = command.map_or(Order::None, |command| command.order());
        let prepared = match command {
            Some(Command::Posted) => {
                let posted = self.shared.posted().remove(&number);
                let (kind, posted) = posted.unwrap_or_else(|| (Kind::Atomic, Box::pin(ready(Ok(())))));
                let fabric = self.fabric.clone();
                // For these operations, the helper's work is charged on completion.
                let flight = Box::pin(async move {
                    let done = posted.await;
                    fabric.charge(cost::THREAD).await;
                    done
                });
                Ok(Prepared { kind, flight, state: EntryState::Executing })
            }
            Some(Command::Copy { to, from, bytes, .. }) => self.copy(to, from, bytes).await,
            Some(Command::Atomic { to, word, width: 4, amo, .. }) => self.atomic(to, word, amo.map(|v| v as u32)).await,
            Some(Command::Atomic { to, word, amo, .. }) => self.atomic(to, word, amo).await,
            // Only this process writes the ring.
            None => unreachable!("command {number} was issued and is not in the ring"),
        };
        let Prepared { kind, flight, state } = prepared.unwrap_or_else(|error| Prepared {
            kind: Kind::Atomic,
            flight: Box::pin(ready(Err(error))),
            state: EntryState::Finished,
        });
        self.engine.issue(&self.fabric, kind, flight, order);
        if self.engine.is_held_up() {
            self.shared.ring.set(number, EntryState::Order);
            self.held_up = Some((number, state));
        } else {
            self.shared.ring.set(number, EntryState::OrderEnd);
            self.shared.ring.set(number, state);
        }
    }

    async fn copy(&mut self, to: GlobalAddress, from: GlobalAddress, bytes: usize) -> Result<Prepared> {
        let (to_span, from_span) = (self.memory.span(to, bytes).await?, self.memory.span(from, bytes).await?);
        let pair = (from.rank().number(), to.rank().number());
        let is_own = |address: GlobalAddress| address.rank() == self.me;
        if is_own(to) && is_own(from) {
            let flight = engine::copy(&self.fabric, to_span, from_span);
            return Ok(Prepared { kind: Kind::Copy(pair), flight, state: EntryState::Finished });
        }
        cost::network(&self.fabric, &self.options).await;
        if is_own(to) || is_own(from) || self.fabric.caps().third_party_copy {
            let flight = engine::copy(&self.fabric, to_span, from_span);
            return Ok(Prepared { kind: Kind::Copy(pair), flight, state: EntryState::Executing });
        }
        let asked = self.requested(Request::Copy { to, from, bytes: bytes as u64 }).await?;
        let kind = Kind::Delegated { pair: Some(pair), server: to.rank().number() };
        Ok(Prepared { kind, flight: engine::of_reply(asked), state: EntryState::Delegated })
    }

    /// Prepares a request to another rank.
    async fn requested(&mut self, request: Request) -> Result<Boxed<'static, Result<u64>>> {
        loop {
            match self.replies.take() {
                Some(reply) => return delegation::ask(&self.memory, self.me, request, reply),
                None => poll_fn(|cx| self.engine.poll_front(cx)).await,
            }
        }
    }

    async fn atomic<W: AtomicWord>(&mut self, to: GlobalAddress, word: GlobalAddress, amo: Amo<W>) -> Result<Prepared> {
        let (to, operand) = (self.memory.word::<W>(to).await?, self.memory.word::<W>(word).await?);
        if word.rank() == self.me && delegation::is_own_by_cpu(&self.fabric, &self.options) {
            let flight = engine::atomic_by_cpu(&self.fabric, to, operand, amo);
            return Ok(Prepared { kind: Kind::Atomic, flight, state: EntryState::Finished });
        }
        cost::network(&self.fabric, &self.options).await;
        if delegation::is_atomic_delegated(&self.fabric, &self.options) {
            let asked = self.requested(Request::Atomic { word, width: W::BYTES as u8, amo: amo.to_bits() }).await?;
            let flight = engine::storing_reply(&self.fabric, to, asked);
            let kind = Kind::Delegated { pair: None, server: word.rank().number() };
            return Ok(Prepared { kind, flight, state: EntryState::Delegated });
        }
        let flight = engine::atomic(&self.fabric, to, operand, amo);
        Ok(Prepared { kind: Kind::Atomic, flight, state: EntryState::Executing })
    }
}
