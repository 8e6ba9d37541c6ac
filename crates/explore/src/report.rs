//! The result of an exploration.

use std::fmt;

/// The extent and the findings of an exploration.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of different states of the whole job.
    pub states: u64,
    /// The number of moves from one state to another.
    pub transitions: u64,
    /// The number of moves on the longest path that was followed.
    pub longest: usize,
    /// States in which all ranks had ended or died.
    pub ends: u64,
    /// The number of moves back to a state on the current path, that is, of possible cycles of the
    /// job. A cycle is not an error, since fairness is not guaranteed.
    pub circles: u64,
    /// The number of paths that were not followed to their end because a step of a rank grew too
    /// long. The exploration was exhaustive up to those points.
    pub cut: u64,
    /// The number of atomics that read their word at one moment and wrote it at a later one,
    /// because a write in between could be lost.
    pub parted: u64,
    /// For each rank with a step that was cut: the acts that it repeated there, on the first such
    /// path.
    pub endless: Vec<String>,
    /// States of single ranks.
    pub local_states: u64,
    /// The number of times a program was run from its start to compute those states.
    pub runs: u64,
    /// The number of times the exploration started over because memory that was assumed to be
    /// private to a rank turned out to be shared.
    pub restarts: u32,
    /// Whether each condition that should be possible was reached: by name, in the order given.
    pub possible: Vec<(String, bool)>,
    /// Histories that a [step](crate::Probe::step) declared equal but that continued differently.
    /// If there are any, states may have been missed: the declared result is incomplete.
    pub contradiction: Option<String>,
    /// The number of continuations of such histories that were compared.
    pub compared: u64,
    /// The result.
    pub verdict: Verdict,
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every order of delivery was explored, without a finding.
    Exhausted,
    /// A bound was reached, without a finding so far.
    Stopped(Stop),
    /// Something is wrong.
    Violated(Box<CounterExample>),
}

/// The reason why an exploration was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This many states were reached.
    States(u64),
    /// Some paths were [cut](Report::cut): a step of a rank took more than this many answers. A
    /// loop that retries without a bound does this, and so does one that polls where it should
    /// wait.
    Steps(u32),
    /// The callback that watches the progress requested a stop.
    Asked,
}

/// A run that fails.
#[derive(Clone, Debug)]
pub struct CounterExample {
    /// The violated condition.
    pub what: String,
    /// The schedule of the run, for [`crate::Explorer::replay`].
    pub schedule: String,
    /// Its number of moves.
    pub moves: usize,
    /// Whether no run with fewer moves fails.
    pub shortest: bool,
    /// The events, one per line. `←` marks operations that took effect at their target; `…`, at the
    /// end, marks operations that had not yet taken effect when the run went wrong.
    pub timeline: Vec<String>,
}

impl Report {
    /// Returns the counter-example, if there is one.
    pub fn violation(&self) -> Option<&CounterExample> {
        match &self.verdict {
            Verdict::Violated(example) => Some(example),
            _ => None,
        }
    }

    /// Asserts that the exploration was exhaustive and successful.
    ///
    /// # Panics
    /// With the whole report, unless everything was explored without a finding, every condition
    /// that should be possible was reached, and no step was declared incorrectly.
    #[track_caller]
    pub fn expect_exhausted(&self) -> &Self {
        assert!(matches!(self.verdict, Verdict::Exhausted), "{self}");
        assert!(self.possible.iter().all(|(_, seen)| *seen), "{self}");
        assert!(self.contradiction.is_none(), "{self}");
        self
    }

    /// Returns the counter-example, which there must be.
    ///
    /// # Panics
    /// With the whole report, unless there is a finding.
    #[track_caller]
    pub fn expect_violation(&self) -> &CounterExample {
        self.violation().unwrap_or_else(|| panic!("no violation was found: {self}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Exhausted => write!(f, "exhausted ")?,
            Verdict::Stopped(Stop::States(limit)) => write!(f, "stopped at the limit of {limit} states: ")?,
            Verdict::Stopped(Stop::Steps(limit)) => {
                write!(f, "{} paths cut where a step took more than {limit} answers, else exhausted: ", self.cut)?;
            }
            Verdict::Stopped(Stop::Asked) => write!(f, "stopped on request at ")?,
            Verdict::Violated(example) => write!(f, "{example}\nfound among ")?,
        }
        let Report { states, transitions, longest, .. } = self;
        write!(f, "{states} states, {transitions} transitions, longest path {longest}")?;
        for (name, _) in self.possible.iter().filter(|(_, seen)| !seen) {
            write!(f, "; never seen: {name}")?;
        }
        for endless in &self.endless {
            write!(f, "\n{endless}")?;
        }
        if let Some(contradiction) = &self.contradiction {
            write!(f, "\na step was declared wrongly: {contradiction}")?;
        }
        Ok(())
    }
}

/// The run of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// The violated condition; `None` if there is none.
    pub what: Option<String>,
    /// The events, one per line.
    pub timeline: Vec<String>,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what.as_deref().unwrap_or("nothing is wrong"))?;
        written(&self.timeline, f)
    }
}

fn written(timeline: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    timeline.iter().try_for_each(|line| writeln!(f, "  {line}"))
}

impl fmt::Display for CounterExample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CounterExample { what, schedule, moves, .. } = self;
        writeln!(f, "{what}")?;
        let shortest = if self.shortest { ", none shorter" } else { "" };
        writeln!(f, "after {moves} moves{shortest}; replay with schedule {schedule}")?;
        written(&self.timeline, f)
    }
}
