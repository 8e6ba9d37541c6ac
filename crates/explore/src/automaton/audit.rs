//! Steps: whether what they declare is so, and which have no end.

use super::{Automaton, Edge, LocalId};
use crate::{
    act::{Act, Answer},
    words,
};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// So many answers of a step without an end are looked at.
const RECENT: usize = 256;

impl Automaton<'_> {
    /// Returns what a rank did most often on its way to `id`, whose step is longer than the
    /// explorer is patient.
    pub(crate) fn again_and_again(&self, id: LocalId) -> String {
        let cells = self.job.cells.borrow();
        let (rank, mut at) = (self.locals[id as usize].rank, id);
        let mut deeds = BTreeMap::<String, u32>::new();
        let mut answers = 0;
        while answers < RECENT && self.locals[at as usize].age > 0 {
            let (before, answer) = &self.locals[at as usize].before;
            let local = &self.locals[*before as usize];
            let told = local.edges.iter().find(|edge| edge.answer == *answer).map_or(&[][..], |edge| &edge.told[..]);
            for deed in told.iter().chain([&local.act]).filter_map(|act| words::deed(&cells, act)) {
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

/// So many continuations at most are compared.
const AUDIT: u64 = 2_000;

impl Automaton<'_> {
    /// Returns whether histories that a step's end made the same went on in the same way, as far as
    /// anybody went on from them: how many continuations were compared, and the first that differs.
    ///
    /// All states that are known to follow are visited once for each such history, by one path, the
    /// nearest first.
    pub(crate) fn audit(&mut self) -> (u64, Option<String>) {
        let mut compared = 0;
        // In turn, so that every history gets its share of the comparisons.
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
        // Paths are cut where they are, not where another history would be.
        let cut = expected == Some(&Act::Endless);
        if cut || outcome.next.as_ref() == expected && outcome.told[..] == edge.told[..] {
            if let Some(to) = edge.to
                && audit.known.insert(to)
            {
                audit.todo.push_back((to, script));
            }
            return None;
        }
        let cells = self.job.cells.borrow();
        let did = |told: &[Act], next: Option<&Act>| {
            let all = told.iter().chain(next).map(|act| words::exactly(&cells, act)).collect::<Vec<_>>();
            if all.is_empty() { "nothing".to_owned() } else { all.join(", then ") }
        };
        let (one, other) = (did(&outcome.told, outcome.next.as_ref()), did(&edge.told, expected));
        Some(format!(
            "behind the end of a step {rank} did this: {one}; and this, after another history with the same result: {other}"
        ))
    }
}

/// A history that a step's end made the same as another one, and how far they were compared.
struct Audit {
    known: HashSet<LocalId>,
    todo: VecDeque<(LocalId, Vec<Answer>)>,
}
