//! What a rank has begun in a window and not finished: gets into registered memory, and accumulates.
//!
//! The fabric runs single operations by itself; an accumulate is several, each of which depends on the one before. Nobody is
//! spawned to drive them: whoever waits for one, or flushes, drives all of them, and wakes the others when one is over.
//!
//! # Order
//! Accumulates of one rank to the same element are done in the order in which they were begun: one that overlaps an earlier one of the same
//! target waits until that is over (MPI's `rar`, `war`, `raw` and `waw` together). Those that do not overlap go on together.

use super::{
    locked,
    update::{Look, Stand, Update},
};
use core::{
    future::poll_fn,
    task::{Poll, Waker},
};
use rdma_fabric::{Fabric, FabricError, Handle, LocalSpan, Pod, Rank, Result};
use std::sync::Mutex;

pub(super) struct Jobs<T: Pod>(Mutex<List<T>>);

struct List<T: Pod> {
    /// In the order in which they were begun.
    jobs: Vec<Job<T>>,
    /// The number of the next one.
    next: u64,
    /// Of those who wait, but for whom the operations themselves wake.
    wakers: Vec<Waker>,
    /// What jobs met that nobody asks for, until the next flush of the rank.
    failed: Vec<(Rank, FabricError)>,
}

struct Job<T: Pod> {
    number: u64,
    rank: Rank,
    work: Work<T>,
    /// Whether somebody will take the outcome.
    claimed: bool,
}

enum Work<T: Pod> {
    Into(Handle<LocalSpan<T>>),
    Update(Box<Update>),
    Over(Result<Vec<u64>>),
}

impl<T: Pod> Work<T> {
    fn is_over(&self) -> bool {
        matches!(self, Work::Over(_))
    }
}

impl<T: Pod> List<T> {
    /// Do what can be done now; whether somebody should wait for room to post.
    fn advance(&mut self, fabric: &Fabric, mut look: Look<'_, '_>) -> bool {
        let mut no_room = false;
        let mut finished = false;
        for place in 0..self.jobs.len() {
            let (earlier, rest) = self.jobs.split_at_mut(place);
            let work = &mut rest[0].work;
            let over = match work {
                Work::Over(_) => None,
                Work::Into(handle) => look.at(handle).map(|result| result.map(|_| Vec::new())),
                Work::Update(update) => {
                    let before = |job: &Job<T>| matches!(&job.work, Work::Update(other) if other.overlaps(update));
                    if earlier.iter().any(before) {
                        continue;
                    }
                    match update.advance(fabric, &mut look) {
                        Stand::Over => {
                            let Work::Update(update) = core::mem::replace(work, Work::Over(Ok(Vec::new()))) else {
                                unreachable!("it was matched")
                            };
                            Some(update.outcome())
                        }
                        Stand::Flying => None,
                        Stand::NoRoom => {
                            no_room = true;
                            None
                        }
                    }
                }
            };
            if let Some(outcome) = over {
                *work = Work::Over(outcome);
                finished = true;
            }
        }
        if finished {
            self.forget();
            self.wakers.drain(..).for_each(Waker::wake);
        }
        no_room
    }

    /// Drop what is over and nobody's.
    fn forget(&mut self) {
        let failed = &mut self.failed;
        self.jobs.retain_mut(|job| {
            if job.claimed {
                return true;
            }
            match &mut job.work {
                Work::Over(Ok(_)) => false,
                Work::Over(Err(error)) => {
                    failed.push((job.rank, error.clone()));
                    false
                }
                _ => true,
            }
        });
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.jobs.iter().position(|job| job.number == number)
    }

    fn unfinished(&self, rank: Option<Rank>) -> usize {
        self.jobs.iter().filter(|job| !job.work.is_over() && rank.is_none_or(|rank| rank == job.rank)).count()
    }
}

/// Who waits for jobs: on its end the others must look for themselves.
struct Driver<'a, T: Pod>(&'a Jobs<T>);

impl<T: Pod> Drop for Driver<'_, T> {
    fn drop(&mut self) {
        locked(&self.0.0).wakers.drain(..).for_each(Waker::wake);
    }
}

