//! One queue: up a tree, and down it again (MRC).
//!
//! ```text
//! leaf   UP
//! inner  NOP ... NOP UP | DOWN ... DOWN                  an UP for each child but one, and the member's own UP; each segment to each child
//! root   NOP ... NOP SELF ... SELF | DOWN ... DOWN
//! ```
//! An UP from below releases one slot. The last of them, whichever it is, releases this member's UP
//! or, at the root, a put to its own queue, which releases all slots on the way down. An arrival
//! from above releases as many slots as there are children: the forwarding of exactly this segment.
//!
//! # Credit
//! An iteration of T slots receives credit for T. All UPs that a member receives of iteration k
//! arrive before anything comes down to it, because the root waits for all; and an UP(k+1) of a
//! child arrives after the last DOWN(k) to that child, so after all slots of iteration k have been
//! released. So credit arrives in the order of the slots, regardless of the network's order, and
//! its origin need not be distinguished. A leaf's UP(k+1) is released by the last DOWN(k), and
//! leaves when it is posted.
//!
//! # Memory
//! UP carries the blocks of a member and those below it into the parent's gather area, at their
//! position. No CPU reads them there; a child writes there again after DOWN(k), which follows the
//! parent's UP(k) that read it. The root's first put to itself copies all blocks to the area from
//! which they go down: a child that has its DOWN(k) may gather again while those of others are
//! still leaving. The result areas are written after all members have started.

use super::plan::{Area, MOST_SPS, Plan, Put, Queue, Slot, Span, nops, release};

/// The data that a collective moves along the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// Bytes that each member adds on the way up.
    pub(super) up: u64,
    /// Bytes that come down.
    pub(super) down: u64,
    /// The number of segments; at least 1.
    pub(super) segments: u64,
}

impl Load {
    /// Returns segment `number`: its start is aligned for cells of any width.
    pub(super) fn segment(&self, number: u64) -> Option<Span> {
        let each = self.down.div_ceil(self.segments).next_multiple_of(8);
        let start = (number * each).min(self.down);
        let bytes = each.min(self.down - start);
        (bytes > 0).then_some(Span { from: (Area::Result, start), at: (Area::Result, start), bytes })
    }

    /// Returns the data that `member` and those below it send up.
    pub(super) fn gathered(&self, tree: &Tree, member: usize) -> Option<Span> {
        let parent = tree.parent(member)?;
        let at = (tree.place(member) - tree.place(parent)) as u64 * self.up;
        let bytes = tree.below(member) as u64 * self.up;
        (bytes > 0).then_some(Span { from: (Area::Gather, 0), at: (Area::Gather, at), bytes })
    }

    /// Returns the data that the root copies between the way up and the way down.
    pub(super) fn turned(&self) -> Option<Span> {
        let copies = self.up > 0 && self.down > 0;
        copies.then_some(Span { from: (Area::Gather, 0), at: (Area::Result, 0), bytes: self.down })
    }
}

/// Returns the queue of `me` in the form MRC. A group of one has none.
pub(super) fn plan(tree: &Tree, load: &Load, me: usize) -> Plan {
    if tree.members == 1 {
        return Plan::default();
    }
    let children = tree.children(me);
    let mut queue = Queue::default();
    queue.slots.extend(nops(children.len().saturating_sub(1)));
    match tree.parent(me) {
        None => queue.slots.extend(release(me, 0, children.len() * load.segments as usize, load.turned())),
        Some(parent) => {
            let span = load.gathered(tree, me);
            queue.slots.push(Some(Put { to: (parent, 0), span, sps: 1, notice: false }));
            queue.ahead = u32::from(children.is_empty());
            queue.notices = 1;
        }
    }
    for segment in 0..load.segments {
        if tree.parent(me).is_some() && children.len() > MOST_SPS {
            queue.slots.extend(release(me, 0, children.len(), None));
        }
        let last = segment + 1 == load.segments;
        queue.slots.extend(children.iter().map(|child| -> Slot {
            let sps = match tree.children(*child).len() {
                0 => u8::from(last),
                below if below <= MOST_SPS => below as u8,
                _ => 1,
            };
            Some(Put { to: (*child, 0), span: load.segment(segment), sps, notice: last })
        }));
    }
    Plan { queues: vec![queue], ..Plan::default() }
}

/// The links between the members of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A binomial tree: log2 N links from the root to the last member.
    Binomial,
    /// A chain, one member after the other: N - 1 links, each of which carries a different segment
    /// at the same time.
    Chain,
}

/// The links of a group of `members`. Members are numbered from the root; in this numbering, those
/// below a member follow it without a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) members: usize,
    pub(super) root: usize,
    pub(super) shape: Shape,
}

impl Tree {
    /// Returns the position of `member`, counted from the root.
    pub(super) fn place(&self, member: usize) -> usize {
        (member + self.members - self.root) % self.members
    }

    fn member(&self, place: usize) -> usize {
        (place + self.root) % self.members
    }

    /// Returns the number of positions that a complete tree below `place` would occupy.
    fn reach(&self, place: usize) -> usize {
        match (place, self.shape) {
            (_, Shape::Chain) => self.members - place,
            (0, Shape::Binomial) => self.members.next_power_of_two(),
            (_, Shape::Binomial) => 1 << place.trailing_zeros(),
        }
    }

    /// Returns the number of members at and below `member`.
    pub(super) fn below(&self, member: usize) -> usize {
        let place = self.place(member);
        self.reach(place).min(self.members - place)
    }

    /// Returns the member above; `None` at the root.
    pub(super) fn parent(&self, member: usize) -> Option<usize> {
        let place = self.place(member);
        match (place, self.shape) {
            (0, _) => None,
            (_, Shape::Chain) => Some(self.member(place - 1)),
            (_, Shape::Binomial) => Some(self.member(place & (place - 1))),
        }
    }

    /// Returns the members directly below, in descending order of the number of members below them.
    pub(super) fn children(&self, member: usize) -> Vec<usize> {
        let place = self.place(member);
        let steps: Vec<usize> = match self.shape {
            Shape::Chain => vec![1],
            Shape::Binomial => (0..self.reach(place).trailing_zeros()).rev().map(|bit| 1 << bit).collect(),
        };
        steps.into_iter().map(|step| place + step).filter(|at| *at < self.members).map(|at| self.member(at)).collect()
    }

    /// Returns the number of `member` among its parent's children.
    pub(super) fn number(&self, member: usize) -> usize {
        let siblings = self.parent(member).map(|parent| self.children(parent)).unwrap_or_default();
        siblings.iter().position(|child| *child == member).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree_and_subtrees_have_no_gaps() {
        for shape in [Shape::Binomial, Shape::Chain] {
            for members in 1..40 {
                let tree = Tree { members, root: members / 3, shape };
                for member in 0..members {
                    let children = tree.children(member);
                    assert!(children.iter().all(|child| tree.parent(*child) == Some(member)));
                    assert_eq!(tree.below(member), 1 + children.iter().map(|child| tree.below(*child)).sum::<usize>());
                    if let Some(parent) = tree.parent(member) {
                        assert_eq!(tree.children(parent)[tree.number(member)], member);
                        let end = tree.place(member) + tree.below(member);
                        assert!(end <= tree.place(parent) + tree.below(parent));
                    }
                }
                assert_eq!(tree.below(tree.root), members);
            }
        }
    }
}
