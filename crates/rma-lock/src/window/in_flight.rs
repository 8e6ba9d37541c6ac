//! A rank's operations in flight in a window: gets into registered memory, and accumulates.
//!
//! The fabric executes single operations by itself; an accumulate consists of several, each of
//! which depends on the previous one. No task is spawned to drive them: a task that waits for one,
//! or flushes, drives all of them, and wakes the other waiting tasks when one completes.
//!
//! # Order
//! Accumulates of one rank to the same element are executed in the order in which they were
//! started: an accumulate that overlaps an earlier one at the same target waits until that
//! completes (MPI's `rar`, `war`, `raw` and `waw` together). Accumulates that do not overlap run
//! concurrently.

use super::{
    locked,
    update::{Look, Progress, Update},
};
use core::{
    future::poll_fn,
    task::{Poll, Waker},
};
use rdma_fabric::{Fabric, FabricError, Handle, LocalSpan, Pod, Rank, Result};
use std::sync::Mutex;

pub(super) struct InFlightTable(Mutex<Table>);

struct Table {
    /// In the order in which they were started.
    ops: Vec<InFlightOp>,
    /// The number of the next operation.
    next: u64,
    /// Wakers of waiting tasks, other than those that the operations themselves wake.
    wakers: Vec<Waker>,
    /// Errors of unclaimed operations, kept until the next flush of the rank.
    failed: Vec<(Rank, FabricError)>,
}

struct InFlightOp {
    number: u64,
    rank: Rank,
    state: State,
    /// Whether a caller will take the result.
    claimed: bool,
}

enum State {
    Get(Box<dyn Get>),
    Update(Box<Update>),
    Complete(Result<Vec<u64>>),
}

/// A get into registered memory, of elements of any type.
trait Get: Send {
    /// Returns the get's result, if it is complete.
    fn look(&mut self, look: &mut Look<'_, '_>) -> Option<Result<()>>;
}

impl<T: Pod> Get for Handle<LocalSpan<T>> {
    fn look(&mut self, look: &mut Look<'_, '_>) -> Option<Result<()>> {
        look.at(self).map(|result| result.map(drop))
    }
}

impl State {
    fn is_complete(&self) -> bool {
        matches!(self, State::Complete(_))
    }
}

impl Table {
    /// Advances all operations as far as possible; returns whether the caller has to wait for room
    /// to post.
    fn advance(&mut self, fabric: &Fabric, mut look: Look<'_, '_>) -> bool {
        let mut no_room = false;
        let mut finished = false;
        for position in 0..self.ops.len() {
            let (earlier, rest) = self.ops.split_at_mut(position);
            let state = &mut rest[0].state;
            let over = match state {
                State::Complete(_) => None,
                State::Get(get) => get.look(&mut look).map(|result| result.map(|()| Vec::new())),
                State::Update(update) => {
                    let before = |op: &InFlightOp| matches!(&op.state, State::Update(other) if other.overlaps(update));
                    if earlier.iter().any(before) {
                        continue;
                    }
                    match update.advance(fabric, &mut look) {
                        Progress::Complete => {
                            let State::Update(update) = core::mem::replace(state, State::Complete(Ok(Vec::new())))
                            else {
                                unreachable!("it was matched")
                            };
                            Some(update.outcome())
                        }
                        Progress::Waiting => None,
                        Progress::NoRoom => {
                            no_room = true;
                            None
                        }
                    }
                }
            };
            if let Some(outcome) = over {
                *state = State::Complete(outcome);
                finished = true;
            }
        }
        if finished {
            self.forget();
            self.wakers.drain(..).for_each(Waker::wake);
        }
        no_room
    }

    /// Drops operations that are complete and unclaimed.
    fn forget(&mut self) {
        let failed = &mut self.failed;
        self.ops.retain_mut(|op| {
            if op.claimed {
                return true;
            }
            match &mut op.state {
                State::Complete(Ok(_)) => false,
                State::Complete(Err(error)) => {
                    failed.push((op.rank, error.clone()));
                    false
                }
                _ => true,
            }
        });
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.ops.iter().position(|op| op.number == number)
    }

    /// Takes the errors of unclaimed operations to `rank`, or to all ranks; returns the first.
    fn take_failure(&mut self, rank: Option<Rank>) -> Result<()> {
        let concerns = |who: Rank| rank.is_none_or(|rank| rank == who);
        let first = self.failed.iter().find(|(who, _)| concerns(*who)).map(|(_, error)| error.clone());
        self.failed.retain(|(who, _)| !concerns(*who));
        first.map_or(Ok(()), Err)
    }

