//! The library's functions, with arguments passed by value instead of by address.

use crate::{
    codes::{Code, Failure, Outcome, number},
    handles::{self, Held},
};
use core::time::Duration;
use named_lock::NamedLock;
use std::path::Path;

/// The wait limit, given in milliseconds: 0 does not wait, a negative number waits for ever.
#[derive(Clone, Copy)]
enum Wait {
    Not,
    For(Duration),
    Ever,
}

impl Wait {
    #[inline]
    fn of(milliseconds: i32) -> Self {
        match u64::try_from(milliseconds) {
            Ok(0) => Wait::Not,
            Ok(milliseconds) => Wait::For(Duration::from_millis(milliseconds)),
            Err(_) => Wait::Ever,
        }
    }
}

fn busy() -> Failure {
    Failure::new(Code::Busy, "others hold the lock")
}

pub(crate) fn open(name: &str) -> Outcome<i32> {
    handles::add(NamedLock::open(name)?)
}

pub(crate) fn open_path(path: &Path) -> Outcome<i32> {
    handles::add(NamedLock::open_path(path)?)
}

#[inline]
pub(crate) fn shared(lock: i32, milliseconds: i32) -> Outcome<()> {
    let handle = handles::of(lock)?;
    let guard = match Wait::of(milliseconds) {
        Wait::Not => handle.lock.try_read()?.ok_or_else(busy)?,
        Wait::For(time) => handle.lock.read_within(time)?,
        Wait::Ever => handle.lock.read()?,
    };
    handle.add(Held::Shared(guard));
    Ok(())
}

#[inline]
pub(crate) fn exclusive(lock: i32, milliseconds: i32) -> Outcome<()> {
    let handle = handles::of(lock)?;
    let guard = match Wait::of(milliseconds) {
        Wait::Not => handle.lock.try_write()?.ok_or_else(busy)?,
        Wait::For(time) => handle.lock.write_within(time)?,
        Wait::Ever => handle.lock.write()?,
    };
    handle.add(Held::Exclusive(guard));
    Ok(())
}

/// Returns the process that tore the data, or 0 if they are not torn.
pub(crate) fn mend(lock: i32, milliseconds: i32) -> Outcome<i32> {
    let handle = handles::of(lock)?;
    let guard = match Wait::of(milliseconds) {
        Wait::Not => handle.lock.try_mend()?.ok_or_else(busy)?,
        Wait::For(time) => handle.lock.mend_within(time)?,
        Wait::Ever => handle.lock.mend()?,
    };
    let torn = guard.torn().map_or(0, |torn| number(torn.by));
    handle.add(Held::Exclusive(guard));
    Ok(torn)
}

pub(crate) fn clear_torn(lock: i32) -> Outcome<()> {
    handles::of(lock)?.exclusively(|guard| Ok(guard.clear_torn()?))
}

#[inline]
pub(crate) fn release(lock: i32) -> Outcome<()> {
    match handles::of(lock)?.take()? {
        Held::Shared(guard) => guard.release()?,
        Held::Exclusive(guard) => guard.release()?,
    }
    Ok(())
}

pub(crate) fn close(lock: i32) -> Outcome<()> {
    handles::remove(lock)
}
