//! Operations by target and kind: those that were counted, and those that a path names step by
//! step.

use onesided::observe::{Counts, RankCounts};
use std::{collections::BTreeMap, fmt};

/// Where an operation takes effect, seen from the rank that posts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// The rank with the lock's words. It performs no operations itself.
    Home,
    /// Another rank, to which the queue node belongs.
    Peer,
    /// The poster's local memory.
    Own,
    /// No single rank.
    All,
}

/// The kinds that count as flushes and not as operations.
const FLUSHES: [&str; 2] = ["flush", "flush_all"];

/// The number of operations of each kind at each target, without zeroes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(BTreeMap<(Target, &'static str), u64>);

impl Tally {
    /// Returns the operations of `rank` between two readings of its counters. The lock's home is
    /// rank 0.
    pub(super) fn between(rank: u32, before: &RankCounts, after: &RankCounts) -> Self {
        let mut tally = Tally::default();
        for (&peer, counts) in &after.peers {
            let target = match peer {
                0 => Target::Home,
                peer if peer == rank => Target::Own,
                _ => Target::Peer,
            };
            let before = before.peers.get(&peer).copied().unwrap_or_default();
            for ((kind, before), (_, after)) in kinds(&before).into_iter().zip(kinds(counts)) {
                tally.add(target, kind, after - before);
            }
        }
        tally.add(Target::All, "flush_all", after.nobody.flushes - before.nobody.flushes);
        tally.add(Target::All, "nop", after.nops - before.nops);
        tally
    }

    /// Returns the tally of `steps` as a path names them: `R1 add, X3 wake cas@peer`. The last word
    /// is the kind; the target is the home unless another is named. There is nothing to flush if
    /// puts and atomics are `ordered`.
    pub(super) fn of_steps(steps: &str, ordered: bool) -> Self {
        let mut tally = Tally::default();
        for step in steps.split(", ").filter(|step| !step.is_empty()) {
            let last = step.rsplit(' ').next().unwrap_or(step);
            let (kind, target) = match last.split_once('@') {
                Some((kind, "peer")) => (kind, Target::Peer),
                Some((kind, "own")) => (kind, Target::Own),
                Some(_) => panic!("{step:?} names no target"),
                None if last == "flush_all" => (last, Target::All),
                None => (last, Target::Home),
            };
            let known = kinds(&Counts::default()).map(|(name, _)| name).into_iter().chain(FLUSHES);
            let kind =
                known.into_iter().find(|name| *name == kind).unwrap_or_else(|| panic!("{step:?} is no operation"));
            if !(ordered && FLUSHES.contains(&kind)) {
                tally.add(target, kind, 1);
            }
        }
        tally
    }

    fn add(&mut self, target: Target, kind: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry((target, kind)).or_default() += times;
        }
    }

    /// Returns the number of operations at `target`, without flushes.
    pub(super) fn at(&self, target: Target) -> u64 {
        self.0.iter().filter(|((at, kind), _)| *at == target && !FLUSHES.contains(kind)).map(|(_, times)| times).sum()
    }

    /// Names each operation by its kind and target alone, as [`Tally::of_steps`] reads them.
    pub(super) fn steps(&self) -> String {
        let step = |(&(target, kind), &times): (&(Target, &str), &u64)| {
            let at = match target {
                Target::Home | Target::All => "",
                Target::Peer => "@peer",
                Target::Own => "@own",
            };
            vec![format!("{kind}{at}"); times as usize]
        };
        self.0.iter().flat_map(step).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> =
            self.0.iter().map(|((target, kind), times)| format!("{times} {kind} at {target:?}")).collect();
        f.write_str(if parts.is_empty() { "nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Returns every counter of operations with one peer, and its name.
fn kinds(counts: &Counts) -> [(&'static str, u64); 9] {
    let [add, swap, cas, or, and, xor] = counts.atomics.by_kind();
    [("put", counts.puts), ("get", counts.gets), add, swap, cas, or, and, xor, ("flush", counts.flushes)]
}
