//! Performs the requests of one rank on its simulated queues and gates.

use super::{
    fabric::FabricState,
    memory::{Buffer, Image},
    replies::Replies,
    waits::until_news,
};
use crate::{
    TURNS,
    wire::{FabricCall, ParkUntil, Posted, Request, Wire},
};
use rdma_fabric::{
    Deps, Fabric, FabricError, Refused, Region, Result,
    barrier::{BarrierUnit, GateId, Progress},
    control_queue::{Posting, Queue, QueueError, QueueId, QueueMode, QueueSpec, Stadd},
};
use std::{
    ops::RangeInclusive,
    sync::{Arc, atomic::AtomicU64},
};
use tofu2_virt::program::ProgramRank;

/// The CQs that session queues and exclusive queues take, as TofuD's system library gives them.
const SESSION_CQS: RangeInclusive<u8> = 1..=3;
const EXCLUSIVE_CQS: RangeInclusive<u8> = 4..=10;

/// A rank's simulated queues and gates, and its registered memory.
#[derive(Debug)]
pub(super) struct RankState {
    fabric: Fabric,
    program: ProgramRank,
    image: Arc<Image>,
    /// By number; `None` once closed.
    queues: Vec<Option<Box<dyn Queue>>>,
    /// By queue and tag.
    regions: Vec<((usize, u32), Region)>,
    /// Polls in a row that found nothing.
    misses: u32,
    replies: Replies,
    calls: FabricState,
}

impl RankState {
    /// `None` for a fabric that is not simulated.
    pub(super) fn new(fabric: Fabric, image: Arc<Image>, deregistered: Arc<AtomicU64>) -> Option<Self> {
        let program = ProgramRank::of(&fabric)?;
        let replies = Replies::new(ProgramRank::of(&fabric)?, deregistered);
        let calls = FabricState::new(fabric.clone(), ProgramRank::of(&fabric)?, image.clone());
        let (queues, regions) = Default::default();
        Some(RankState { fabric, program, image, queues, regions, misses: 0, replies, calls })
    }

    /// Returns the first failure of an access to registered memory.
    pub(super) fn check_memory(&self) -> std::result::Result<(), String> {
        self.image.failure().map_or(Ok(()), |text| Err(text.to_owned()))
    }

    /// Performs a request, and returns its encoded reply, which is not sent if the request has none.
    pub(super) async fn perform(&mut self, request: Request) -> Vec<u64> {
        let is_poll = matches!(
            request,
            Request::PollTcq { .. }
                | Request::PollMrq { .. }
                | Request::TestGate { .. }
                | Request::Post { .. }
                // After such a poll, by a task that waits.
                | Request::Fabric { call: FabricCall::Park { until: ParkUntil::Turn, .. } }
        );
        if !is_poll {
            self.misses = 0;
        }
        match request {
            Request::Open { spec, context, of_library: true } => {
                let opened = self.open(spec, context);
                self.reply(opened)
            }
            Request::Open { spec, context, of_library: false } => {
                let opened = self.program.open(spec, context).and_then(|queue| self.keep(queue));
                self.reply(opened)
            }
            Request::Close { queue } => {
                let closed = match self.queues.get_mut(queue).and_then(Option::take) {
                    Some(queue) => queue.close(),
                    None => Err(not_open(queue)),
                };
                self.regions.retain(|((of, _), _)| *of != queue);
                self.reply(closed)
            }
            Request::Pointers { queue } => self.reply(self.queue(queue).map(|queue| queue.pointers())),
            Request::Register { queue, region: Some(key), fixed, .. } => {
                let region = self.calls.region(key);
                self.reply(region.and_then(|region| self.queue(queue)?.register(region, fixed)))
            }
            Request::Register { queue, start, len, region: None, fixed } => {
                let registered = self.register(queue, start, len, fixed);
                self.reply(registered)
            }
            Request::SetReadOnly { queue, at, read_only } => {
                self.reply(self.queue(queue).and_then(|queue| queue.set_read_only(at, read_only)))
            }
            Request::Deregister { queue, at } => {
                let done = self.queue(queue).and_then(|queue| queue.deregister(at));
                self.regions.retain(|(of, _)| *of != (queue, at.tag()));
                self.reply(done)
            }
            Request::Post { queue, postings } => {
                let mut posted = self.post(queue, &postings);
                if let Ok(Posted { is_full: true, posted: before, .. }) = posted {
                    let rest = postings.get(before..).unwrap_or_default();
                    let is_full =
                        |posted: &Result<Posted>| matches!(posted, Ok(Posted { is_full: true, posted: 0, .. }));
                    posted = self.missed(|state| state.post(queue, rest), is_full).await;
                    posted = posted.map(|later| Posted { posted: before + later.posted, ..later });
                } else {
                    self.misses = 0;
                }
                self.reply(posted)
            }
            Request::PollTcq { queue } => self.poll(|state| state.queue(queue)?.poll_tcq(), Option::is_none).await,
            Request::PollMrq { queue } => self.poll(|state| state.queue(queue)?.poll_mrq(), Option::is_none).await,
            Request::GateLimits => self
                .reply(self.gates().map(|unit| unit.limits()).map(|limits| (limits.start_gates, limits.relay_gates))),
            Request::TakeGates { relays } => self.reply(self.gates().and_then(|unit| unit.take(relays))),
            Request::FreeGates { gates } => self.reply(self.gates().map(|unit| unit.free(&gates))),
            Request::SetGates { wirings } => self.reply(self.gates().and_then(|unit| unit.set(&wirings))),
            Request::StartGate { gate, values } => self.reply(self.gates().and_then(|unit| unit.start(gate, values))),
            Request::Fabric { call } => self.calls.perform(call, &self.replies).await,
            Request::TestGate { gate } => {
                self.poll(|state| state.test(gate), |progress| *progress == Progress::NotCompleted).await
            }
        }
    }

