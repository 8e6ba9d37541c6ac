//! Scenarios: the actions of ranks on the lock, their times, and the operations that each posts in
//! each phase. They are in `tests/golden/lock_counts.txt`, which describes their format.
//!
//! In virtual time a phase lasts [`PHASE`], which is long enough for everything that begins in it
//! to end or to wait. Over threads a phase ends when all ranks have done their part; only scenarios
//! in which no rank waits for the lock are played there.

use super::tally::Tally;
use onesided::lock::locks::LockKind;
use std::{fs, path::Path, time::Duration};

/// The length of a phase in virtual time.
pub(super) const PHASE: Duration = Duration::from_micros(100);

const GOLDEN: &str = "tests/golden/lock_counts.txt";

/// An action of a rank on the lock. Times are nanoseconds after the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Read,
    Write,
    /// Must get the lock.
    TryRead,
    TryWrite,
    /// Must not get the lock.
    TryReadFails,
    TryWriteFails,
    /// Must be refused because the rank has too many acquisitions waiting.
    ReadRefused,
    /// Must time out.
    ReadUntil(u64),
    WriteUntil(u64),
    /// Polled until that time, and dropped then.
    ReadDropped(u64),
    WriteDropped(u64),
    /// Polled until the first time, and dropped at the second.
    ReadForgotten(u64, u64),
    WriteForgotten(u64, u64),
    /// Releases the hold that was taken last.
    Release,
    /// Releases after posting a put to a rank other than the home, without awaiting the put.
    PutAndRelease,
    ReleaseDropped(u64),
    DropGuard,
}

/// The actions and operations of one rank in one phase.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) phase: u32,
    pub(super) rank: u32,
    /// The delay of the actions after the start of the phase, in nanoseconds.
    pub(super) after: u64,
    pub(super) acts: Vec<Act>,
    /// The rank's operations by the steps of the lock's documentation, in any order:
    /// [`Tally::of_steps`].
    pub(super) steps: String,
    /// The rank's role, for readers; empty if another path's table shows it.
    pub(super) who: String,
    /// Operations at the home and at peers in the algorithm as printed, if it has this path.
    pub(super) printed: Option<(u64, u64)>,
    /// The reason why the printed numbers are different, if they are.
    pub(super) because: String,
    /// The line as it is in the file.
    text: String,
}

/// A path through a lock.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) lock: LockKind,
    pub(super) name: String,
    /// Whether no rank waits for the lock and nothing depends on time.
    pub(super) calm: bool,
    pub(super) ranks: usize,
    /// The lines; ranks do and post nothing in phases for which they have no line.
    pub(super) lines: Vec<Line>,
}

impl Scenario {
    pub(super) fn phases(&self) -> u32 {
        self.lines.iter().map(|line| line.phase + 1).max().unwrap_or(0)
    }

    /// Returns the line of a rank in a phase.
    pub(super) fn line(&self, phase: u32, rank: u32) -> Option<&Line> {
        self.lines.iter().find(|line| (line.phase, line.rank) == (phase, rank))
    }

    fn parse(head: &str, lines: Vec<Line>) -> Option<Scenario> {
        let mut words = head.split("; ");
        let (lock, name) = words.next()?.split_once(": ")?;
        let (lock, name) = (lock.parse().ok()?, name.to_owned());
        let mut ranks = 1 + lines.iter().map(|line| line.rank).max()? as usize;
        let mut calm = false;
        for word in words {
            match word.strip_suffix(" ranks") {
                Some(more) => ranks = more.parse().ok()?,
                None => calm = word == "calm",
            }
        }
        Some(Scenario { lock, name, calm, ranks, lines })
    }
}

