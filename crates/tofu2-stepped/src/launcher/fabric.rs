//! Performs the calls of one rank's fabric, on the rank's simulated fabric.

use super::{
    memory::{Buffer, Image},
    replies::Replies,
};
use crate::{
    TURNS,
    wire::{AwaitedEvent, FabricCall, Local, ParkUntil, Parked, PostedOperation, Target},
};
use core::{
    future::poll_fn,
    mem::replace,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use rdma_fabric::{
    Fabric, FabricError, Region, RegionKey, Result, Time,
    control_queue::QueueLimits,
    provider::{Ended, Place, Posted, Sink, Source, Token, WaitFor, WaitState},
};
use std::{collections::BTreeMap, sync::Arc};
use tofu2_virt::program::ProgramRank;

/// The longest wait of a poll that finds nothing, and the longest park of a process with several threads.
const LONGEST: Duration = Duration::from_millis(1);
/// Polls in a row after which one waits without a limit.
const ENDLESS: u32 = 4096;

/// The regions, operations and waits of a rank.
#[derive(Debug)]
pub(super) struct FabricState {
    fabric: Fabric,
    program: ProgramRank,
    image: Arc<Image>,
    /// By index and generation.
    regions: BTreeMap<(u32, u32), Region>,
    operations: BTreeMap<u64, InFlight>,
    /// The number of the last operation.
    last: u64,
    waits: BTreeMap<u64, Wait>,
}

/// An operation in flight.
#[derive(Debug)]
struct InFlight {
    token: Token,
    /// The bytes of a get into memory that is not registered.
    bytes: Vec<u8>,
    outcome: Option<Result<u64>>,
}

#[derive(Debug)]
struct Wait {
    event: AwaitedEvent,
    /// The word, if the event is a write to one.
    word: Option<Place>,
    state: WaitState,
}

impl FabricState {
    pub(super) fn new(fabric: Fabric, program: ProgramRank, image: Arc<Image>) -> Self {
        let (regions, operations, waits) = Default::default();
        FabricState { fabric, program, image, regions, operations, last: 0, waits }
    }

    /// Performs a call, and returns its encoded reply.
    pub(super) async fn perform(&mut self, call: FabricCall, replies: &Replies) -> Vec<u64> {
        let provider = self.fabric.provider();
        match call {
            FabricCall::Facts {} => replies.reply(Ok((**self.fabric.facts()).clone())),
            FabricCall::QueueLimits {} => {
                replies.reply(Ok(provider.queues().map_or(QueueLimits::NONE, |queues| queues.limits())))
            }
            FabricCall::Register { start, len, is_symmetric } => replies.reply(self.register(start, len, is_symmetric)),
            FabricCall::Deregister { key: RegionKey { index, generation } } => {
                replies.deregisters();
                self.regions.remove(&(index, generation));
                replies.reply(Ok(()))
            }
            FabricCall::RegionLen { rank, key } => replies.reply(self.program.region_len(rank, key)),
            FabricCall::Poll { number, into, waits } => {
                let polled = poll_fn(|cx| {
                    let mut noop = Context::from_waker(Waker::noop());
                    Poll::Ready(self.poll(number, into, if waits { cx } else { &mut noop }))
                });
                replies.reply(polled.await)
            }
            FabricCall::Test { number } => replies.reply(Ok(self.test(number))),
            FabricCall::Forget { number } => {
                if let Some(InFlight { token, outcome: None, .. }) = self.operations.remove(&number) {
                    provider.forget(token);
                }
                Vec::new()
            }
            FabricCall::IsFlushed {} => replies.reply(Ok(provider.is_flushed())),
            FabricCall::TryNotice {} => replies.reply(provider.try_notice(false)),
            FabricCall::PollWait { wait, event } => {
                let polled = poll_fn(|cx| Poll::Ready(self.poll_wait(wait, &event, cx))).await;
                replies.reply(polled.map_or(Ok(false), |ended| ended.map(|()| true)))
            }
            FabricCall::EndWait { wait } => {
                self.end_wait(wait, Ended::GivenUp);
                Vec::new()
            }
            FabricCall::Now {} => replies.reply(Ok(self.fabric.now())),
            FabricCall::Abort { text, code } => replies.reply::<()>(Err(provider.abort(&text, code as i32))),
            FabricCall::Park { operations, waits, is_woken, until } => {
                replies.reply(Ok(self.park(&operations, waits, is_woken, until).await))
            }
            post => {
                let posted = self.post(post);
                replies.reply(posted)
            }
        }
    }

    fn register(&mut self, start: u64, len: usize, is_symmetric: bool) -> Result<RegionKey> {
        self.image.open()?;
        let memory = Box::new(Buffer { image: self.image.clone(), start });
        let region = match is_symmetric {
            true => self.program.register_symmetric(memory, len)?,
            false => self.program.register(memory, len)?,
        };
        let key = region.key();
        self.regions.insert((key.index, key.generation), region);
        Ok(key)
    }

    /// Returns a region of the rank.
    pub(super) fn region(&self, key: RegionKey) -> Result<&Region> {
        let stale = FabricError::StaleRegion { rank: self.fabric.rank(), region: key };
        self.regions.get(&(key.index, key.generation)).ok_or(stale)
    }

    /// Resolves a place, whose bounds and alignment the rank has checked.
    fn place(&self, target: &Target) -> Result<Place> {
        let Target { at, len, prepared } = *target;
        let place = self.fabric.provider().resolve(at, len, 1, 1)?;
        Ok(if prepared { place.prepared() } else { place })
    }

    // ----- operations ----------------------------------------------------------------------------

    fn post(&mut self, call: FabricCall) -> Result<PostedOperation> {
        let (mut bytes, mut into) = (Vec::new(), None);
        let provider = self.fabric.provider();
        let posted = match call {
            FabricCall::Put { to, from, notice } => {
                let to = self.place(&to)?;
                match from {
                    Local::Bytes { start, len } => {
                        provider.put(&to, Source::Bytes(&self.image.copy_out(start, len)?), notice)
                    }
                    Local::Registered { target } => provider.put(&to, Source::Place(&self.place(&target)?), notice),
                }
            }
            FabricCall::Get { from, to } => {
                let from = self.place(&from)?;
                match to {
                    Local::Bytes { start, len } => {
                        bytes = vec![0; len];
                        into = Some(start);
                        provider.get(&from, Sink::Bytes(&mut bytes))
                    }
                    Local::Registered { target } => provider.get(&from, Sink::Place(&self.place(&target)?)),
                }
            }
            FabricCall::PutBlocks { to, from, len, blocks } => match provider.block_puts() {
                Some(puts) => puts.put_blocks(&self.place(&to)?, &self.place(&from)?, len, blocks),
                None => return Err(FabricError::Unsupported { feature: &"puts of blocks" }),
            },
            FabricCall::Copy { to, from } => provider.copy(&self.place(&to)?, &self.place(&from)?),
            FabricCall::Atomic { word, amo } => provider.atomic(&self.place(&word)?, amo),
            _ => provider.nop(),
        };
        match posted {
            Posted::Complete(word) => {
                if let Some(start) = into {
                    self.image.copy_in(start, &bytes)?;
                }
                Ok(PostedOperation::Complete { word })
            }
            Posted::Pending(token) => {
                self.last += 1;
                self.operations.insert(self.last, InFlight { token, bytes, outcome: None });
                Ok(PostedOperation::Pending { number: self.last })
            }
            Posted::Full => Ok(PostedOperation::Full {}),
            Posted::Failed(error) => Err(error),
        }
    }

    /// Polls an operation on behalf of the rank. Returns the word of a complete one, which is over then.
    fn poll(&mut self, number: u64, into: Local, cx: &mut Context<'_>) -> Result<Option<u64>> {
        if !self.advance(number, cx)? {
            return Ok(None);
        }
        let Some(InFlight { bytes, outcome: Some(outcome), .. }) = self.operations.remove(&number) else {
            return Err(unknown(number));
        };
        let word = outcome?;
        if let Local::Bytes { start, len } = into
            && len > 0
            && !bytes.is_empty()
        {
            if len != bytes.len() {
                return Err(FabricError::length_mismatch(len, bytes.len()));
            }
            self.image.copy_in(start, &bytes)?;
        }
        Ok(Some(word))
    }

    /// Polls an operation, and keeps its outcome. Returns whether there is one.
    fn advance(&mut self, number: u64, cx: &mut Context<'_>) -> Result<bool> {
        let Some(InFlight { token, bytes, outcome }) = self.operations.get_mut(&number) else {
            return Err(unknown(number));
        };
        if outcome.is_none()
            && let Poll::Ready(ended) = self.fabric.provider().poll(token, Sink::Bytes(bytes), cx)
        {
            *outcome = Some(ended);
        }
        Ok(outcome.is_some())
    }

    fn test(&self, number: u64) -> bool {
        let operation = self.operations.get(&number);
        operation.is_none_or(|InFlight { token, outcome, .. }| outcome.is_some() || self.fabric.provider().test(token))
    }

    // ----- waits ---------------------------------------------------------------------------------

    /// Polls a wait, which this begins if there is none of that number, and which ends if it is ready.
    fn poll_wait(&mut self, number: u64, event: &AwaitedEvent, cx: &mut Context<'_>) -> Option<Result<()>> {
        if !self.waits.contains_key(&number) {
            let word = match event {
                AwaitedEvent::Word { word, .. } => match self.place(word) {
                    Ok(word) => Some(word),
                    Err(error) => return Some(Err(error)),
                },
                _ => None,
            };
            self.waits.insert(number, Wait { event: event.clone(), word, state: WaitState::default() });
        }
        let Wait { event, word, state } = self.waits.get_mut(&number)?;
        match self.fabric.provider().poll_wait(state, event.wait_for(word.as_ref())?, cx) {
            Poll::Pending => None,
            Poll::Ready(ended) => {
                self.end_wait(number, if ended.is_ok() { Ended::Reached } else { Ended::GivenUp });
                Some(ended)
            }
        }
    }

    /// Ends a wait, if there is one of that number.
    fn end_wait(&mut self, number: u64, ended: Ended) {
        if let Some(Wait { event, word, mut state }) = self.waits.remove(&number)
            && let Some(wait_for) = event.wait_for(word.as_ref())
            && !state.is_empty()
        {
            self.fabric.provider().end_wait(&mut state, wait_for, ended);
        }
    }

    /// Begins waits, and lets the other ranks run until the simulator resumes this one. Returns what has ended.
    async fn park(
        &mut self,
        operations: &[u64],
        waits: Vec<(u64, AwaitedEvent)>,
        is_woken: bool,
        until: ParkUntil,
    ) -> Parked {
        let limit = match until {
            ParkUntil::Awaited | ParkUntil::Turn => None,
            ParkUntil::Soon => Some(self.fabric.now() + LONGEST),
            ParkUntil::News { misses } => until_news(&self.fabric, &self.program, misses),
        };
        let mut news = pin!(matches!(until, ParkUntil::News { .. }).then(|| self.program.news(limit)));
        let mut sleep = WaitState::default();
        let mut parked = Parked { operations: Vec::new(), waits: Vec::new() };
        let (mut first, mut has_begun) = (Some(waits), false);
        poll_fn(|cx| {
            for (number, event) in first.take().into_iter().flatten() {
                let ended = self.poll_wait(number, &event, cx);
                parked.waits.extend(ended.map(|ended| (number, ended)));
            }
            self.collect(operations, &mut parked, cx);
            let has_ended = !parked.operations.is_empty() || !parked.waits.is_empty();
            // A pause takes its time in any case, below.
            if replace(&mut has_begun, true) || has_ended || matches!(until, ParkUntil::Turn) {
                return Poll::Ready(());
            }
            // The rank's task gets another turn, as a task that wakes itself.
            if is_woken {
                cx.waker().wake_by_ref();
            }
            match (news.as_mut().as_pin_mut(), limit) {
                (Some(news), _) => news.poll(cx),
                (None, Some(limit)) => {
                    self.fabric.provider().poll_wait(&mut sleep, WaitFor::Until(limit), cx).map(drop)
                }
                (None, None) => Poll::Pending,
            }
        })
        .await;
        if let ParkUntil::Turn = until {
            self.fabric.compute(self.program.turn()).await;
            poll_fn(|cx| Poll::Ready(self.collect(operations, &mut parked, cx))).await;
        }
        parked
    }

    /// Polls operations, and all waits that have begun. Adds those that have ended.
    fn collect(&mut self, operations: &[u64], parked: &mut Parked, cx: &mut Context<'_>) {
        for number in operations {
            if self.operations.contains_key(number) && self.advance(*number, cx).unwrap_or(true) {
                let is_empty = self.operations.get(number).is_some_and(|operation| operation.bytes.is_empty());
                let outcome = match is_empty {
                    true => self.operations.remove(number).and_then(|operation| operation.outcome),
                    false => None,
                };
                parked.operations.push((*number, outcome));
            }
        }
        let numbers: Vec<u64> = self.waits.keys().copied().collect();
        for number in numbers {
            let Some(event) = self.waits.get(&number).map(|wait| wait.event.clone()) else { continue };
            let ended = self.poll_wait(number, &event, cx);
            parked.waits.extend(ended.map(|ended| (number, ended)));
        }
    }
}

/// Returns the end of the wait of a poll, the `misses`-th in a row that finds nothing: each is 16 times as long as
/// the one before.
pub(super) fn until_news(fabric: &Fabric, program: &ProgramRank, misses: u32) -> Option<Time> {
    let doublings = misses.saturating_sub(TURNS).saturating_mul(4).min(24);
    let wait = program.turn().saturating_mul(1 << doublings).min(LONGEST);
    (misses <= ENDLESS).then(|| fabric.now() + wait)
}

fn unknown(number: u64) -> FabricError {
    FabricError::setting("operation", format!("{number} is not in flight"))
}
