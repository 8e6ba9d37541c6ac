//! Checks of steps: whether the declared ones are valid, and which ones never end.

use super::{Automaton, Edge, LocalId};
use crate::{
    act::{Act, Answer},
    words,
};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The number of most recent answers to inspect in a step that does not end.
const RECENT: usize = 256;

impl Automaton<'_> {
    /// Describes the most frequent acts of a rank on its way to `id`, whose step exceeds the
    /// explorer's patience.
    pub(crate) fn again_and_again(&self, id: LocalId) -> String {
        let cells = self.job.cells.borrow();
        let (rank, mut at) = (self.locals[id as usize].rank, id);
        let mut deeds = BTreeMap::<String, u32>::new();
        let mut answers = 0;
        while answers < RECENT && self.locals[at as usize].age > 0 {
            let (before, answer) = &self.locals[at as usize].before;
            let local = &self.locals[*before as usize];
            let reported =
                local.edges.iter().find(|edge| edge.answer == *answer).map_or(&[][..], |edge| &edge.reported[..]);
            for deed in reported.iter().chain([&local.act]).filter_map(|act| words::deed(&cells, act)) {
                *deeds.entry(deed).or_default() += 1;
            }
            (at, answers) = (*before, answers + 1);
        }
        let most = deeds.values().copied().max().unwrap_or(0);
        let often =
            deeds.iter().filter(|(_, times)| 2 * **times > most).map(|(deed, times)| format!("{deed} ({times} times)"));
        let often = often.take(4).collect::<Vec<_>>().join(", ");
        format!("{rank} comes to no end of a step; in its last {answers} answers there: {often}")
    }
}

/// The largest number of continuations to compare.
const AUDIT: u64 = 2_000;

impl Automaton<'_> {
    /// Compares the continuations of histories that the end of a step has merged, as far as they
    /// were explored. Returns the number of continuations compared and a description of the first
    /// difference.
    ///
    /// For each such history, visits every known successor state once, by one path, nearest first.
    pub(crate) fn audit(&mut self) -> (u64, Option<String>) {
        let mut compared = 0;
        // The histories take turns, so that each gets its share of the comparisons.
        let mut audits: VecDeque<Audit> = VecDeque::new();
        for (id, local) in self.locals.iter().enumerate() {
            for (before, answer) in &local.others {
                let mut script = self.history(*before);
                script.push(answer.clone());
                audits.push_back(Audit {
                    known: HashSet::from([id as LocalId]),
                    todo: VecDeque::from([(id as LocalId, script)]),
                });
            }
        }
        while let Some(mut audit) = audits.pop_front() {
            let Some((id, script)) = audit.todo.pop_front() else { continue };
            for edge in self.locals[id as usize].edges.clone() {
                compared += 1;
                if let Some(difference) = self.compare(id, &edge, &script, &mut audit) {
                    return (compared, Some(difference));
                }
            }
            if compared >= AUDIT {
                break;
            }
            audits.push_back(audit);
        }
        (compared, None)
    }

    fn compare(&mut self, id: LocalId, edge: &Edge, script: &[Answer], audit: &mut Audit) -> Option<String> {
        let rank = self.locals[id as usize].rank;
        let mut script = script.to_vec();
        script.push(edge.answer.clone());
        let outcome = self.run(rank, script.clone());
        let expected = edge.to.map(|to| &self.locals[to as usize].act);
        // Where the known path was cut, there is nothing to compare.
        let cut = expected == Some(&Act::Endless);
        if cut || outcome.next.as_ref() == expected && outcome.reported[..] == edge.reported[..] {
            if let Some(to) = edge.to
                && audit.known.insert(to)
            {
                audit.todo.push_back((to, script));
            }
            return None;
        }
        let cells = self.job.cells.borrow();
        let did = |reported: &[Act], next: Option<&Act>| {
            let all = reported.iter().chain(next).map(|act| words::exactly(&cells, act)).collect::<Vec<_>>();
            if all.is_empty() { "nothing".to_owned() } else { all.join(", then ") }
        };
        let (one, other) = (did(&outcome.reported, outcome.next.as_ref()), did(&edge.reported, expected));
        Some(format!(
            "behind the end of a step {rank} did this: {one}; and this, after another history with the same result: {other}"
        ))
    }
}

/// A history that a step's end has merged with another one, and the progress of the comparison.
struct Audit {
    known: HashSet<LocalId>,
    todo: VecDeque<(LocalId, Vec<Answer>)>,
}