fn act(text: &str) -> Option<Act> {
    let mut words = text.split(' ');
    let name = words.next()?;
    let times: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some(match (name, &times[..]) {
        ("Read", []) => Act::Read,
        ("Write", []) => Act::Write,
        ("TryRead", []) => Act::TryRead,
        ("TryWrite", []) => Act::TryWrite,
        ("TryReadFails", []) => Act::TryReadFails,
        ("TryWriteFails", []) => Act::TryWriteFails,
        ("ReadRefused", []) => Act::ReadRefused,
        ("ReadUntil", &[end]) => Act::ReadUntil(end),
        ("WriteUntil", &[end]) => Act::WriteUntil(end),
        ("ReadDropped", &[end]) => Act::ReadDropped(end),
        ("WriteDropped", &[end]) => Act::WriteDropped(end),
        ("ReadForgotten", &[until, end]) => Act::ReadForgotten(until, end),
        ("WriteForgotten", &[until, end]) => Act::WriteForgotten(until, end),
        ("Release", []) => Act::Release,
        ("PutAndRelease", []) => Act::PutAndRelease,
        ("ReleaseDropped", &[end]) => Act::ReleaseDropped(end),
        ("DropGuard", []) => Act::DropGuard,
        _ => return None,
    })
}

impl Line {
    fn parse(text: &str) -> Option<Line> {
        let mut columns = text.split('|').map(str::trim);
        let (phase, rank) = columns.next()?.split_once(' ')?;
        let acts = columns.next().unwrap_or_default();
        let (after, acts) = match acts.strip_prefix("after ").and_then(|delayed| delayed.split_once(") ")) {
            Some((delay, acts)) => (delay.split(' ').next()?.parse().ok()?, acts),
            None => (0, acts),
        };
        let acts = acts.split(", ").filter(|text| !text.is_empty()).map(act).collect::<Option<_>>()?;
        let mut column = || columns.next().unwrap_or_default().to_owned();
        let (steps, who, printed, because) = (column(), column(), column(), column());
        let printed = match printed.split_once(" + ") {
            Some((home, peers)) => Some((home.parse().ok()?, peers.parse().ok()?)),
            None => None,
        };
        let (phase, rank, text) = (phase.parse().ok()?, rank.parse().ok()?, text.to_owned());
        Some(Line { phase, rank, after, acts, steps, who, printed, because, text })
    }
}

fn file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN)
}

/// Returns all scenarios.
pub(super) fn scenarios() -> Vec<Scenario> {
    let text = fs::read_to_string(file()).unwrap_or_else(|error| panic!("{GOLDEN}: {error}"));
    let blocks = text.split("\n\n").skip(1);
    let scenario = |block: &str| {
        let (head, lines) = block.split_once('\n').unwrap_or_else(|| panic!("{block:?} has no lines"));
        let lines = lines.lines().map(|line| Line::parse(line).unwrap_or_else(|| panic!("{line:?} is no line")));
        Scenario::parse(head, lines.collect()).unwrap_or_else(|| panic!("{head:?} begins no scene"))
    };
    blocks.map(scenario).collect()
}

/// Corrects the counts in the file: as kinds, whose steps are to be named by hand.
pub(super) fn rewrite(counted: &[(&Scenario, u32, u32, Tally)]) {
    let mut text = fs::read_to_string(file()).unwrap_or_else(|error| panic!("{GOLDEN}: {error}"));
    for (scenario, phase, rank, tally) in counted {
        let head = format!("\n{}: {}", scenario.lock.type_name(), scenario.name);
        let mut at = text.match_indices(&head).map(|(at, _)| at + head.len());
        let at = at.find(|at| text[*at..].starts_with([';', '\n'])).expect("the scene is in the file");
        let end = text[at..].find("\n\n").map_or(text.len(), |end| at + end);
        let steps = tally.steps();
        let block = match scenario.line(*phase, *rank) {
            Some(line) => {
                let mut columns: Vec<&str> = line.text.split('|').map(str::trim).collect();
                columns.resize(columns.len().max(3), "");
                columns[2] = &steps;
                text[at..end].replace(&line.text, &columns.join(" | "))
            }
            None => format!("{}\n{phase} {rank} | | {steps}", text[at..end].trim_end()),
        };
        text.replace_range(at..end, &block);
    }
    fs::write(file(), text).unwrap_or_else(|error| panic!("{GOLDEN}: {error}"));
}
