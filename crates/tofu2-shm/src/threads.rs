//! A job whose ranks are threads of this process.

use super::{
    admission,
    endpoint::Endpoint,
    helpers,
    job::{Job, State},
    memory::allocator::Pages,
    options::{JobOptions, job_options},
    processes::placement::{self, affinity},
    waiting::{block_on, watchdog::Watchdog},
};
use crate::{HelperFailed, JobError};
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use rdma_fabric::{Fabric, FabricError, Program, ProgramResult, Rank};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
    thread,
};

/// The output or failure of each rank, in rank order, and the index of the failure that caused the
/// others.
pub type EachRank<T> = (Vec<Result<T, JobError>>, Option<usize>);

/// A job whose ranks are threads: for tests, measurements, and uses where separate processes are
/// undesirable.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// async fn hello(fabric: Fabric) -> ProgramResult<usize> {
///     let mut world = Group::world(&fabric).await?;
///     Ok(world.allgather(fabric.rank().number()).await?.len())
/// }
/// let out = tofu2_shm::Threads::new(3).segment_bytes(1 << 20).run(&hello)?;
/// assert_eq!(out, [3, 3, 3]);
/// # Ok::<(), tofu2_shm::JobError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Threads {
    options: JobOptions,
}

job_options!(Threads);

impl Threads {
    /// Prepares a job of `ranks` ranks, all on node 0.
    pub fn new(ranks: usize) -> Self {
        Threads { options: JobOptions::new(ranks) }
    }

    /// Runs `program` on every rank, each on a separate thread that is named after it, and returns
    /// their outputs in rank order.
    ///
    /// # Errors
    /// [`JobError::RankFailed`] or [`JobError::RankPanicked`] of the rank that failed first, once
    /// all have ended. Ranks that depend on it end with [`FabricError::PeerLost`], or with
    /// [`FabricError::StaleRegion`] just before; a rank with any other error is reported in
    /// preference to one with these. [`JobError::Deadlock`] if no rank had failed and none can make
    /// progress; their waits then end with [`FabricError::Deadlock`]. [`JobError::Aborted`] if a
    /// rank aborted the job, once all have returned. [`JobError::Fabric`] if the job could not be
    /// started.
    pub fn run<P: Program>(&self, program: &P) -> Result<Vec<P::Out>, JobError> {
        self.run_with(|fabric| run_alone(fabric, program))
    }

    /// Calls `rank` on each rank's thread and returns their outputs in rank order. For ranks that
    /// run futures with their own executor.
    ///
    /// # Errors
    /// The errors of [`Threads::run`].
    pub fn run_with<T: Send>(&self, rank: impl Fn(Fabric) -> ProgramResult<T> + Sync) -> Result<Vec<T>, JobError> {
        let (mut ended, first) = self.run_through_with(rank)?;
        match first {
            Some(first) => Err(ended.swap_remove(first).err().unwrap_or_else(lost_thread)),
            None => ended.into_iter().collect(),
        }
    }

    /// Runs `program` on every rank. Returns how each ended, in rank order, and the index of the
    /// rank whose failure caused the others, if any failed.
    ///
    /// # Errors
    /// [`JobError::Fabric`] if the job could not be started; [`JobError::Deadlock`],
    /// [`JobError::Aborted`].
    pub fn run_through<P: Program>(&self, program: &P) -> Result<EachRank<P::Out>, JobError> {
        self.run_through_with(|fabric| run_alone(fabric, program))
    }

