//! The membership of a process in one generation of a lock, which is one file.

use crate::{
    Error, Result, block_on, doorbell,
    error::Failed,
    file, fork,
    layout::{self, RECOVERY},
    mapping::Mapping,
    presence::Presence,
    process::Process,
    provider, slots,
};
use core::{future::Future, sync::atomic::Ordering::SeqCst, time::Duration};
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use rma_lock::{Lock, LockError, locks::RecoverableLock};
use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// The rank that is not a process and holds the lock's own words.
pub(crate) const HOME: Rank = Rank::new(0);

/// States whether a generation of the lock may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The generation may be used.
    Open,
    /// A process that has locked the file waits until no process holds the lock.
    Closing,
    /// The generation has ended: no process holds the lock in it or ever will. Another file exists,
    /// or is about to be made.
    Ended,
}

impl Gate {
    #[inline(always)]
    pub(crate) fn of(map: &Mapping) -> Self {
        match map.word(layout::GATE).load(SeqCst) {
            0 => Gate::Open,
            1 => Gate::Closing,
            _ => Gate::Ended,
        }
    }

    pub(crate) fn set(self, map: &Mapping) {
        map.word(layout::GATE).store(self as u64, SeqCst);
    }
}

/// A lock's file and the lock in it, from the view of one rank.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) path: PathBuf,
    pub(crate) file: OwnedFd,
    pub(crate) map: Arc<Mapping>,
    pub(crate) rank: usize,
    pub(crate) lock: RecoverableLock,
    fabric: Fabric,
    start: Instant,
}

impl View {
    /// Opens the lock in a file as `rank`.
    pub(crate) fn new(path: &Path, file: OwnedFd, map: Arc<Mapping>, rank: usize) -> Result<Self> {
        let (me, start) = (Rank::new(rank as u32), Instant::now());
        let fabric = provider::fabric(&map, me, start);
        let made = async {
            let memory = GroupMemory::symmetric(&fabric, layout::part_bytes()).await?;
            RecoverableLock::over(&fabric, memory, HOME, RECOVERY)
        };
        let made = block_on::block_on(&map, rank, None, made).map_err(Error::probe(path))?;
        let lock = made.map_err(Failed::from).map_err(Error::lock(path))?;
        Ok(View { path: path.to_owned(), file, map, rank, lock, fabric, start })
    }

    /// Runs a call of the lock on this thread.
    pub(crate) fn run<T>(
        &self,
        deadline: Option<Instant>,
        call: impl Future<Output = Result<T, LockError>>,
    ) -> Result<T, Failed> {
        Ok(block_on::block_on(&self.map, self.rank, deadline, call)??)
    }

    /// Tries to take the lock, waiting only for processes that recover from a death. The attempt
    /// fails if this takes longer than `patience`, because a corrupt file may indicate a recovery
    /// that never ends.
    pub(crate) async fn within<T>(
        &self,
        patience: Duration,
        attempt: impl Future<Output = Result<Option<T>, LockError>>,
    ) -> Result<Option<T>, LockError> {
        self.fabric.before(self.fabric.now() + patience, attempt).await.unwrap_or(Ok(None))
    }

    /// Converts a time to the fabric's clock.
    pub(crate) fn time(&self, at: Option<Instant>) -> Time {
        at.map_or(Time::MAX, |at| Time::ZERO + at.saturating_duration_since(self.start))
    }
}

/// The membership of this process, which occupies a rank until this is dropped.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) view: View,
    presence: Presence,
    /// Keeps the file's directory from being cleaned.
    _folder: Option<OwnedFd>,
    pub(crate) process: u32,
    /// The slot's state word as long as this process occupies it.
    taken: u64,
}

impl Session {
    /// Makes this process the rank of `view`, whose slot is free. The caller has locked the file.
    pub(crate) fn begin(view: View, process: Process) -> Result<Self> {
        doorbell::register_process();
        let presence = Presence::new(&view.file, &view.path)?;
        let folder = file::keep_folder(&view.path);
        let taken = slots::take(&view.map, view.rank, process);
        let session = Session { process: fork::this_process(), taken, presence, _folder: folder, view };
        session.view.run(None, session.view.lock.join()).map_err(Error::lock(&session.view.path))?;
        Ok(session)
    }

    /// Checks that this is the process that opened the lock.
    #[inline]
    pub(crate) fn check_process(&self) -> Result<()> {
        if fork::this_process() == self.process {
            return Ok(());
        }
        Err(Error::Forked { path: self.view.path.clone(), opened_by: self.process })
    }

    /// Checks, for a call that has taken the lock, that other processes that take it use the same
    /// file.
    #[inline]
    pub(crate) fn check_presence(&self) -> Result<()> {
        self.presence.check(&self.view.file, &self.view.path)
    }

    /// Announces a call that uses the lock, until [`Session::exit`]. Returns false if the gate is
    /// not open; in that case the announcement is withdrawn.
    ///
    /// A process that closes the gate does so before it checks for announced calls, and a call is
    /// announced before it checks the gate; all four accesses are SeqCst. So at least one of the
    /// two observes the other.
    #[inline]
    pub(crate) fn enter(&self) -> bool {
        self.view.map.slot_word(self.view.rank, layout::HOLDS).fetch_add(1, SeqCst);
        let is_open = Gate::of(&self.view.map) == Gate::Open;
        if !is_open {
            self.exit();
        }
        is_open
    }

    /// Withdraws the announcement of [`Session::enter`]: the call has ended, or its hold was
    /// released.
    #[inline]
    pub(crate) fn exit(&self) {
        self.view.map.slot_word(self.view.rank, layout::HOLDS).fetch_sub(1, SeqCst);
    }

    /// Records whether this process may leave the protected data half-written from now on.
    #[inline]
    pub(crate) fn set_writes(&self, writes: bool) {
        self.view.map.slot_word(self.view.rank, layout::WRITES).store(writes.into(), SeqCst);
    }

    /// Opens the next epoch in this generation by letting a ghost die, so that ranks that were left
    /// can be reused. Does nothing if there is no ghost. The caller has locked the file.
    pub(crate) fn open_epoch(&self, patience: Duration) -> Result<(), Failed> {
        let map = &self.view.map;
        let Some(ghost) = slots::GHOSTS.clone().find(|&ghost| !slots::is_dead(map, ghost)) else { return Ok(()) };
        if !self.enter() {
            return Ok(());
        }
        slots::bury(map, ghost, slots::State::of(map, ghost).1);
        let (epoch, until) = (self.view.lock.epoch(), Instant::now() + patience);
        let opened = self.view.run(Some(until), self.view.lock.recover_from(epoch, self.view.time(Some(until))));
        self.exit();
        match opened {
            Err(Failed::Lock(LockError::TimedOut)) => Ok(()),
            opened => opened,
        }
    }
}

impl Drop for Session {
    /// Leaves the lock, unless this is a forked child of the member, or a guard was forgotten.
    fn drop(&mut self) {
        let View { map, rank, lock, .. } = &self.view;
        if fork::this_process() == self.process && !slots::is_in_use(map, *rank) {
            slots::leave(map, *rank, self.taken, lock.epoch() + 1);
        }
    }
}
