//! Counters of a rank's operations: what they are, where their memory is, and why they waited.
//!
//! # Source
//! The paper leaves tuning by performance counters to future work (section 6).

use crate::{Acp, EntryState, GlobalAddress, Result, queue::Command, state::State};
use rdma_fabric::{Amo, Rank};

/// Copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyCounts {
    /// The number of copies.
    pub count: u64,
    /// The bytes that they copy.
    pub bytes: u64,
}

/// Atomics by kind, of both widths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AtomicCounts {
    /// [`Amo::Add`].
    pub add: u64,
    /// [`Amo::Swap`].
    pub swap: u64,
    /// [`Amo::CompareSwap`].
    pub compare_swap: u64,
    /// [`Amo::Or`].
    pub or: u64,
    /// [`Amo::And`].
    pub and: u64,
    /// [`Amo::Xor`].
    pub xor: u64,
}

impl AtomicCounts {
    /// Returns the number of atomics of all kinds.
    pub fn total(&self) -> u64 {
        self.add + self.swap + self.compare_swap + self.or + self.and + self.xor
    }
}

/// The operations that a rank has issued since its start or the last [`Acp::reset_counters`].
/// Accesses by value, such as [`Acp::load`] and [`Acp::fetch`], are not operations. Those of
/// channels and containers count as the program's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Copies within this rank's memory.
    pub local: CopyCounts,
    /// Copies from this rank's memory to another rank's.
    pub puts: CopyCounts,
    /// Copies from another rank's memory to this rank's.
    pub gets: CopyCounts,
    /// Copies between the memory of other ranks, or within that of one.
    pub third_party: CopyCounts,
    /// Atomics on this rank's words.
    pub local_atomics: AtomicCounts,
    /// Atomics on other ranks' words.
    pub remote_atomics: AtomicCounts,
    /// Operations that did not start until earlier ones had completed: because of their order, or
    /// behind a copy of the same two ranks, or behind one delegated to the same rank. With a command
    /// queue, the commands that entered [`EntryState::Order`].
    pub ordered: u64,
    /// Calls of [`Acp::complete`] and [`Acp::complete_all`] that had to wait.
    pub waits: u64,
    /// Waits for room to issue an operation: [`Options::depth`](crate::Options::depth) operations
    /// were in flight, the command queue was full, or all places for delegated ones were in use.
    pub full: u64,
    /// Operations that the program posted itself, bypassing the command queue.
    pub bypassed: u64,
    /// With a command queue, the number of times that entries entered each state, in the order of
    /// [`EntryState::ALL`].
    pub entries: [u64; 7],
}

impl Counters {
    /// Returns the number of times that entries of the command queue entered a state.
    pub fn entered(&self, state: EntryState) -> u64 {
        self.entries[state as usize]
    }

    /// Returns the copies of all locations.
    pub fn copies(&self) -> CopyCounts {
        let all = [self.local, self.puts, self.gets, self.third_party];
        CopyCounts { count: all.iter().map(|c| c.count).sum(), bytes: all.iter().map(|c| c.bytes).sum() }
    }

    /// Counts a copy that rank `me` issues.
    #[inline(always)]
    pub(crate) fn add_copy(&mut self, me: Rank, to: GlobalAddress, from: GlobalAddress, bytes: usize) {
        let copies = match (from.rank() == me, to.rank() == me) {
            (true, true) => &mut self.local,
            (true, false) => &mut self.puts,
            (false, true) => &mut self.gets,
            (false, false) => &mut self.third_party,
        };
        copies.count += 1;
        copies.bytes += bytes as u64;
    }

    /// Counts an atomic that rank `me` issues.
    #[inline(always)]
    pub(crate) fn add_atomic<W>(&mut self, me: Rank, word: GlobalAddress, amo: &Amo<W>) {
        let atomics = if word.rank() == me { &mut self.local_atomics } else { &mut self.remote_atomics };
        *match amo {
            Amo::Add(_) => &mut atomics.add,
            Amo::Swap(_) => &mut atomics.swap,
            Amo::CompareSwap { .. } => &mut atomics.compare_swap,
            Amo::Or(_) => &mut atomics.or,
            Amo::And(_) => &mut atomics.and,
            Amo::Xor(_) => &mut atomics.xor,
        } += 1;
    }

    /// Counts a command that rank `me` writes.
    pub(crate) fn add_command(&mut self, me: Rank, command: &Command) {
        match command {
            Command::Copy { to, from, bytes, .. } => self.add_copy(me, *to, *from, *bytes),
            Command::Atomic { word, amo, .. } => self.add_atomic(me, *word, amo),
            Command::Posted => {}
        }
    }
}

impl Acp {
    /// Returns the counters of this rank's operations, which its helpers may be executing. Each
    /// number is exact once the operations are complete.
    ///
    /// # Errors
    /// [`AcpError::OtherThread`](crate::AcpError::OtherThread).
    pub fn counters(&self) -> Result<Counters> {
        self.with(|state| state.counted())
    }

    /// Returns the counters, and sets them to 0. [`Acp::reset`] also does so.
    ///
    /// # Errors
    /// As [`Acp::counters`].
    pub fn reset_counters(&self) -> Result<Counters> {
        self.with(|state| {
            let counted = state.counted();
            state.counters = Counters::default();
            state.engine.reset_ordered();
            if let Some(queue) = &mut state.queue {
                queue.reset_entries();
            }
            counted
        })
    }
}

impl State {
    fn counted(&self) -> Counters {
        match &self.queue {
            None => Counters { ordered: self.engine.ordered(), ..self.counters },
            Some(queue) => {
                let entries = queue.entries();
                Counters { ordered: entries[EntryState::Order as usize], entries, ..self.counters }
            }
        }
    }
}