    /// Calls `rank` on each rank's thread. Returns how each ended, in rank order, and the index of
    /// the rank whose failure caused the others, if any failed.
    ///
    /// # Errors
    /// The errors of [`Threads::run_through`].
    pub fn run_through_with<T: Send>(
        &self,
        rank: impl Fn(Fabric) -> ProgramResult<T> + Sync,
    ) -> Result<EachRank<T>, JobError> {
        let plan = self.options.plan(0)?;
        admission::of_threads(&plan)?;
        // Plain loops, because code that depends on the program is compiled again for each program.
        let mut outs = Vec::new();
        for _ in 0..plan.ranks {
            outs.push(None);
        }
        let outs = Mutex::new(outs);
        let (ended, first) = self.run_threads(&|fabric| {
            let number = fabric.rank().index();
            let out = rank(fabric)?;
            outs.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(out);
            Ok(())
        })?;
        let mut each = Vec::with_capacity(ended.len());
        let mut outs = outs.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (rank, ended) in ended.into_iter().enumerate() {
            each.push(ended.and_then(|()| outs[rank].take().ok_or_else(lost_thread)));
        }
        Ok((each, first))
    }

    /// Calls `rank` on each rank's thread. Compiled once, not again for each program.
    fn run_threads(&self, rank: &(dyn Fn(Fabric) -> ProgramResult<()> + Sync)) -> Result<EachRank<()>, JobError> {
        let plan = self.options.plan(0)?;
        let bound = placement::of_job(self.options.bind, plan.ranks)?;
        let job = Job::of_threads_with(plan, self.options.queues)?;
        let ranks = || (0..plan.ranks as u32).map(Rank::new);
        // All endpoints or none: otherwise, ranks would wait for a rank without a thread.
        let endpoints = ranks()
            .map(|rank| Endpoint::new(job.clone(), rank, Pages::Private))
            .collect::<Result<Vec<_>, FabricError>>()?;
        let mut watchdog = Watchdog::new(self.options.stuck_after);
        let mut deadlock = None;
        let ended = AtomicUsize::new(0);
        let outcomes: Vec<Result<(), JobError>> = thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut refused = None;
            for endpoint in endpoints {
                let me = endpoint.me();
                if refused.is_some() {
                    job.publish(me, State::Lost);
                    continue;
                }
                // Kept so that a closure dropped because no thread could be started publishes
                // nothing.
                let kept = endpoint.clone();
                let builder = thread::Builder::new().name(me.to_string());
                let cpus = bound.get(me.index());
                let run = move |fabric| {
                    cpus.map_or(Ok(()), |cpus| affinity::bind_this_thread(cpus))?;
                    rank(fabric)
                };
                let ended_mark = Ended { number: &ended, joins: thread::current() };
                let run = move || {
                    let out = run_endpoint(endpoint, run);
                    drop(ended_mark);
                    out
                };
                match builder.spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        kept.job().publish(me, State::Lost);
                        let errno = error.raw_os_error().unwrap_or(0);
                        refused = Some(FabricError::System { call: &"pthread_create", errno });
                    }
                }
            }
            while let Some(watchdog) = &mut watchdog
                && deadlock.is_none()
                && ended.load(SeqCst) < threads.len()
            {
                thread::park_timeout(watchdog.pause());
                let failed = job.control.first_lost().is_some();
                deadlock = watchdog.look(&job, |_, _| false).map(|deadlock| (deadlock, failed));
            }
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost_thread())));
            let outcomes: Vec<_> = ended.collect();
            match refused {
                Some(error) => Err(JobError::from(error)),
                None => Ok(outcomes),
            }
        })?;
        if let Some(aborted) = job.aborted() {
            return Err(aborted);
        }
        if let Some((deadlock, false)) = deadlock {
            return Err(deadlock);
        }
        // A failed program's regions are dropped before its loss is published. A peer that
        // encounters this in between, or the loss before it is counted, may have been counted
        // first: prefer a failure that is not the consequence of another.
        let first = job.control.first_lost();
        let has_failed = |rank: &usize| outcomes.get(*rank).is_some_and(Result::is_err);
        let has_cause = |rank: &usize| matches!(outcomes.get(*rank), Some(Err(error)) if !is_consequence(error));
        let culprit = first.filter(has_cause).or_else(|| (0..outcomes.len()).find(has_cause));
        let culprit = culprit.or_else(|| first.filter(has_failed)).or_else(|| (0..outcomes.len()).find(has_failed));
        Ok((outcomes, culprit))
    }
}

