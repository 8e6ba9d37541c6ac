//! Building schedules, rank after rank.

use super::{
    Operation, Reason, Schedule, Work,
    schedule::{ANY, Edge, Kind, MAX_OPERATIONS, Op},
};

/// Builds a [`Schedule`], rank after rank.
#[derive(Debug)]
pub struct Builder {
    ranks: u32,
    schedule: Schedule,
    /// Of the rank in progress.
    dependencies: Vec<Dependency>,
}

/// An operation of the rank in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u32);

#[derive(Clone, Copy, Debug)]
struct Dependency {
    earlier: u32,
    later: u32,
    on_start: bool,
}

impl Builder {
    /// Begins a schedule with its rank 0.
    ///
    /// # Errors
    /// If there is no rank, or the number is `u32::MAX`, which means any rank.
    pub fn new(ranks: u32) -> Result<Self, Reason> {
        if ranks == 0 {
            return Err(Reason::Expected { expected: "at least one rank", found: "none".into() });
        }
        at_most("the number of ranks", ranks.into(), u64::from(u32::MAX) - 1)?;
        let schedule =
            Schedule { starts: vec![0], ops: Vec::new(), edges: Vec::new(), large: Vec::new(), cpus: 1, nics: 1 };
        Ok(Builder { ranks, schedule, dependencies: Vec::new() })
    }

    /// Returns the rank in progress.
    pub fn rank(&self) -> u32 {
        self.schedule.starts.len() as u32 - 1
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Adds an operation to the rank in progress.
    ///
    /// # Errors
    /// A rank that doesn't exist, a send with the tag `u32::MAX`, too many operations (2^31).
    pub fn add(&mut self, operation: Operation) -> Result<Label, Reason> {
        let (kind, peer, tag, size) = match operation.work {
            Work::Send { tag: ANY, .. } => return Err(Reason::WildcardSend),
            Work::Send { to, bytes, tag } => (Kind::Send, Some(to), tag, bytes),
            Work::Recv { from, bytes, tag } => (Kind::Recv, from, tag.unwrap_or(ANY), bytes),
            Work::Calc { nanoseconds } => (Kind::Calc, None, 0, nanoseconds),
        };
        if self.rank() == self.ranks {
            return Err(Reason::NoSuchRank { peer: self.ranks, ranks: self.ranks });
        }
        if let Some(peer) = peer.filter(|peer| *peer >= self.ranks) {
            return Err(Reason::NoSuchRank { peer, ranks: self.ranks });
        }
        at_most("the number of operations", self.schedule.ops.len() as u64 + 1, MAX_OPERATIONS as u64)?;
        let is_large = size > u64::from(u32::MAX);
        let stored = if is_large {
            self.schedule.large.push(size);
            self.schedule.large.len() as u64 - 1
        } else {
            size
        };
        self.schedule.cpus = self.schedule.cpus.max(u16::from(operation.cpu) + 1);
        self.schedule.nics = self.schedule.nics.max(u16::from(operation.nic) + 1);
        let rank = self.rank();
        let label = Label(self.added());
        self.schedule.ops.push(Op {
            size: stored as u32,
            peer: peer.unwrap_or(if kind == Kind::Recv { ANY } else { 0 }),
            tag,
            edges: 0,
            link: 0,
            stamp: 0,
            rank,
            kind,
            is_large,
            cpu: operation.cpu,
            nic: operation.nic,
        });
        Ok(label)
    }

    /// Lets an operation start only when an earlier one has ended (`later requires earlier`).
    ///
    /// # Errors
    /// An operation that the rank in progress doesn't have.
    pub fn requires(&mut self, later: Label, earlier: Label) -> Result<(), Reason> {
        self.depend(later, earlier, false)
    }

    /// Lets an operation start only when an earlier one has started (`later irequires earlier`).
    ///
    /// # Errors
    /// An operation that the rank in progress doesn't have.
    pub fn irequires(&mut self, later: Label, earlier: Label) -> Result<(), Reason> {
        self.depend(later, earlier, true)
    }

    /// Ends the rank in progress.
    ///
    /// # Errors
    /// Too many dependencies (2^32).
    pub fn end_rank(&mut self) -> Result<(), Reason> {
        let start = self.schedule.starts[self.rank() as usize];
        let dependencies = &mut self.dependencies;
        let edges = self.schedule.edges.len() as u64 + dependencies.len() as u64;
        at_most("the number of dependencies", edges, u32::MAX.into())?;
        // Stable: dependencies of one kind of one operation stay in order.
        dependencies.sort_by_key(|dependency| (dependency.earlier, dependency.on_start));
        let mut next = dependencies.drain(..).peekable();
        for index in start as usize..self.schedule.ops.len() {
            self.schedule.ops[index].edges = self.schedule.edges.len() as u32;
            while let Some(edge) = next.next_if(|dependency| start as usize + dependency.earlier as usize == index) {
                let later = start + edge.later;
                self.schedule.edges.push(Edge::new(later, edge.on_start));
                self.schedule.ops[later as usize].link += 1;
            }
        }
        self.schedule.starts.push(self.schedule.ops.len() as u32);
        Ok(())
    }

    /// Returns the schedule of all ranks.
    ///
    /// # Errors
    /// If ranks are missing.
    pub fn finish(mut self) -> Result<Schedule, Reason> {
        if self.rank() != self.ranks {
            return Err(Reason::RanksMissing { given: self.rank(), ranks: self.ranks });
        }
        self.schedule.ops.shrink_to_fit();
        self.schedule.edges.shrink_to_fit();
        Ok(self.schedule)
    }

    /// Returns the number of operations of the rank in progress.
    pub(super) fn added(&self) -> u32 {
        self.schedule.ops.len() as u32 - self.schedule.starts[self.rank() as usize]
    }

    /// Returns the label of the operation with a number in the rank in progress.
    pub(super) fn label(&self, number: u32) -> Result<Label, Reason> {
        if number < self.added() { Ok(Label(number)) } else { Err(Reason::NoSuchOperation(number.to_string())) }
    }

    fn depend(&mut self, later: Label, earlier: Label, on_start: bool) -> Result<(), Reason> {
        let (later, earlier) = (self.label(later.0)?.0, self.label(earlier.0)?.0);
        self.dependencies.push(Dependency { earlier, later, on_start });
        Ok(())
    }
}

/// Checks a number against its limit.
pub(super) fn at_most(what: &'static str, number: u64, most: u64) -> Result<(), Reason> {
    if number > most { Err(Reason::TooLarge { what, number, most }) } else { Ok(()) }
}
