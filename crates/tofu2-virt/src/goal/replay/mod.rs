//! Replaying a schedule in virtual time, by the LogGPS model.
//!
//! # Cost
//! An operation that can't start waits in a list of its rank instead of returning to the queue of
//! events, and matching looks at no other messages, so that `n` messages to one rank take `n` steps.

mod channels;
mod events;
mod lists;
mod matching;
mod steps;

use super::{
    LogGps, ReplayError, Schedule,
    schedule::{Edge, Kind, Op},
};
use crate::clock::RadixHeap;
use channels::Wildcards;
use events::Event;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// The result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// When each rank finished, in picoseconds.
    pub finish_times: Vec<u64>,
    /// The number of events: operations and messages.
    pub events: u64,
    /// The number of messages.
    pub messages: u64,
    /// The memory of the schedule, and of the replay at its peak, divided by the number of ranks.
    pub bytes_per_rank: u64,
}

impl Replay {
    /// Returns the last finishing time, in picoseconds.
    pub fn end(&self) -> u64 {
        self.finish_times.iter().copied().max().unwrap_or_default()
    }
}

impl Schedule {
    /// Replays the schedule, which the replay uses up: copy it before, to replay it again.
    ///
    /// # Rules
    /// `k` is the number of bytes of a message without the first.
    /// * An operation becomes executable when its dependencies are satisfied. It starts when its CPU
    ///   is free, a send also when its interface is.
    /// * A send takes its CPU for `o + k·O` and its interface for `g + k·G`. Its message arrives `o + L`
    ///   after the start.
    /// * A message that arrives takes the receiver's CPU for `o + k·max(O, G)` and the receiver's
    ///   interface for `g + k·G`, which does not delay sends, as soon as both are free, whether or not a
    ///   receive is posted. The first posted receive that matches gets it; otherwise it waits for the first
    ///   receive that matches.
    /// * A send of up to S bytes ends when its CPU's time does, a longer one when its message has been
    ///   matched. A receive ends when its message's CPU time does.
    /// * Operations that wait for a CPU or an interface, and events of the same time, take place in the
    ///   order in which they became executable; of operations that become executable together, sends come
    ///   first, then receives, then calculations, otherwise in the order of the schedule.
    ///
    /// A rank finishes when its last CPU is free. These are LogGOPSim's rules, except that it allows an
    /// operation on another CPU to start before the end of those that it requires.
    ///
    /// # Errors
    /// Operations that never finish, times beyond 64 bits of picoseconds, too little memory.
    pub fn replay(self, machine: &LogGps) -> Result<Replay, ReplayError> {
        Machine::new(self, *machine)?.run()
    }
}

/// The state of a replay.
#[derive(Debug)]
struct Machine {
    loggps: LogGps,
    ops: Vec<Op>,
    edges: Vec<Edge>,
    large: Vec<u64>,
    starts: Vec<u32>,
    cpus: usize,
    nics: usize,
    /// For each rank, when its CPUs, its interfaces for sending and those for receiving are free.
    free: Vec<u64>,
    /// For each rank and class of operations, those that wait for a resource.
    waiting: Vec<lists::List>,
    classes: usize,
    /// For each channel, posted receives or unreceived messages.
    channels: Vec<lists::List>,
    /// Ranks with receives from any source or with any tag.
    wildcards: HashMap<u32, Wildcards>,
    /// The tags, if there are such ranks; otherwise empty.
    tags: Vec<u32>,
    queue: RadixHeap<Event>,
    /// Of the current time: classes whose first waiting operation tries again, by its stamp.
    retries: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// Operations that became executable in this step, and when at the earliest.
    executable: Vec<(u32, u64)>,
    now: u64,
    stamps: u32,
    posted: u32,
    messages: u64,
    /// The number of operations that have not finished; those of eager messages finish when received.
    unfinished: usize,
}

impl Machine {
    fn run(mut self) -> Result<Replay, ReplayError> {
        for rank in 0..self.starts.len() - 1 {
            for index in self.starts[rank]..self.starts[rank + 1] {
                if self.ops[index as usize].link == 0 {
                    self.executable.push((index, 0));
                }
            }
            self.schedule_executable();
        }
        let mut batch = Vec::new();
        while let Some(now) = self.queue.pop_batch(&mut batch) {
            self.now = now;
            self.run_batch(&batch);
        }
        self.result()
    }

    /// Runs the events of one time: those of the queue are in the order of their stamps, into which
    /// the retries are merged.
    fn run_batch(&mut self, batch: &[Event]) {
        for event in batch {
            if let Some(class) = event.class() {
                self.retry_now(event.subject, class);
            }
        }
        for (index, event) in batch.iter().enumerate() {
            self.prefetch(batch, index);
            if event.class().is_some() {
                continue;
            }
            let stamp = self.ops[event.subject as usize].stamp;
            while let Some(Reverse((first, ..))) = self.retries.peek() {
                if *first > stamp {
                    break;
                }
                self.retry_first();
            }
            self.start(event.subject);
        }
        while !self.retries.is_empty() {
            self.retry_first();
        }
    }

    /// Returns the result, or the reason why there is none.
    fn result(self) -> Result<Replay, ReplayError> {
        if self.unfinished > 0 {
            return Err(self.first_unfinished());
        }
        let finish_times: Vec<u64> = self
            .free
            .chunks_exact(self.cpus + 2 * self.nics)
            .map(|free| free[..self.cpus].iter().copied().max().unwrap_or_default())
            .collect();
        if finish_times.contains(&u64::MAX) {
            return Err(ReplayError::EndOfTime);
        }
        let bytes_per_rank = (self.bytes() + self.queue.peak_bytes() as u64).div_ceil(finish_times.len() as u64);
        Ok(Replay { finish_times, events: u64::from(self.stamps), messages: self.messages, bytes_per_rank })
    }

    fn first_unfinished(&self) -> ReplayError {
        let count = |is_counted: fn(Kind) -> bool| self.ops.iter().filter(|op| is_counted(op.kind)).count();
        let first = self.ops.iter().position(|op| op.kind != Kind::Finished).unwrap_or_default();
        let rank = self.ops[first].rank;
        ReplayError::Unfinished {
            unfinished: self.unfinished,
            receives: count(|kind| kind == Kind::Posted),
            messages: count(|kind| matches!(kind, Kind::Message | Kind::Offer)),
            rank,
            operation: first as u32 - self.starts[rank as usize],
        }
    }

    /// Returns the bytes of all tables but the queue.
    fn bytes(&self) -> u64 {
        #[allow(clippy::ptr_arg, reason = "the capacity counts")]
        fn of<T>(table: &Vec<T>) -> u64 {
            (table.capacity() * size_of::<T>()) as u64
        }
        of(&self.ops)
            + of(&self.edges)
            + of(&self.large)
            + of(&self.starts)
            + of(&self.free)
            + of(&self.waiting)
            + of(&self.channels)
            + of(&self.tags)
    }
}