/// Returns whether a rank failed in a way that another rank's failure would cause.
fn is_consequence(error: &JobError) -> bool {
    let JobError::RankFailed { error, .. } = error else { return false };
    let error = error.downcast_ref::<HelperFailed>().map_or(&**error, |helper| &*helper.error);
    matches!(
        error.downcast_ref(),
        Some(FabricError::PeerLost { .. } | FabricError::StaleRegion { .. } | FabricError::Deadlock { .. })
    )
}

/// Counts a rank's thread when it is dropped, and wakes the thread that joins it.
struct Ended<'a> {
    number: &'a AtomicUsize,
    joins: thread::Thread,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.number.fetch_add(1, SeqCst);
        self.joins.unpark();
    }
}

fn lost_thread() -> JobError {
    FabricError::System { call: &"pthread_join", errno: 0 }.into()
}

/// Runs `program` as the rank of `fabric` on this thread, and publishes how it ended: left, or lost
/// if it panicked or returned an error.
///
/// # Errors
/// [`JobError::RankFailed`], [`JobError::RankPanicked`]; [`JobError::Fabric`] if `fabric` is not a
/// rank over shared memory.
pub fn run_rank<P: Program>(fabric: Fabric, program: &P) -> Result<P::Out, JobError> {
    let alone = fabric.is_only_handle() && Endpoint::of(&fabric).is_some_and(Endpoint::has_no_other_handle);
    run_rank_with(fabric, |fabric| if alone { run_alone(fabric, program) } else { block_on(program.run(fabric)) })
}

/// Runs a program that makes up the whole rank.
fn run_alone<P: Program>(fabric: Fabric, program: &P) -> ProgramResult<P::Out> {
    if let Some(endpoint) = Endpoint::of(&fabric) {
        endpoint.seal();
    }
    block_on(program.run(fabric))
}

/// Calls `rank` on this thread and publishes how it ended. For a rank that runs futures with its
/// own executor, such as an async runtime. The rank ends when `rank` returns: for tasks that
/// outlive it the fabric continues to work, but peers regard the rank as ended.
///
/// # Errors
/// Those of [`run_rank`].
pub fn run_rank_with<T>(fabric: Fabric, rank: impl FnOnce(Fabric) -> ProgramResult<T>) -> Result<T, JobError> {
    let none = FabricError::Unsupported { feature: &"a rank that is not over shared memory" };
    // Kept until the end is published, so that dropping the program's handle publishes nothing.
    let kept = Endpoint::of(&fabric).cloned().ok_or(none)?;
    ended(&kept, || rank(fabric))
}

fn run_endpoint<T>(endpoint: Endpoint, rank: impl FnOnce(Fabric) -> ProgramResult<T>) -> Result<T, JobError> {
    let kept = endpoint.clone();
    ended(&kept, || rank(endpoint.fabric()))
}

/// Runs a rank, then ends its helpers, and publishes its outcome.
pub(super) fn ended<T>(kept: &Endpoint, rank: impl FnOnce() -> ProgramResult<T>) -> Result<T, JobError> {
    let number = kept.me();
    kept.helpers().allow();
    let out = catch_unwind(AssertUnwindSafe(rank));
    let helper = kept.helpers().end(kept.segment());
    let out = match (out, helper) {
        (Ok(Ok(out)), None) => Ok(out),
        (Ok(Ok(_)), Some(helper)) => Err(helper.of(number)),
        (Ok(Err(error)), Some(helper)) if helpers::is_reported_by(&*error) => Err(helper.of(number)),
        (Ok(Err(error)), _) => Err(JobError::RankFailed { rank: number, error }),
        (Err(panic), _) => Err(JobError::RankPanicked { rank: number, message: message(&*panic) }),
    };
    kept.job().publish(number, if out.is_ok() { State::Left } else { State::Lost });
    out
}

/// Returns a panic's message, if it was text.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or_default().to_owned()
}