impl<T: Pod> Jobs<T> {
    pub(super) fn new() -> Self {
        Jobs(Mutex::new(List { jobs: Vec::new(), next: 0, wakers: Vec::new(), failed: Vec::new() }))
    }

    fn begin(&self, fabric: &Fabric, rank: Rank, work: Work<T>, claimed: bool) -> u64 {
        let mut list = locked(&self.0);
        let number = list.next;
        list.next += 1;
        list.jobs.push(Job { number, rank, work, claimed });
        list.advance(fabric, Look::Test);
        number
    }

    /// Keep a get into registered memory until it is over.
    pub(super) fn get_into(&self, fabric: &Fabric, rank: Rank, handle: Handle<LocalSpan<T>>) {
        self.begin(fabric, rank, Work::Into(handle), false);
    }

    /// Begin an accumulate; yields its number, which is good until it is [taken](Jobs::take) or [left](Jobs::leave) if it is `claimed`.
    pub(super) fn update(&self, fabric: &Fabric, rank: Rank, update: Update, claimed: bool) -> u64 {
        self.begin(fabric, rank, Work::Update(Box::new(update)), claimed)
    }

    /// Drive all jobs until `until` has an answer.
    async fn drive<R>(&self, fabric: &Fabric, mut until: impl FnMut(&mut List<T>) -> Option<R>) -> Result<R> {
        if let Some(answer) = until(&mut locked(&self.0)) {
            return Ok(answer);
        }
        let _driver = Driver(self);
        loop {
            let next = poll_fn(|cx| {
                let mut list = locked(&self.0);
                let no_room = list.advance(fabric, Look::Poll(cx));
                if let Some(answer) = until(&mut list) {
                    return Poll::Ready(Some(answer));
                }
                if no_room {
                    return Poll::Ready(None);
                }
                if !list.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    list.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            });
            match next.await {
                Some(answer) => return Ok(answer),
                None => fabric.room(None).await?,
            }
        }
    }

    /// The outcome of a claimed job: the bits before of each element.
    pub(super) async fn take(&self, fabric: &Fabric, number: u64) -> Result<Vec<u64>> {
        let over = |list: &mut List<T>| {
            let place = list.place(number)?;
            if !list.jobs[place].work.is_over() {
                return None;
            }
            match list.jobs.remove(place).work {
                Work::Over(outcome) => Some(outcome),
                _ => unreachable!("it is over"),
            }
        };
        self.drive(fabric, over).await?
    }

    /// Whether a claimed job is over. Never waits.
    pub(super) fn test(&self, fabric: &Fabric, number: u64) -> bool {
        let mut list = locked(&self.0);
        list.advance(fabric, Look::Test);
        list.place(number).is_none_or(|place| list.jobs[place].work.is_over())
    }

    /// Nobody will take the outcome of this job; it goes on.
    pub(super) fn leave(&self, number: u64) {
        let mut list = locked(&self.0);
        if let Some(place) = list.place(number) {
            list.jobs[place].claimed = false;
            list.forget();
        }
    }

    /// Wait until fewer than `limit` jobs are unfinished.
    pub(super) async fn fewer_than(&self, fabric: &Fabric, limit: usize) -> Result<()> {
        self.drive(fabric, |list| (list.unfinished(None) < limit).then_some(())).await
    }

    /// Wait until all jobs of `rank`, or of all ranks, are over.
    ///
    /// # Errors
    /// The first that one of them met whose outcome nobody takes.
    pub(super) async fn settle(&self, fabric: &Fabric, rank: Option<Rank>) -> Result<()> {
        self.drive(fabric, |list| (list.unfinished(rank) == 0).then_some(())).await?;
        let mut list = locked(&self.0);
        let concerns = |who: Rank| rank.is_none_or(|rank| rank == who);
        let first = list.failed.iter().find(|(who, _)| concerns(*who)).map(|(_, error)| error.clone());
        list.failed.retain(|(who, _)| !concerns(*who));
        first.map_or(Ok(()), Err)
    }

    /// Whether nothing is unfinished.
    pub(super) fn is_idle(&self) -> bool {
        locked(&self.0).unfinished(None) == 0
    }
}
