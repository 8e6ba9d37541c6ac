//! The table of locks that this process has open, by number, with their holders.
//!
//! A forked child starts with its own table: a thread that does not exist in the child may have
//! locked the parent's table for ever. The number of a lock includes the depth of its table, so
//! that a child that uses one of its parent's numbers receives an error that says so. It also
//! includes the turn (a generation count) of its table entry, so that a closed number does not
//! refer to the next lock in that entry.

use crate::codes::{Code, Failure, Outcome};
use named_lock::{NamedLock, ReadGuard, WriteGuard, this_process};
use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
    thread::{self, ThreadId},
};

/// A lock, and the holds of this process's threads.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) lock: NamedLock,
    holds: Mutex<Vec<(ThreadId, Held)>>,
}

/// A hold of a lock, in either mode.
#[derive(Debug)]
pub(crate) enum Held {
    Shared(ReadGuard),
    Exclusive(WriteGuard),
}

/// The locks of one process.
#[derive(Debug)]
struct Table {
    process: u32,
    locks: RwLock<Vec<Place>>,
    /// The table of a forked child.
    child: OnceLock<Box<Table>>,
}

/// An entry of the table.
#[derive(Debug, Default)]
struct Place {
    /// The number of locks that have used this entry; wraps.
    turn: u32,
    lock: Option<Arc<Handle>>,
}

/// The bits of a number: `depth of the table:7 | turn:12 | place:12`.
const PLACE: u32 = 12;
const TURN: u32 = 12;
/// The largest number of locks of a process.
const MOST: usize = 1 << PLACE;
/// The largest depth of nested forks.
const DEEPEST: u32 = 1 << (31 - TURN - PLACE);

impl Table {
    fn new() -> Self {
        Table { process: this_process(), locks: RwLock::default(), child: OnceLock::new() }
    }

    fn first() -> &'static Table {
        static FIRST: OnceLock<Table> = OnceLock::new();
        FIRST.get_or_init(Table::new)
    }

    /// Returns this process's table and its depth.
    #[inline]
    fn here() -> (&'static Table, u32) {
        let (mut table, mut depth) = (Table::first(), 0);
        while table.process != this_process() {
            table = table.child.get_or_init(|| Box::new(Table::new()));
            depth += 1;
        }
        (table, depth)
    }
}

/// Adds a lock to the table and returns its number.
pub(crate) fn add(lock: NamedLock) -> Outcome<i32> {
    let (table, depth) = Table::here();
    let handle = Arc::new(Handle { lock, holds: Mutex::default() });
    let mut locks = table.locks.write().unwrap_or_else(PoisonError::into_inner);
    let index = locks.iter().position(|place| place.lock.is_none()).unwrap_or(locks.len());
    if index >= MOST {
        return Err(Failure::new(Code::Full, format!("this process has {MOST} locks open")));
    }
    if depth >= DEEPEST {
        return Err(Failure::new(Code::Full, format!("there were {depth} forks in a row")));
    }
    if index == locks.len() {
        locks.push(Place::default());
    }
    locks[index].lock = Some(handle);
    Ok((depth << (TURN + PLACE) | locks[index].turn << PLACE | index as u32).cast_signed())
}

/// Returns the index and turn in a number that belongs to the table at `depth`.
fn place(number: i32, depth: u32) -> Outcome<(usize, u32)> {
    let bits = number.cast_unsigned();
    let (of, turn, index) = (bits >> (TURN + PLACE), bits >> PLACE & ((1 << TURN) - 1), bits as usize % MOST);
    if number < 0 || of > depth {
        return Err(none(number));
    }
    if of < depth {
        return Err(Failure::new(
            Code::Forked,
            format!("lock {number} was opened by a process that this one was forked from: open it anew"),
        ));
    }
    Ok((index, turn))
}

fn none(number: i32) -> Failure {
    Failure::new(Code::NoLock, format!("there is no lock {number}: it was never opened, or was closed"))
}

/// Returns the lock with this number.
#[inline]
pub(crate) fn of(number: i32) -> Outcome<Arc<Handle>> {
    let (table, depth) = Table::here();
    let (index, turn) = place(number, depth)?;
    let locks = table.locks.read().unwrap_or_else(PoisonError::into_inner);
    let place = locks.get(index).filter(|place| place.turn == turn);
    place.and_then(|place| place.lock.clone()).ok_or_else(|| none(number))
}

/// Closes the lock with this number. Fails while a thread holds it.
pub(crate) fn remove(number: i32) -> Outcome<()> {
    let (table, depth) = Table::here();
    let (index, turn) = place(number, depth)?;
    let mut locks = table.locks.write().unwrap_or_else(PoisonError::into_inner);
    let place = locks.get_mut(index).filter(|place| place.turn == turn).ok_or_else(|| none(number))?;
    let handle = place.lock.as_ref().ok_or_else(|| none(number))?;
    if !handle.holds().is_empty() {
        return Err(Failure::new(Code::Held, format!("lock {number} is held: release it first")));
    }
    // A thread that is waiting for the lock can still acquire and release it.
    let closed = place.lock.take();
    place.turn = (turn + 1) % (1 << TURN);
    drop(locks);
    drop(closed);
    Ok(())
}

impl Handle {
    fn holds(&self) -> MutexGuard<'_, Vec<(ThreadId, Held)>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a hold of the calling thread.
    #[inline]
    pub(crate) fn add(&self, held: Held) {
        self.holds().push((thread::current().id(), held));
    }

    /// Returns the last hold that the calling thread took.
    #[inline]
    pub(crate) fn take(&self) -> Outcome<Held> {
        let me = thread::current().id();
        let mut holds = self.holds();
        let last = holds.iter().rposition(|(thread, _)| *thread == me);
        last.map(|index| holds.remove(index).1).ok_or_else(Handle::not_held)
    }

    /// Runs `act` on the exclusive hold of the calling thread.
    pub(crate) fn exclusively<T>(&self, act: impl FnOnce(&mut WriteGuard) -> Outcome<T>) -> Outcome<T> {
        let me = thread::current().id();
        let mut holds = self.holds();
        let found = holds.iter_mut().rev().find_map(|(thread, held)| match held {
            Held::Exclusive(guard) if *thread == me => Some(guard),
            _ => None,
        });
        act(found.ok_or_else(Handle::not_held)?)
    }

    fn not_held() -> Failure {
        Failure::new(Code::NotHeld, "the calling thread does not hold the lock in this way")
    }
}
