//! The same without queues: puts, each of which the CPU carries out when words of its own say so.

use super::{dissemination::steps, plan::Span, tree::Tree, tree_plan::Load};

/// One put, and the word that says it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Act {
    /// Own words that must have this iteration's number.
    pub(super) needs: Vec<usize>,
    /// To which member, and which of its words gets the number.
    pub(super) to: (usize, usize),
    pub(super) span: Option<Span>,
}

/// A member's part. An iteration is over when all is done and the words of `finally` have its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acts {
    pub(super) words: usize,
    pub(super) acts: Vec<Act>,
    pub(super) finally: Vec<usize>,
}

/// Dissemination: what is needed is named, so nothing is counted.
pub(super) fn barrier(members: usize, me: usize) -> Acts {
    let steps = steps(members);
    let act = |step: usize| Act { needs: (0..step).collect(), to: ((me + (1 << step)) % members, step), span: None };
    Acts { words: steps, acts: (0..steps).map(act).collect(), finally: (0..steps).collect() }
}

/// Up the tree and down again, in the order that [`super::tree_plan`] has. Words: those of the children, the root's turn, the segments.
pub(super) fn tree(tree: &Tree, load: &Load, me: usize) -> Acts {
    let children = tree.children(me);
    let (ups, segments) = (0..children.len(), load.segments as usize);
    let turn = children.len();
    let down = |children: usize, segment: usize| children + 1 + segment;
    let mut acts = Vec::new();
    let turned = load.turned().filter(|_| tree.members > 1);
    match (tree.parent(me), turned) {
        (Some(parent), _) => {
            acts.push(Act {
                needs: ups.clone().collect(),
                to: (parent, tree.number(me)),
                span: load.gathered(tree, me),
            });
        }
        (None, Some(_)) => acts.push(Act { needs: ups.clone().collect(), to: (me, turn), span: turned }),
        (None, None) => {}
    }
    for segment in 0..segments {
        for child in &children {
            let needs = match (tree.parent(me), turned) {
                (Some(_), _) => vec![down(children.len(), segment)],
                (None, Some(_)) => vec![turn],
                (None, None) => ups.clone().collect(),
            };
            let to = (*child, down(tree.children(*child).len(), segment));
            acts.push(Act { needs, to, span: load.segment(segment as u64) });
        }
    }
    let finally = match tree.parent(me) {
        Some(_) => (0..segments).map(|segment| down(children.len(), segment)).collect(),
        None => Vec::new(),
    };
    Acts { words: children.len() + 1 + segments, acts, finally }
}
