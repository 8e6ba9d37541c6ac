//! Finds a place in a lock's file: a free rank or, if there is none, room for one.
//!
//! A rank can be reused in a later epoch than the one in which its last process used it: the lock's
//! words of the rank are untouched in that epoch. So when few ranks are left, a joining process
//! opens an epoch by letting a ghost die: a rank that has never done anything, and whose death all
//! processes, including holders, survive like any other death. When few epochs are left, the whole
//! file is replaced ([`create::renew`]), which requires a moment in which no process holds the
//! lock.

use crate::{
    Error, Result, create, descriptor, file,
    layout::PROCESSES,
    mapping::Mapping,
    presence::BEFORE_FOUNDING,
    process::{Machine, Process},
    removed_files,
    session::{Gate, HOME, Session, View},
    slots::{self, State},
};
use core::time::Duration;
use rma_lock::locks::Room;
use std::{os::fd::OwnedFd, path::Path, sync::Arc, thread, time::Instant};

/// A sufficient number of free ranks. With fewer, opening an epoch is worthwhile if it frees ranks.
const FEW_RANKS: usize = 16;
/// With fewer epochs or deaths left, the file is replaced if that requires no waiting.
const FEW_EPOCHS: usize = 8;
const FEW_DEATHS: usize = 24;
/// How long a process that could find a place waits for the others to release the lock, so that the
/// file can be replaced.
const SOFTLY: Duration = Duration::from_millis(2);
/// How long a process that finds no place waits; during this time no other process can take the
/// lock.
pub(crate) const FIRMLY: Duration = Duration::from_millis(250);
/// How long a process waits for an epoch to be opened.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes this process a member of the lock at `path`.
///
/// # Errors
/// [`Error::Full`] if there is no room before the deadline.
pub(crate) fn join(path: &Path, deadline: Instant) -> Result<Session> {
    let (process, machine) = (Process::this(path)?, Machine::this()?);
    loop {
        let Some(opened) = file::existing(path)? else {
            thread::sleep(BEFORE_FOUNDING);
            if file::existing(path)?.is_none() && !continue_removed(path, machine, deadline)? {
                create::found(path, machine)?;
            }
            continue;
        };
        if !file::lock(&opened, path, Some(deadline))? {
            return Err(Error::timed_out(path));
        }
        // Closing the file at the end of this iteration unlocks it, if it is still locked.
        if file::is_at(&opened, path)? {
            let map = Mapping::new(&opened, path)?;
            match in_locked(path, &opened, &map, process, machine)? {
                Outcome::Joined(session) => {
                    file::unlock(&opened);
                    return Ok(*session);
                }
                Outcome::Replaced => {}
                Outcome::Full if Instant::now() >= deadline => {
                    return Err(Error::Full { path: path.to_owned(), processes: PROCESSES });
                }
                Outcome::Full => {
                    file::unlock(&opened);
                    // The holders of the lock, and others that want it, continue in the meantime.
                    thread::sleep(Duration::from_millis(20));
                }
            }
        } else if Instant::now() >= deadline {
            // The file is being replaced repeatedly.
            return Err(Error::timed_out(path));
        }
    }
}

/// Continues a lock whose file was removed while processes have it open: makes the next file from
/// all such files once no process holds the lock in any of them. These processes join that file at
/// their next call. Returns false if there is no such file.
///
/// # Errors
/// [`Error::Removed`] if the lock is held until the deadline; [`Error::System`] if `/proc` does not
/// show the files that are open.
fn continue_removed(path: &Path, machine: Machine, deadline: Instant) -> Result<bool> {
    loop {
        let mut removed = Vec::new();
        for file in removed_files::removed(path)? {
            if !file::lock(&file, path, Some(deadline))? {
                return Err(Error::timed_out(path));
            }
            let map = Mapping::new(&file, path)?;
            // Otherwise an earlier file, which was replaced while it was at the path.
            if Gate::of(&map) != Gate::Ended {
                removed.push((file, map));
            }
        }
        if removed.is_empty() {
            return Ok(false);
        }
        let files: Vec<_> = removed.iter().map(|(file, map)| (file, &**map)).collect();
        if create::renew_all(path, &files, machine, FIRMLY)? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Err(Error::Removed { path: path.to_owned() });
        }
        // Closing the files unlocks them.
        drop(removed);
        thread::sleep(Duration::from_millis(20));
        if file::existing(path)?.is_some() {
            return Ok(true);
        }
    }
}

/// The result of examining a locked file.
enum Outcome {
    Joined(Box<Session>),
    /// Another file has replaced it.
    Replaced,
    /// There is no room yet.
    Full,
}

fn in_locked(path: &Path, file: &OwnedFd, map: &Arc<Mapping>, process: Process, machine: Machine) -> Result<Outcome> {
    let of_this_boot = create::examine(path, map, machine)?;
    match Gate::of(map) {
        // The process that closed it has died.
        Gate::Closing => Gate::Open.set(map),
        Gate::Open => {}
        Gate::Ended => return create::renew(path, file, map, machine, FIRMLY).map(replaced),
    }
    if !of_this_boot {
        return create::renew(path, file, map, machine, FIRMLY).map(replaced);
    }
    let home =
        View::new(path, descriptor::again(file).map_err(Error::refused("fcntl", path))?, map.clone(), HOME.index())?;
    let ended = slots::ended(map).map_err(Error::probe(path))?;
    // Read after they have ended: none of them has used a later epoch than this one.
    let Room { epoch, epochs, deaths } = home.run(None, home.lock.room()).map_err(Error::lock(path))?;
    slots::reap(map, &ended, epoch);
    let free = free(map, epoch);
    let is_low = epochs < FEW_EPOCHS || deaths < FEW_DEATHS || (free.now.len() < FEW_RANKS && ghosts_left(map) == 0);
    let Some(&rank) = free.now.first() else {
        return create::renew(path, file, map, machine, FIRMLY).map(replaced);
    };
    if is_low && create::renew(path, file, map, machine, if epochs == 0 { FIRMLY } else { SOFTLY })? {
        return Ok(Outcome::Replaced);
    }
    if epochs == 0 {
        // The lock can no longer be acquired in this file.
        return Ok(Outcome::Full);
    }
    drop(home);
    let view = View::new(path, descriptor::again(file).map_err(Error::refused("fcntl", path))?, map.clone(), rank)?;
    let session = Session::begin(view, process)?;
    if free.now.len() <= FEW_RANKS && free.later > FEW_RANKS && epochs >= FEW_EPOCHS {
        session.open_epoch(PATIENCE).map_err(Error::lock(path))?;
    }
    Ok(Outcome::Joined(Box::new(session)))
}

fn replaced(replaced: bool) -> Outcome {
    if replaced { Outcome::Replaced } else { Outcome::Full }
}

fn ghosts_left(map: &Mapping) -> usize {
    slots::GHOSTS.filter(|&ghost| !slots::is_dead(map, ghost)).count()
}

/// The free ranks.
struct Free {
    /// The ranks that a process can take now.
    now: Vec<usize>,
    /// The number of ranks that become available in the next epoch.
    later: usize,
}

fn free(map: &Mapping, epoch: usize) -> Free {
    let mut free = Free { now: Vec::new(), later: 0 };
    for rank in slots::MEMBERS {
        match State::of(map, rank).0 {
            State::Free { untouched_from } if untouched_from as usize <= epoch => free.now.push(rank),
            State::Free { untouched_from } if untouched_from as usize == epoch + 1 => free.later += 1,
            _ => {}
        }
    }
    free
}
