//! The loop that polls tasks and handles events, one after the other, on one thread.
//!
//! A task is a future; an event names the rank to resume. Tasks are polled with one waker for the
//! whole run, which only says that the task being polled wants another turn; that costs it the
//! platform's `yield` time, so that a program that polls in a loop lets virtual time pass. Wakers
//! of combinators are kept aside and woken whenever the rank is resumed.
//!
//! What a rank has detached is polled after its task, each time and also when the task is over:
//! only then has the rank ended.

mod ends;

use super::{memory::NoStorage, provider, ranks::Watched, tasks::Tasks, world::World};
use crate::{Awaited, JobError, Stuck};
use ends::message_of;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use std::{
    collections::BTreeMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// Called with the number of events and the time, once in a number of events.
pub(super) type Progress<'a> = dyn FnMut(u64, Time) + 'a;

/// Deadlocks without an event between them that ranks may try to go on from.
const PATIENCE: u32 = 64;

pub(super) struct Executor<'a, 'p, Fut: Future<Output = ProgramResult<T>>, T> {
    world: Rc<World>,
    pub(super) tasks: Tasks<Fut, T>,
    pub(super) finish_times: Vec<Time>,
    failure: Option<JobError>,
    /// Ranks whose task is over and that have detached futures left; whether all went well.
    ending: BTreeMap<u32, bool>,
    /// The rank whose task was last asked for.
    soon: u32,
    left: usize,
    pub(super) polls: u64,
    /// Number of events at the last deadlock, and how many there were at that number.
    deadlocks: (u64, u32),
    progress: Option<(u64, &'a mut Progress<'p>)>,
}

impl<'a, 'p, Fut: Future<Output = ProgramResult<T>>, T> Executor<'a, 'p, Fut, T> {
    /// What [`Executor::new`] takes for each rank.
    pub(super) const BYTES_PER_RANK: usize = Tasks::<Fut, T>::BYTES + size_of::<Time>() + provider::FABRIC_BYTES;

    pub(super) fn new(
        world: Rc<World>,
        ranks: u32,
        make: impl Fn(Fabric) -> Fut,
        progress: Option<(u64, &'a mut Progress<'p>)>,
    ) -> Self {
        let fabric = provider::fabrics(&world);
        Executor {
            tasks: Tasks::new((0..ranks).map(|rank| make(fabric(rank)))),
            finish_times: vec![Time::ZERO; ranks as usize],
            failure: None,
            ending: BTreeMap::new(),
            soon: 0,
            left: ranks as usize,
            polls: 0,
            deadlocks: (0, 0),
            progress,
            world,
        }
    }

    /// Runs until all ranks have ended, or one has aborted the job; yields the first failure of one.
    pub(super) fn run(&mut self) -> Result<Option<JobError>, JobError> {
        let mut report_at = self.progress.as_ref().map_or(u64::MAX, |(every, _)| *every);
        loop {
            self.run_ready();
            if let Some(aborted) = self.world.take_aborted() {
                return Err(aborted);
            }
            if self.left == 0 {
                break;
            }
            let mut core = self.world.core();
            // Most events resume nobody: stay inside.
            let mut more = true;
            while more
                && !core.ranks.has_ready()
                && core.clock.events() < report_at
                && !core.injector.has_stopped_nodes()
            {
                more = core.step();
                if let Some(rank) = core.soon.take() {
                    // First the task and, one service later, what is found by what is known of the
                    // rank: that is there by then.
                    self.tasks.prefetch(rank);
                    core.prefetch_for(std::mem::replace(&mut self.soon, rank));
                }
            }
            let (events, now) = (core.clock.events(), core.clock.now());
            let stopped = core.injector.take_stopped();
            drop(core);
            if !stopped.is_empty() {
                self.end_stopped(&stopped);
            }
            if let Some((every, tell)) = &mut self.progress
                && events >= report_at
            {
                tell(events, Time::from_picos(now));
                report_at = events.saturating_add((*every).max(1));
            }
            if !more {
                if self.ends_queue_waits(events) {
                    continue;
                }
                return Err(self.stuck());
            }
        }
        Ok(self.failure.take())
    }

    fn run_ready(&mut self) {
        while !self.world.is_aborted() {
            let mut core = self.world.core();
            let Some(rank) = core.ranks.next_ready() else {
                core.ranks.spread_losses();
                if !core.ranks.has_ready() {
                    return;
                }
                continue;
            };
            let until = core.ranks.cpu_until(rank);
            if until > core.clock.now() {
                // Its CPU is busy: it looks when it is done.
                core.clock.wake_at(rank, until);
                continue;
            }
            let wakers = core.ranks.take_wakers(rank);
            drop(core);
            wakers.into_iter().for_each(Waker::wake);
            self.poll(rank);
        }
    }

    #[inline]
    fn poll(&mut self, rank: u32) {
        self.world.take_again();
        let mut cx = Context::from_waker(self.world.waker());
        let polled = catch_unwind(AssertUnwindSafe(|| self.tasks.poll(rank, &mut cx)));
        let polled = match polled {
            Ok(Some(polled)) => Ok(polled),
            Ok(None) => {
                self.poll_detached(rank);
                return self.take_turn(rank);
            }
            Err(panic) => Err(panic),
        };
        self.polls += 1;
        match polled {
            Ok(Poll::Pending) => {
                if self.world.detached.any() {
                    self.poll_detached(rank);
                }
                self.take_turn(rank);
            }
            Ok(Poll::Ready(Ok(out))) => {
                self.end(rank, Some(out));
            }
            Ok(Poll::Ready(Err(error))) => {
                let rank_failed = JobError::RankFailed { rank: Rank::new(rank), error };
                self.failure.get_or_insert(rank_failed);
                self.end(rank, None);
            }
            // Not the program's doing.
            Err(panic) if panic.is::<NoStorage>() => resume_unwind(panic),
            Err(panic) => {
                let message = message_of(&*panic);
                self.failure.get_or_insert(JobError::RankPanicked { rank: Rank::new(rank), message });
                self.end(rank, None);
            }
        }
    }

    /// Gives what was just polled another turn if it asked for one.
    #[inline]
    fn take_turn(&mut self, rank: u32) {
        if self.world.take_again() {
            let mut core = self.world.core();
            if let Some(error) = core.ranks.take_out_of_time(rank) {
                drop(core);
                let error = error.into();
                self.failure.get_or_insert(JobError::RankFailed { rank: Rank::new(rank), error });
                return self.end(rank, None);
            }
            let turn = core.now_of(rank).saturating_add(core.machine.timing.yield_);
            core.clock.wake_at(rank, turn);
        }
    }

    /// No event is pending. Waits for control queues end with an error, which ranks may live with;
    /// true if there were some, and not again and again without any event since.
    fn ends_queue_waits(&mut self, events: u64) -> bool {
        self.deadlocks = if self.deadlocks.0 == events { (events, self.deadlocks.1 + 1) } else { (events, 1) };
        self.deadlocks.1 <= PATIENCE && self.world.core().ranks.end_queue_waits(self.left)
    }

    /// No event is pending and some ranks wait.
    fn stuck(&mut self) -> JobError {
        if let Some(failure) = self.failure.take() {
            return failure;
        }
        let first = (0..self.tasks.len() as u32).find(|rank| self.tasks.is_running(*rank));
        let first = first.or(self.ending.keys().next().copied()).unwrap_or(0);
        let at = Time::from_picos(self.world.core().clock.now());
        JobError::Deadlock { at, waiting: self.left, first: Rank::new(first), stuck: self.who_waits() }
    }

    /// What the first ranks wait for.
    fn who_waits(&self) -> Vec<Stuck> {
        let core = self.world.core();
        let running = (0..self.tasks.len() as u32).filter(|rank| self.tasks.is_running(*rank));
        let stuck = running.take(Stuck::TOLD).map(|rank| {
            let (oldest, waits) = core.ranks.waits_of(rank);
            let awaited = oldest.map_or(Awaited::Other, |watched| match watched {
                Watched::Word(word) => Awaited::Word(word.addr()),
                Watched::Notice => Awaited::Notice,
                Watched::Queue(..) => Awaited::Queue,
                Watched::Gate => Awaited::Gate,
            });
            Stuck { rank: Rank::new(rank), awaited, others: waits.saturating_sub(1), whom: None }
        });
        stuck.collect()
    }
}

impl<Fut: Future<Output = ProgramResult<T>>, T> Drop for Executor<'_, '_, Fut, T> {
    fn drop(&mut self) {
        // Detached futures hold the world that holds them, and dropping a task may detach more.
        self.world.detached.close();
        self.tasks.clear();
    }
}