    fn unfinished(&self, rank: Option<Rank>) -> usize {
        self.ops.iter().filter(|op| !op.state.is_complete() && rank.is_none_or(|rank| rank == op.rank)).count()
    }
}

/// A task that drives the operations: when it ends, the other waiting tasks must drive them.
struct Driver<'a>(&'a InFlightTable);

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        locked(&self.0.0).wakers.drain(..).for_each(Waker::wake);
    }
}

impl InFlightTable {
    pub(super) fn new() -> Self {
        InFlightTable(Mutex::new(Table { ops: Vec::new(), next: 0, wakers: Vec::new(), failed: Vec::new() }))
    }

    fn begin(&self, fabric: &Fabric, rank: Rank, state: State, claimed: bool) -> u64 {
        let mut table = locked(&self.0);
        let number = table.next;
        table.next += 1;
        table.ops.push(InFlightOp { number, rank, state, claimed });
        table.advance(fabric, Look::Test);
        number
    }

    /// Keeps a get into registered memory until it completes.
    pub(super) fn get_into<T: Pod>(&self, fabric: &Fabric, rank: Rank, handle: Handle<LocalSpan<T>>) {
        self.begin(fabric, rank, State::Get(Box::new(handle)), false);
    }

    /// Starts an accumulate; returns its number. If it is `claimed`, the number is valid until it
    /// is [taken](InFlightTable::take) or [left](InFlightTable::leave).
    pub(super) fn update(&self, fabric: &Fabric, rank: Rank, update: Update, claimed: bool) -> u64 {
        self.begin(fabric, rank, State::Update(Box::new(update)), claimed)
    }

    /// Drives all operations until `until` returns a result.
    async fn drive<R>(&self, fabric: &Fabric, mut until: impl FnMut(&mut Table) -> Option<R>) -> Result<R> {
        if let Some(answer) = until(&mut locked(&self.0)) {
            return Ok(answer);
        }
        let _driver = Driver(self);
        loop {
            let next = poll_fn(|cx| {
                let mut table = locked(&self.0);
                let no_room = table.advance(fabric, Look::Poll(cx));
                if let Some(answer) = until(&mut table) {
                    return Poll::Ready(Some(answer));
                }
                if no_room {
                    return Poll::Ready(None);
                }
                if !table.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    table.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            });
            match next.await {
                Some(answer) => return Ok(answer),
                None => fabric.room(None).await?,
            }
        }
    }

    /// Waits for the result of a claimed accumulate: the previous bits of each element.
    pub(super) async fn take(&self, fabric: &Fabric, number: u64) -> Result<Vec<u64>> {
        let over = move |table: &mut Table| {
            let at = table.position(number)?;
            if !table.ops[at].state.is_complete() {
                return None;
            }
            match table.ops.remove(at).state {
                State::Complete(outcome) => Some(outcome),
                _ => unreachable!("it is over"),
            }
        };
        let complete = over(&mut locked(&self.0));
        match complete {
            Some(outcome) => outcome,
            None => Box::pin(self.drive(fabric, over)).await?,
        }
    }

    /// Returns whether a claimed accumulate is complete. Never waits.
    pub(super) fn test(&self, fabric: &Fabric, number: u64) -> bool {
        let mut table = locked(&self.0);
        table.advance(fabric, Look::Test);
        table.position(number).is_none_or(|at| table.ops[at].state.is_complete())
    }

    /// Abandons the claim to an accumulate, which continues.
    pub(super) fn leave(&self, number: u64) {
        let mut table = locked(&self.0);
        if let Some(at) = table.position(number) {
            table.ops[at].claimed = false;
            table.forget();
        }
    }

    /// Waits until fewer than `limit` operations are unfinished.
    pub(super) async fn fewer_than(&self, fabric: &Fabric, limit: usize) -> Result<()> {
        let few = move |table: &mut Table| (table.unfinished(None) < limit).then_some(());
        let are_few = few(&mut locked(&self.0)).is_some();
        if are_few { Ok(()) } else { Box::pin(self.drive(fabric, few)).await }
    }

    /// Waits until all operations to `rank`, or to all ranks, are complete.
    ///
    /// # Errors
    /// The first error of an unclaimed operation.
    pub(super) async fn quiesce(&self, fabric: &Fabric, rank: Option<Rank>) -> Result<()> {
        let over = move |table: &mut Table| (table.unfinished(rank) == 0).then(|| table.take_failure(rank));
        let complete = over(&mut locked(&self.0));
        match complete {
            Some(outcome) => outcome,
            None => Box::pin(self.drive(fabric, over)).await?,
        }
    }

    /// Returns whether all operations are complete.
    pub(super) fn is_idle(&self) -> bool {
        locked(&self.0).unfinished(None) == 0
    }
}
