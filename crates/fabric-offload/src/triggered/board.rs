//! The board of a rank: sets of puts that it has armed, to be executed by the next call that waits.

use super::set::Set;
use core::{
    future::poll_fn,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};
use rdma_fabric::{FabricError, join};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sets lent by their owners, and the tasks to wake.
///
/// No lock is held while anything is posted or waited for.
pub(super) struct Board {
    lent: Mutex<Lent>,
    /// The number of lent sets with remaining work; read without the lock.
    left: AtomicU64,
    /// A count that grows with every loan, and whenever watching tasks are woken.
    turns: AtomicU64,
}

struct Lent {
    sets: Vec<Loan>,
    /// The number of the next loan or watch.
    next: u64,
    /// Tasks that wait alongside the board, and owners that wait to reclaim their sets.
    watches: Vec<(u64, Waker)>,
    /// Whether an owner waits for a set that is being executed.
    missed: bool,
}

struct Loan {
    number: u64,
    /// `None` while it is being executed.
    set: Option<Box<Set>>,
    /// Whether there is remaining work; counted in [`Board::left`].
    left: bool,
}

impl Board {
    pub(super) fn new() -> Self {
        let lent = Lent { sets: Vec::new(), next: 0, watches: Vec::new(), missed: false };
        Board { lent: Mutex::new(lent), left: AtomicU64::new(0), turns: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Lent> {
        // No code panics while the lock is held.
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is no remaining work.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Returns a number that changes when a set was lent, and when watching tasks have to check
    /// again.
    #[inline]
    pub(super) fn turns(&self) -> u64 {
        // Acquire: a task that sees a turn also sees the count of the remaining sets.
        self.turns.load(Ordering::Acquire)
    }

    /// Takes the tasks that have to check again.
    fn turn(&self, lent: &mut Lent) -> Vec<(u64, Waker)> {
        self.turns.fetch_add(1, Ordering::Release);
        core::mem::take(&mut lent.watches)
    }

    /// Lends a set to the next call that waits.
    pub(super) fn lend(&self, set: Box<Set>) -> u64 {
        let left = set.is_left();
        let mut lent = self.lock();
        let number = lent.number();
        lent.sets.push(Loan { number, set: Some(set), left });
        if left {
            self.left.fetch_add(1, Ordering::Relaxed);
            let woken = self.turn(&mut lent);
            drop(lent);
            wake(woken);
        }
        number
    }

    /// Takes a set back as soon as it is not being executed.
    pub(super) async fn reclaim(&self, loan: u64) -> Box<Set> {
        poll_fn(|cx| {
            let mut lent = self.lock();
            match self.taken_back(&mut lent, loan) {
                Some(set) => Poll::Ready(set),
                None => {
                    let number = lent.number();
                    lent.missed = true;
                    lent.watches.push((number, cx.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn taken_back(&self, lent: &mut Lent, loan: u64) -> Option<Box<Set>> {
        let place = lent.sets.iter().position(|known| known.number == loan)?;
        let set = lent.sets[place].set.take()?;
        self.remove(lent, place);
        Some(set)
    }

    fn remove(&self, lent: &mut Lent, place: usize) -> Loan {
        let mut loan = lent.sets.swap_remove(place);
        self.record_departure(&mut loan, false);
        loan
    }

    /// Records whether a set has remaining work.
    fn record_departure(&self, loan: &mut Loan, left: bool) {
        if core::mem::replace(&mut loan.left, left) && !left {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Removes a set whose owner was dropped.
    pub(super) fn withdraw(&self, loan: u64) {
        let mut lent = self.lock();
        let place = lent.sets.iter().position(|known| known.number == loan);
        let gone = place.map(|place| self.remove(&mut lent, place));
        drop(lent);
        drop(gone);
    }

    /// Registers `cx` to be woken when a set is lent; each watch is entered once.
    pub(super) fn watch(&self, cx: &Context<'_>, watch: &mut Watch<'_>) {
        let is_current = |waker: &Waker| waker.will_wake(cx.waker()) && watch.turn == self.turns();
        if watch.waker.as_ref().is_some_and(is_current) {
            return;
        }
        let mut lent = self.lock();
        let number = *watch.number.get_or_insert_with(|| lent.number());
        lent.watches.retain(|(known, _)| *known != number);
        lent.watches.push((number, cx.waker().clone()));
        watch.turn = self.turns();
        drop(lent);
        watch.waker = Some(cx.waker().clone());
    }

    /// Executes the lent sets that no other call holds, once.
    pub(super) async fn advance(&self) {
        let mut taken = self.take();
        taken.advance().await;
    }

    /// Executes the lent sets that no other call holds, repeatedly, until no work remains.
    pub(super) async fn drive(&self) {
        loop {
            let mut taken = self.take();
            taken.advance().await;
            let parked: Vec<_> =
                taken.sets.iter().filter(|(_, set)| set.is_left()).map(|(n, set)| (*n, set.parked())).collect();
            drop(taken);
            if parked.is_empty() {
                return;
            }
            let waits = parked.into_iter().map(|(number, parked)| async move {
                match parked {
                    Ok(parked) => (number, parked.wait().await),
                    Err(error) => (number, Err(error)),
                }
            });
            if let (number, Err(error)) = join::race_all(waits).await {
                self.fail(number, error);
            }
        }
    }

    /// Keeps the error for the set's owner.
    fn fail(&self, loan: u64, error: FabricError) {
        let mut lent = self.lock();
        if let Some(known) = lent.sets.iter_mut().find(|known| known.number == loan)
            && let Some(set) = &mut known.set
        {
            set.fail(error);
            self.record_departure(known, false);
        }
    }

    /// Takes the sets with remaining work and that no other call holds; other calls drive the rest.
    fn take(&self) -> Taken<'_> {
        let mut lent = self.lock();
        let left = lent.sets.iter_mut().filter(|loan| loan.left);
        Taken { board: self, sets: left.filter_map(|loan| Some((loan.number, loan.set.take()?))).collect() }
    }
}

impl Lent {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Sets held by a call; dropping this puts them back.
struct Taken<'a> {
    board: &'a Board,
    sets: Vec<(u64, Box<Set>)>,
}

impl Taken<'_> {
    /// Advances each set once; a set keeps its error for its owner.
    async fn advance(&mut self) {
        match &mut self.sets[..] {
            [] => {}
            [(_, set)] => drop(set.advance().await),
            sets => drop(join::join_all(sets.iter_mut().map(|(_, set)| set.advance())).await),
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.sets.is_empty() {
            return;
        }
        let (mut orphans, mut woken) = (Vec::new(), Vec::new());
        {
            let mut lent = self.board.lock();
            for (number, set) in self.sets.drain(..) {
                let Some(loan) = lent.sets.iter_mut().find(|loan| loan.number == number) else {
                    orphans.push(set);
                    continue;
                };
                self.board.record_departure(loan, set.is_left());
                loan.set = Some(set);
            }
            if core::mem::take(&mut lent.missed) {
                woken = self.board.turn(&mut lent);
            }
        }
        wake(woken);
    }
}

fn wake(watches: Vec<(u64, Waker)>) {
    watches.into_iter().for_each(|(_, waker)| waker.wake());
}

/// A task to wake when a set is lent.
pub(super) struct Watch<'a> {
    board: &'a Board,
    number: Option<u64>,
    waker: Option<Waker>,
    /// The board's turn when the watch was entered: a later turn has removed it.
    turn: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(board: &'a Board) -> Self {
        Watch { board, number: None, waker: None, turn: 0 }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut lent = self.board.lock();
        lent.watches.retain(|(known, _)| *known != number);
        // The remaining watchers must take over the work of this one.
        let others = !lent.watches.is_empty() && !self.board.is_idle();
        let woken = if others { self.board.turn(&mut lent) } else { Vec::new() };
        drop(lent);
        wake(woken);
    }
}
