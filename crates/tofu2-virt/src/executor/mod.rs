//! The loop that polls tasks and handles events, one after another, on one thread.
//!
//! A task is a future; an event identifies the rank to resume. All tasks are polled with the same
//! waker, which only records that the task being polled requests another turn. A turn costs the
//! task the platform's `yield` time, so that virtual time passes for a program that polls in a
//! loop. Wakers of combinators are kept separately and woken whenever the rank is resumed.
//!
//! A rank's helpers are tasks like its program, and each is polled separately.
//!
//! A rank's detached futures are polled after its task, every time, and also once the task has
//! ended. The rank has ended only when they have finished as well.

mod exit;
mod helpers;

use super::{memory::NoStorage, provider, ranks::Watched, tasks::Table, world::World};
use crate::{Awaited, JobError, Stuck};
use exit::message_of;
use rdma_fabric::{Rank, Time};
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// Called with the number of events and the virtual time, at regular numbers of events.
pub(super) type Progress<'a> = dyn FnMut(u64, Time) + 'a;

/// The number of consecutive deadlocks, without an event between them, from which ranks may try to
/// recover.
const PATIENCE: u32 = 64;

pub(super) struct Executor<'a, 'p> {
    world: Rc<World>,
    tasks: &'a mut dyn Table,
    pub(super) finish_times: Vec<Time>,
    failure: Option<JobError>,
    /// Ranks whose task has ended but which still have detached futures, and whether everything has
    /// succeeded so far.
    ending: HashMap<u32, bool>,
    /// The rank whose task was prefetched last.
    soon: u32,
    left: usize,
    pub(super) polls: u64,
    /// The number of events at the last deadlock, and the number of deadlocks at that number.
    deadlocks: (u64, u32),
    progress: Option<(u64, &'a mut Progress<'p>)>,
}

impl<'a, 'p> Executor<'a, 'p> {
    /// Returns the bytes that a rank takes here, for its fabric and for its task, which takes
    /// `task` bytes.
    pub(super) const fn bytes_per_rank(task: usize) -> usize {
        task + size_of::<Time>() + provider::FABRIC_BYTES
    }

    pub(super) fn new(
        world: Rc<World>,
        tasks: &'a mut dyn Table,
        progress: Option<(u64, &'a mut Progress<'p>)>,
    ) -> Self {
        let ranks = tasks.len();
        Executor {
            tasks,
            finish_times: vec![Time::ZERO; ranks],
            failure: None,
            ending: HashMap::new(),
            soon: 0,
            left: ranks,
            polls: 0,
            deadlocks: (0, 0),
            progress,
            world,
        }
    }

    /// Runs until all ranks have ended, or one has aborted the job. Returns the first failure of a
    /// rank.
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
            // Most events resume no rank: handle them without leaving this loop.
            let mut more = true;
            while more
                && !core.ranks.has_ready()
                && core.clock.events() < report_at
                && !core.injector.has_stopped_nodes()
            {
                more = core.step();
                if let Some(rank) = core.soon.take() {
                    // Prefetch in two steps: the task now, and the data that the rank's state
                    // points to one service later. The state is in the cache by then.
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
                // Its CPU is busy, so it is polled when the CPU is idle.
                core.clock.wake_at(rank, until);
                continue;
            }
            let wakers = core.ranks.take_wakers(rank);
            drop(core);
            wakers.into_iter().for_each(Waker::wake);
            if (rank as usize) < self.tasks.len() {
                self.poll(rank);
            } else {
                self.poll_helper(rank);
            }
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
            Ok(Poll::Ready(Ok(()))) => {
                self.end(rank, true);
            }
            Ok(Poll::Ready(Err(error))) => {
                let rank_failed = JobError::RankFailed { rank: Rank::new(rank), error };
                self.failure.get_or_insert(rank_failed);
                self.end(rank, false);
            }
            // Not the program's fault.
            Err(panic) if panic.is::<NoStorage>() => resume_unwind(panic),
            Err(panic) => {
                let message = message_of(&*panic);
                self.failure.get_or_insert(JobError::RankPanicked { rank: Rank::new(rank), message });
                self.end(rank, false);
            }
        }
    }

    /// Schedules another turn for the lane that was just polled, a rank's program or a helper, if
    /// it asked for one.
    #[inline]
    fn take_turn(&mut self, lane: u32) {
        if self.world.take_again() {
            let mut core = self.world.core();
            if let Some(error) = core.ranks.take_out_of_time(lane) {
                let rank = core.ranks.rank_of(lane);
                drop(core);
                let error = error.into();
                self.failure.get_or_insert(JobError::RankFailed { rank: Rank::new(rank), error });
                return self.end(rank, false);
            }
            let turn = core.now_of(lane).saturating_add(core.machine.timing.yield_);
            core.clock.wake_at(lane, turn);
        }
    }

    /// Ends waits for control queues with an error that ranks may recover from, because no event is
    /// pending. Returns whether there were any; false if this has happened too often without any
    /// event in between.
    fn ends_queue_waits(&mut self, events: u64) -> bool {
        self.deadlocks = if self.deadlocks.0 == events { (events, self.deadlocks.1 + 1) } else { (events, 1) };
        self.deadlocks.1 <= PATIENCE && self.world.core().ranks.end_queue_waits(self.left)
    }

    /// Returns the error of a job in which ranks are waiting and no event is pending.
    fn stuck(&mut self) -> JobError {
        if let Some(failure) = self.failure.take() {
            return failure;
        }
        let first = (0..self.tasks.len() as u32).find(|rank| self.tasks.is_running(*rank));
        let first = first.or(self.ending.keys().min().copied()).unwrap_or(0);
        let at = Time::from_picos(self.world.core().clock.now());
        JobError::Deadlock { at, waiting: self.left, first: Rank::new(first), stuck: self.waiting_ranks() }
    }

    /// Returns the waits of the first waiting ranks.
    fn waiting_ranks(&self) -> Vec<Stuck> {
        let core = self.world.core();
        let running = (0..self.tasks.len() as u32).filter(|rank| self.tasks.is_running(*rank));
        let stuck = running.take(Stuck::TOLD).map(|rank| {
            let (oldest, waits) = core.ranks.waits_of(rank);
            let awaited = oldest.map_or(Awaited::Other, |watched| match watched {
                Watched::Word(word) => Awaited::Word(word.addr()),
                Watched::Notice => Awaited::Notice,
                Watched::Queue(..) => Awaited::Queue,
                Watched::Gate => Awaited::Gate,
                Watched::News => Awaited::Other,
            });
            Stuck::new(Rank::new(rank), awaited, waits.saturating_sub(1), None)
        });
        stuck.collect()
    }
}

impl Drop for Executor<'_, '_> {
    fn drop(&mut self) {
        // Detached futures and helpers own references to the world that owns them, and dropping a
        // task may detach more.
        self.world.detached.close();
        self.tasks.clear();
        self.world.helpers.clear();
    }
}
