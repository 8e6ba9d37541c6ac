//! What a simulated machine did and when, for a timeline viewer.
//!
//! A [`Timeline`] is recorded by [`super::Job::timeline`] and, with the feature `timeline`, written
//! by `Timeline::write` in the trace-event format, which Perfetto and Chrome's viewer open. Each
//! node is a process of the viewer; its tracks are its ranks' CPUs, the control queues, the send
//! and receive side of each TNI, and the atomic unit. Recording changes nothing about a run: the
//! same trace hash.
//!
//! A slice on an engine lasts as long as the engine is busy with the command; latency is the way
//! between slices, along the arrow that joins them.
//!
//! [`Timeline::commands`] is what was posted to control queues, as data.
//!
//! Without one, a run tests a pointer for null at each point that could be recorded.

mod commands;
mod recording;
#[cfg(feature = "timeline")]
mod viewer;

use super::operation::Opcode;
use commands::Commands;
pub use commands::{Released, SeenCommand};
use std::collections::HashMap;
#[cfg(feature = "timeline")]
use std::io;

/// Where something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Track {
    /// A rank's CPU.
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

/// A stretch of time on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    node: u32,
    track: Track,
    /// Picoseconds.
    begin: u64,
    end: u64,
    activity: Activity,
    /// Joins the slices of one command, from its posting to its visibility.
    id: Option<CommandId>,
}

/// What a slice or mark shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// A command of `bytes` bytes between this and another rank.
    Command { opcode: Opcode, bytes: u64, poster: u32, target: u32 },
    /// The program computes.
    Compute,
    /// The session offset of a queue moved by this many slots.
    Advance(u64),
    /// A fault that was injected.
    Fault(&'static str),
}

/// Where a control queue's pointers stood.
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

/// The record of a run, from its beginning until it was full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    slices: Vec<Slice>,
    samples: Vec<Sample>,
    moments: Vec<Moment>,
    /// What ended before is not kept; picoseconds.
    from: u64,
    /// Entries that are kept in all.
    limit: usize,
    /// Entries that came after the limit.
    dropped: u64,
    /// Commands that have a name.
    named: CommandId,
    ranks_per_node: u32,
    /// By slot of the in-flight table. Never iterated.
    by_operation: HashMap<u32, CommandId>,
    /// By control queue and slot. Never iterated.
    by_slot: HashMap<(u32, u64), CommandId>,
    /// Postings of control queues.
    commands: Commands,
}

impl Timeline {
    /// How many entries commands record: more than a viewer is pleasant with.
    pub const ENTRIES: usize = 200_000;

    /// A record of the first `limit` entries from `from` on.
    pub(super) fn new(limit: usize, from: u64, ranks_per_node: u32) -> Self {
        Timeline { limit, from, ranks_per_node, ..Timeline::default() }
    }

    /// Returns how many slices, samples and marks are kept.
    pub fn len(&self) -> usize {
        self.slices.len() + self.samples.len() + self.moments.len()
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many later entries there was no room for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the timeline as trace events (feature `timeline`), times in microseconds of virtual
    /// time.
    ///
    /// # Errors
    /// Those of `out`.
    #[cfg(feature = "timeline")]
    pub fn write(&self, out: impl io::Write) -> io::Result<()> {
        viewer::write(self, &HashMap::new(), out)
    }

    /// Writes the timeline like [`Timeline::write`], with names for the commands of control queues
    /// that `label` knows.
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

    /// Returns what was posted to control queues, in order of the posting; as many as entries are
    /// kept.
    pub fn commands(&self) -> Vec<SeenCommand> {
        self.commands.seen()
    }

    /// Whether an entry that ends at `time` is kept.
    fn keeps(&mut self, time: u64) -> bool {
        let (early, room) = (time < self.from, self.len() < self.limit);
        self.dropped += u64::from(!early && !room);
        !early && room
    }

    /// A name for one more command.
    fn next_command(&mut self) -> CommandId {
        self.named += 1;
        self.named
    }

    /// `activity` took from `begin` to `end`.
    fn slice(&mut self, node: u32, track: Track, begin: u64, end: u64, activity: Activity, id: Option<CommandId>) {
        if self.keeps(end) {
            self.slices.push(Slice { node, track, begin, end: end.max(begin), activity, id });
        }
    }

    /// `activity` happened at `time`.
    fn mark(&mut self, node: u32, track: Track, time: u64, activity: Activity) {
        if self.keeps(time) {
            self.moments.push(Moment { node, track, time, activity });
        }
    }

    /// The pointers of a queue moved.
    fn pointers(&mut self, node: u32, (engine, number): (u8, u8), time: u64, [read, write, scheduled]: [u64; 3]) {
        if self.keeps(time) {
            self.samples.push(Sample { node, engine, number, time, read, write, scheduled });
        }
    }
}
