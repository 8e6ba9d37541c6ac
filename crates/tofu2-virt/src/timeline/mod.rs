//! The activities of a simulated machine over time, for a timeline viewer.
//!
//! A [`Timeline`] is recorded by [`super::Job::timeline`] and, with the feature `timeline`, written
//! by `Timeline::write` in the trace-event format, which Perfetto and Chrome's viewer open. Each
//! node is a process in the viewer. Its tracks are its ranks' CPUs and helpers, the control queues,
//! the send and receive sides of each TNI, and the atomic unit. Recording does not change a run:
//! the trace hash stays the same.
//!
//! A slice on an engine lasts as long as the engine is busy with the command. Latency is the
//! distance between slices, along the arrow that joins them.
//!
//! [`Timeline::commands`] returns the posts to control queues, and [`Timeline::cpu`] the activities
//! of a rank's CPU, as data.
//!
//! Without a timeline, the cost is a null check of a pointer at each point that could be recorded.

mod commands;
mod cpu;
mod recording;
#[cfg(feature = "timeline")]
mod viewer;

use super::operation::Opcode;
use commands::Commands;
pub use commands::{Released, SeenCommand};
pub use cpu::{Busy, Work};
use std::collections::HashMap;
#[cfg(feature = "timeline")]
use std::io;

/// The track of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Track {
    /// A CPU: a rank's, or from the number of ranks on a helper's.
    Cpu(u32),
    /// A control queue: engine and number.
    Queue(u8, u8),
    /// The send side of an engine.
    Send(u8),
    /// The receive side of an engine.
    Receive(u8),
    /// The node's atomic unit.
    Atomics,
}

/// The name of a command, unique in a run.
pub(super) type CommandId = u64;

/// A period on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    node: u32,
    track: Track,
    /// Start time in picoseconds.
    begin: u64,
    end: u64,
    activity: Activity,
    /// The command that the slice belongs to; joins a command's slices from posting to visibility.
    id: Option<CommandId>,
}

/// The content of a slice or mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// A command of `bytes` bytes between this and another rank.
    Command { opcode: Opcode, bytes: u64, poster: u32, target: u32 },
    /// The program computes.
    Compute,
    /// The session offset of a queue advanced by this many slots.
    Advance(u64),
    /// A fault that was injected.
    Fault(&'static str),
}

/// The positions of a control queue's pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    node: u32,
    engine: u8,
    number: u8,
    time: u64,
    read: u64,
    write: u64,
    scheduled: u64,
}

/// One moment on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    node: u32,
    track: Track,
    time: u64,
    activity: Activity,
}

/// The recording of a run, from its start until the recording was full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    slices: Vec<Slice>,
    samples: Vec<Sample>,
    moments: Vec<Moment>,
    /// Entries that ended before this time, in picoseconds, are not kept.
    from: u64,
    /// The maximum number of entries to keep.
    limit: usize,
    /// The number of entries dropped after the limit was reached.
    dropped: u64,
    /// The number of commands that have an identifier.
    named: CommandId,
    ranks_per_node: u32,
    /// The number of ranks.
    ranks: u32,
    /// The rank and name of each helper.
    helpers: Vec<(u32, &'static str)>,
    /// Commands by slot of the in-flight table. Never iterated.
    by_operation: HashMap<u32, CommandId>,
    /// Commands by control queue and slot. Never iterated.
    by_slot: HashMap<(u32, u64), CommandId>,
    /// Postings of control queues.
    commands: Commands,
}

impl Timeline {
    /// The number of entries that command-line programs record: more than a viewer handles
    /// comfortably.
    pub const ENTRIES: usize = 200_000;

    /// Creates a recording of the first `limit` entries from `from` on.
    pub(super) fn new(limit: usize, from: u64, ranks: u32, ranks_per_node: u32) -> Self {
        Timeline { limit, from, ranks, ranks_per_node, ..Timeline::default() }
    }

    /// Creates a track, called `name`, for a rank's next helper.
    pub(super) fn helper(&mut self, rank: u32, name: &'static str) {
        self.helpers.push((rank, name));
    }

    /// Returns the helper with a CPU's number: its rank and name; `None` if the CPU is that of a
    /// rank's program.
    fn helper_at(&self, lane: u32) -> Option<(u32, &'static str)> {
        self.helpers.get(lane.checked_sub(self.ranks)? as usize).copied()
    }

    /// Returns the rank of a CPU.
    fn rank_of(&self, lane: u32) -> u32 {
        self.helper_at(lane).map_or(lane, |(rank, _)| rank)
    }

    /// Returns the number of slices, samples and marks that are kept.
    pub fn len(&self) -> usize {
        self.slices.len() + self.samples.len() + self.moments.len()
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of later entries for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the timeline as trace events (feature `timeline`), with times in microseconds of
    /// virtual time.
    ///
    /// # Errors
    /// Those of `out`.
    #[cfg(feature = "timeline")]
    pub fn write(&self, out: impl io::Write) -> io::Result<()> {
        viewer::write(self, &HashMap::new(), out)
    }

    /// Writes the timeline like [`Timeline::write`], with labels for the control-queue commands for
    /// which `label` returns one.
    ///
    /// # Errors
    /// Those of `out`.
    #[cfg(feature = "timeline")]
    pub fn write_labelled(
        &self,
        out: impl io::Write,
        label: impl Fn(&SeenCommand) -> Option<String>,
    ) -> io::Result<()> {
        let labels = self.commands.named().filter_map(|(id, command)| Some((id, label(command)?)));
        viewer::write(self, &labels.collect(), out)
    }

    /// Returns the posts to control queues, in posting order, up to the limit on entries.
    pub fn commands(&self) -> Vec<SeenCommand> {
        self.commands.seen()
    }

    /// Returns whether an entry that ends at `time` is kept.
    fn keeps(&mut self, time: u64) -> bool {
        let (early, room) = (time < self.from, self.len() < self.limit);
        self.dropped += u64::from(!early && !room);
        !early && room
    }

    /// Returns an identifier for one more command.
    fn next_command(&mut self) -> CommandId {
        self.named += 1;
        self.named
    }

    /// Records that `activity` took from `begin` to `end`.
    fn slice(&mut self, node: u32, track: Track, begin: u64, end: u64, activity: Activity, id: Option<CommandId>) {
        if self.keeps(end) {
            self.slices.push(Slice { node, track, begin, end: end.max(begin), activity, id });
        }
    }

    /// Records that `activity` happened at `time`.
    fn mark(&mut self, node: u32, track: Track, time: u64, activity: Activity) {
        if self.keeps(time) {
            self.moments.push(Moment { node, track, time, activity });
        }
    }

    /// Records that the pointers of a queue moved.
    fn pointers(&mut self, node: u32, (engine, number): (u8, u8), time: u64, [read, write, scheduled]: [u64; 3]) {
        if self.keeps(time) {
            self.samples.push(Sample { node, engine, number, time, read, write, scheduled });
        }
    }
}
