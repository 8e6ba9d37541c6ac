//! Creates a lock's first file, and replaces it with the next generation.

use crate::{
    Result, descriptor,
    error::Error,
    file::{self, NewFile},
    layout::{self, MAGIC_VALUE, SHAPE_VALUE},
    mapping::Mapping,
    process::{Machine, Unknown},
    session::{Gate, HOME, View},
    slots, torn,
};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use rustix::fs::fstat;
use std::{
    os::fd::OwnedFd,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Creates the first file of a lock, unless another process has just created one.
pub(crate) fn found(path: &Path, machine: Machine) -> Result<()> {
    let new = NewFile::new(path, &format!(".{}", std::process::id()))?;
    lay_out(path, &new.file, machine, None)?;
    new.publish().map(drop)
}

/// Writes a new file. `torn_by` is the process that left the protected data half-written, if any.
fn lay_out(path: &Path, file: &OwnedFd, machine: Machine, torn_by: Option<u32>) -> Result<()> {
    let map = Mapping::new(file, path)?;
    map.word(layout::SHAPE).store(SHAPE_VALUE, Relaxed);
    map.word(layout::NAMESPACE).store(machine.namespace, Relaxed);
    for (index, word) in machine.boot.into_iter().enumerate() {
        map.word(layout::BOOT + 8 * index).store(word, Relaxed);
    }
    slots::lay_out(&map);
    if let Some(number) = torn_by {
        torn::publish(&map, number);
        let own = descriptor::again(file).map_err(Error::refused("fcntl", path))?;
        let view = View::new(path, own, map.clone(), HOME.index())?;
        view.run(None, view.lock.suspect(HOME)).map_err(Error::lock(path))?;
    }
    // Release: pairs with the acquire in `examine`.
    map.word(layout::MAGIC).store(MAGIC_VALUE, Release);
    Ok(())
}

/// Checks the header of a file. Returns whether the file was made since the last boot.
pub(crate) fn examine(path: &Path, map: &Mapping, machine: Machine) -> Result<bool> {
    // Acquire: pairs with the release in `lay_out`.
    if map.word(layout::MAGIC).load(Acquire) != MAGIC_VALUE || map.word(layout::SHAPE).load(Relaxed) != SHAPE_VALUE {
        return Err(Error::foreign(path, "is no lock of this version"));
    }
    let boot = [0, 1].map(|index| map.word(layout::BOOT + 8 * index).load(Relaxed));
    if boot != machine.boot {
        return Ok(false);
    }
    if map.word(layout::NAMESPACE).load(Relaxed) != machine.namespace {
        return Err(Error::foreign(path, "is used in another name space of processes, such as another container"));
    }
    Ok(true)
}

/// Replaces a lock's file, which the caller has locked, with a new one that has full capacity, once
/// no process holds the lock. Returns false after `patience`. A file that was removed is replaced
/// as well, unless another file has taken its path.
pub(crate) fn renew(path: &Path, file: &OwnedFd, map: &Mapping, machine: Machine, patience: Duration) -> Result<bool> {
    renew_all(path, &[(file, map)], machine, patience)
}

/// Replaces several files of one lock with a single one, as [`renew`] does with one file: all of
/// them were removed while processes had them open, and none of them may be held once the new file
/// exists.
pub(crate) fn renew_all(
    path: &Path,
    files: &[(&OwnedFd, &Mapping)],
    machine: Machine,
    patience: Duration,
) -> Result<bool> {
    let renewed = silence(path, files, machine, patience).and_then(|silent| match silent {
        Some(Silent { torn_by }) => replace(path, files, machine, torn_by).map(|()| true),
        None => Ok(false),
    });
    // The gates of replaced files are `Ended`; all others are opened again.
    for (_, map) in files {
        if Gate::of(map) == Gate::Closing {
            Gate::Open.set(map);
        }
    }
    renewed
}

/// Proof that no process holds the lock in files whose gates are closed.
struct Silent {
    /// The process that left the data half-written.
    torn_by: Option<u32>,
}

/// Closes the gates of files, and waits until no process holds the lock in any of them. Returns
/// `None` if that takes longer than `patience` for one of them.
fn silence(
    path: &Path,
    files: &[(&OwnedFd, &Mapping)],
    machine: Machine,
    patience: Duration,
) -> Result<Option<Silent>> {
    let mut torn_by = None;
    for (_, map) in files {
        let of_this_boot = examine(path, map, machine)?;
        // If the gate is already marked as over, a process died before it put the next file in
        // place.
        if Gate::of(map) != Gate::Ended {
            Gate::Closing.set(map);
            if of_this_boot && !falls_silent(map, Instant::now() + patience).map_err(Error::probe(path))? {
                return Ok(None);
            }
        }
        torn_by = torn_by.or(torn::left_by(map, !of_this_boot).map_err(Error::probe(path))?);
    }
    Ok(Some(Silent { torn_by }))
}

/// Replaces files whose gates are closed with the next file. If another file has taken the path of
/// a removed one, the gates stay closed, and that file is not replaced.
fn replace(path: &Path, files: &[(&OwnedFd, &Mapping)], machine: Machine, torn_by: Option<u32>) -> Result<()> {
    let mut removed = false;
    for (file, _) in files {
        removed |= fstat(file).map_err(Error::refused("fstat", path))?.st_nlink == 0;
    }
    let new = NewFile::new(path, if removed { ".again" } else { ".next" })?;
    lay_out(path, &new.file, machine, torn_by)?;
    let over = || files.iter().for_each(|(_, map)| Gate::Ended.set(map));
    if removed {
        // The gates stay closed until the new file exists. If this process dies in between, they
        // are opened again, and processes that enter find that their file is not at the path.
        if new.publish()? {
            over();
        }
        return Ok(());
    }
    // The old files are marked before the new one can be found, so that two files are never in use.
    over();
    new.replace()
}

/// Waits until no live process holds the lock, or is about to, behind the closed gate.
fn falls_silent(map: &Mapping, deadline: Instant) -> Result<bool, Unknown> {
    let mut pause = Duration::from_micros(20);
    let mut busy: Vec<usize> = slots::MEMBERS.collect();
    loop {
        let mut still = Vec::with_capacity(busy.len());
        for rank in busy.into_iter().filter(|&rank| slots::is_in_use(map, rank)) {
            if let Some((process, _)) = slots::process(map, rank)
                && !process.has_ended()?
            {
                still.push(rank);
            }
        }
        busy = still;
        if busy.is_empty() {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
        // Waiting processes may be waiting for one that has died, and have to recover first.
        slots::look(map, HOME.index(), crate::doorbell::LONGEST)?;
    }
}

/// Opens the gate again if the process that closed it has died: the file is then not locked.
pub(crate) fn reopen(path: &Path, file: &OwnedFd, map: &Mapping) -> Result<()> {
    let own = file::again(file, path)?;
    if file::lock(&own, path, None)? {
        if Gate::of(map) == Gate::Closing {
            Gate::Open.set(map);
        }
        file::unlock(&own);
    }
    Ok(())
}
