//! The program's side of the command queue.

use super::{Command, EntryState, helper::Helper, ring::Ring};
use crate::{
    AcpError, Handle, Mode, Options, Result,
    directory::Resolver,
    engine::{Failures, Flight, Kind},
};
use core::{fmt, future::Future};
use fabric_offload::ControlQueue;
use rdma_fabric::{Deps, Fabric, LocalWord, Rank, Region};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The value with which the program ends its helper; it is not a command number.
pub(super) const STOP: u64 = u64::MAX;

/// The state that program and helper share, besides two words of the rank's memory.
pub(crate) struct SharedQueue {
    pub(super) ring: Ring,
    /// The failed commands among the completed ones.
    failures: Mutex<Failures>,
    /// Operations that the program has posted itself.
    posted: Mutex<HashMap<i64, (Kind, Flight)>>,
    /// The reason why the helper could not start.
    refused: Mutex<Option<AcpError>>,
}

impl SharedQueue {
    // All three are consistent between statements, wherever a panic occurs.
    pub(super) fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn posted(&self) -> MutexGuard<'_, HashMap<i64, (Kind, Flight)>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn refused(&self) -> MutexGuard<'_, Option<AcpError>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The words through which program and helper wait for each other.
#[derive(Debug)]
pub(super) struct Words {
    /// The number of commands issued, or [`STOP`].
    pub(super) issued: LocalWord<u64>,
    /// All commands up to this one are complete.
    pub(super) complete: LocalWord<u64>,
    /// In [`Mode::Split`]: [`RUNNING`] from when both helpers have their control queues until they
    /// have closed them, or [`REFUSED`].
    pub(super) running: LocalWord<u64>,
}

pub(super) const RUNNING: u64 = 1;
pub(super) const REFUSED: u64 = 2;

impl Words {
    pub(super) fn new(memory: &Resolver, fabric: &Fabric, me: Rank) -> Result<Self> {
        let at = memory.layout().queue();
        let word = |offset| Ok::<_, AcpError>(fabric.local_word::<u64>(memory.world_at(me, offset)?)?);
        Ok(Words { issued: word(at)?, complete: word(at + 64)?, running: word(at + 72)? })
    }
}

/// The program's side of the queue.
pub(crate) struct CommandQueue {
    fabric: Fabric,
    shared: Arc<SharedQueue>,
    words: Words,
    /// Whether the mode is [`Mode::Split`].
    is_split: bool,
    issued: i64,
    /// The entries that [`CommandQueue::entries`] does not count any more.
    reset: [u64; EntryState::ALL.len()],
}

impl fmt::Debug for CommandQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandQueue({} issued)", self.issued)
    }
}

impl CommandQueue {
    /// Starts the communication helper of rank `me`.
    pub(crate) fn start(memory: &Resolver, world: &Arc<Region>, me: Rank, options: &Options) -> Result<Self> {
        let fabric = memory.fabric().clone();
        let is_split = options.mode == Mode::Split;
        if is_split && !ControlQueue::limits(&fabric).shared_address_space {
            return Err(AcpError::SeparateAddressSpaces { rank: me });
        }
        let (failures, posted, refused) = Default::default();
        let shared = Arc::new(SharedQueue { ring: Ring::new(options.depth), failures, posted, refused });
        let words = Words::new(memory, &fabric, me)?;
        let (theirs, memory, world, options) = (shared.clone(), memory.clone(), world.clone(), *options);
        fabric.helper("acp communication", move |fabric| async move {
            let memory = memory.fresh(&fabric);
            Ok(Helper::new(theirs, memory, me, options)?.run(world).await?)
        })?;
        Ok(CommandQueue { fabric, shared, words, is_split, issued: 0, reset: Default::default() })
    }

    /// Waits until the helpers of [`Mode::Split`] have their control queues.
    ///
    /// # Errors
    /// The reason why a control queue could not be opened.
    pub(crate) fn running(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let (fabric, shared) = (self.fabric.clone(), self.shared.clone());
        let running = self.is_split.then(|| self.words.running.clone());
        async move {
            if let Some(running) = running {
                fabric.wait_until(&running, Deps::One(fabric.rank()), |running| running != 0).await?;
            }
            shared.refused().take().map_or(Ok(()), Err)
        }
    }

    /// Ends the helper; in [`Mode::Split`], waits until both have closed their control queues.
    pub(crate) async fn end(self) -> Result<()> {
        if self.is_split {
            self.fabric.store(&self.words.issued, STOP)?;
            let me = Deps::One(self.fabric.rank());
            self.fabric.wait_until(&self.words.running, me, |running| running != RUNNING).await?;
        }
        Ok(())
    }

    /// Returns the number of the last command issued.
    pub(crate) fn issued(&self) -> i64 {
        self.issued
    }

    /// Returns the last command up to which all commands are complete.
    pub(crate) fn complete(&self) -> Result<i64> {
        Ok(self.fabric.load(&self.words.complete)? as i64)
    }

    /// Returns the word that the helper writes when commands complete.
    pub(crate) fn complete_word(&self) -> LocalWord<u64> {
        self.words.complete.clone()
    }

    /// Writes a command; `None` if the ring is full.
    pub(crate) fn issue(&mut self, command: Command) -> Result<Option<Handle>> {
        let number = self.issued + 1;
        if !self.shared.ring.offer(number, command.to_words()) {
            return Ok(None);
        }
        self.fabric.store(&self.words.issued, number as u64)?;
        self.issued = number;
        Ok(Some(Handle::from_number(number)))
    }

    /// Passes an operation that the program has posted itself to the helper; `None`, with `posted`
    /// unchanged, if the ring is full.
    pub(crate) fn hand_over(&mut self, posted: &mut Option<(Kind, Flight)>) -> Result<Option<Handle>> {
        let number = self.issued + 1;
        if !self.shared.ring.has_room(number) {
            return Ok(None);
        }
        self.shared.posted().extend(posted.take().map(|posted| (number, posted)));
        self.issue(Command::Posted)
    }

    /// Removes the failures up to `until`, and returns the first.
    pub(crate) fn report(&self, until: i64) -> Result<()> {
        self.shared.failures().report(until)
    }

    /// Returns the number of times that entries have entered each state since the last reset.
    pub(crate) fn entries(&self) -> [u64; EntryState::ALL.len()] {
        let (entered, reset) = (self.entered(), self.reset);
        core::array::from_fn(|state| entered[state] - reset[state])
    }

    pub(crate) fn reset_entries(&mut self) {
        self.reset = self.entered();
    }

    /// Returns the number of times that entries have entered each state.
    pub(crate) fn entered(&self) -> [u64; EntryState::ALL.len()] {
        let mut entered = self.shared.ring.entered();
        entered[EntryState::Queued as usize] = self.issued as u64;
        entered
    }

    /// Returns the state of the entry of command `number`.
    pub(crate) fn state(&self, number: i64) -> Option<EntryState> {
        (1..=self.issued).contains(&number).then(|| self.shared.ring.state(number)).flatten()
    }
}

impl Drop for CommandQueue {
    /// Ends the helper. If that is impossible, the memory no longer exists, and neither does the
    /// helper.
    fn drop(&mut self) {
        let _ = self.fabric.store(&self.words.issued, STOP);
    }
}

/// Waits until more commands than `seen` are complete.
pub(crate) async fn more_complete(fabric: &Fabric, word: &LocalWord<u64>, seen: i64) -> Result<()> {
    fabric.wait_until(word, Deps::One(fabric.rank()), |complete| complete as i64 > seen).await?;
    Ok(())
}