    fn reply<T: Wire>(&self, outcome: Result<T>) -> Vec<u64> {
        self.replies.reply(outcome)
    }

    fn queue(&self, number: usize) -> Result<&dyn Queue> {
        self.queues.get(number).and_then(Option::as_deref).ok_or_else(|| not_open(number))
    }

    fn gates(&self) -> Result<&dyn BarrierUnit> {
        self.fabric.provider().gates().ok_or(FabricError::Unsupported { feature: &"a barrier unit" })
    }

    fn test(&self, gate: GateId) -> Result<Progress> {
        self.gates()?.test(gate, Deps::All)
    }

    fn open(&mut self, spec: QueueSpec, context: Option<u8>) -> Result<(usize, QueueId)> {
        let mut numbers = match (spec.number, spec.mode) {
            (Some(number), _) => number..=number,
            (None, QueueMode::Session) => SESSION_CQS,
            (None, QueueMode::Exclusive) => EXCLUSIVE_CQS,
            (None, QueueMode::Normal) => return self.keep(self.program.open(spec, context)?),
        };
        let last = *numbers.end();
        let queue = numbers.find_map(|number| {
            let opened = self.program.open(QueueSpec { number: Some(number), ..spec }, context);
            let is_taken = matches!(&opened, Err(FabricError::Queue(error)) if matches!(**error, QueueError::InUse(_)));
            (!is_taken || number == last).then_some(opened)
        });
        self.keep(queue.unwrap_or(Err(QueueError::NoneFree(0).into()))?)
    }

    fn keep(&mut self, queue: Box<dyn Queue>) -> Result<(usize, QueueId)> {
        let id = queue.id();
        self.queues.push(Some(queue));
        Ok((self.queues.len() - 1, id))
    }

    fn register(&mut self, queue: usize, start: u64, len: usize, fixed: Option<u8>) -> Result<Stadd> {
        self.image.open()?;
        let region = self.program.register(Box::new(Buffer { image: self.image.clone(), start }), len)?;
        let at = self.queue(queue)?.register(&region, fixed)?;
        self.regions.push(((queue, at.tag()), region));
        Ok(at)
    }

    fn post(&self, queue: usize, postings: &[Posting]) -> Result<Posted> {
        let (posted, refused) = self.queue(queue)?.try_post(postings);
        let (is_full, error) = match refused {
            Ok(()) => (false, None),
            Err(Refused::Full(())) => (true, None),
            Err(Refused::Failed(error, ())) => (false, Some(error)),
        };
        Ok(Posted { posted, is_full, error })
    }

    /// Polls. If there is nothing, virtual time passes, and polls again.
    async fn poll<T: Wire>(&mut self, poll: impl Fn(&Self) -> Result<T>, is_nothing: impl Fn(&T) -> bool) -> Vec<u64> {
        let is_nothing = |polled: &Result<T>| polled.as_ref().is_ok_and(&is_nothing);
        let mut polled = poll(self);
        if is_nothing(&polled) {
            polled = self.missed(poll, is_nothing).await;
        } else {
            self.misses = 0;
        }
        self.reply(polled)
    }

    /// Lets the virtual time pass that a call takes that found nothing, and calls again.
    async fn missed<T>(&mut self, again: impl Fn(&Self) -> T, is_nothing: impl Fn(&T) -> bool) -> T {
        self.misses = self.misses.saturating_add(1);
        let turn = self.program.turn();
        self.fabric.compute(turn).await;
        // Before the wait, which only ends by what happens later.
        let mut found = again(self);
        if is_nothing(&found) && self.misses > TURNS {
            self.program.news(until_news(&self.fabric, &self.program, self.misses)).await;
            found = again(self);
        }
        if !is_nothing(&found) {
            self.misses = 0;
        }
        found
    }
}

fn not_open(number: usize) -> FabricError {
    FabricError::setting("queue", format!("{number} is not open"))
}
