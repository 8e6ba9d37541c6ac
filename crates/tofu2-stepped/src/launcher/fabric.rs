//! Performs the calls of one rank's fabric, on the rank's simulated fabric.

use super::{
    memory::{Buffer, Image},
    replies::Replies,
    waits::Wait,
};
use crate::wire::{FabricCall, Local, PostedOperation, Target};
use core::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    Fabric, FabricError, Region, RegionKey, Result,
    control_queue::QueueLimits,
    provider::{Ended, Place, Posted, Sink, Source, Token},
};
use std::{collections::HashMap, sync::Arc};
use tofu2_virt::program::ProgramRank;

/// The regions, operations and waits of a rank.
#[derive(Debug)]
pub(super) struct FabricState {
    pub(super) fabric: Fabric,
    pub(super) program: ProgramRank,
    image: Arc<Image>,
    /// By index and generation.
    regions: HashMap<(u32, u32), Region>,
    pub(super) operations: HashMap<u64, InFlight>,
    /// The number of the last operation.
    last: u64,
    pub(super) waits: HashMap<u64, Wait>,
}

/// An operation in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    token: Token,
    /// The bytes of a get into memory that is not registered.
    pub(super) bytes: Vec<u8>,
    pub(super) outcome: Option<Result<u64>>,
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
    pub(super) fn place(&self, target: &Target) -> Result<Place> {
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
    pub(super) fn advance(&mut self, number: u64, cx: &mut Context<'_>) -> Result<bool> {
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
}

fn unknown(number: u64) -> FabricError {
    FabricError::setting("operation", format!("{number} is not in flight"))
}
