//! Who is above whom.

/// How the members of a collective are linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A binomial tree: log2 N links from the root to the last member.
    Binomial,
    /// One after the other: N - 1 links, each of which carries another segment at the same time.
    Chain,
}

/// The links of a group of `members`. Members are counted from the root on; in this count those below one follow it without a gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub(super) members: usize,
    pub(super) root: usize,
    pub(super) shape: Shape,
}

impl Tree {
    /// Place of `member`, counted from the root.
    pub(super) fn place(&self, member: usize) -> usize {
        (member + self.members - self.root) % self.members
    }

    fn member(&self, place: usize) -> usize {
        (place + self.root) % self.members
    }

    /// As many places as a whole tree below `place` would take.
    fn reach(&self, place: usize) -> usize {
        match (place, self.shape) {
            (_, Shape::Chain) => self.members - place,
            (0, Shape::Binomial) => self.members.next_power_of_two(),
            (_, Shape::Binomial) => 1 << place.trailing_zeros(),
        }
    }

    /// Members at and below `member`.
    pub(super) fn below(&self, member: usize) -> usize {
        let place = self.place(member);
        self.reach(place).min(self.members - place)
    }

    /// The member above; `None` at the root.
    pub(super) fn parent(&self, member: usize) -> Option<usize> {
        let place = self.place(member);
        match (place, self.shape) {
            (0, _) => None,
            (_, Shape::Chain) => Some(self.member(place - 1)),
            (_, Shape::Binomial) => Some(self.member(place & (place - 1))),
        }
    }

    /// The members directly below, those with most below them first.
    pub(super) fn children(&self, member: usize) -> Vec<usize> {
        let place = self.place(member);
        let steps: Vec<usize> = match self.shape {
            Shape::Chain => vec![1],
            Shape::Binomial => (0..self.reach(place).trailing_zeros()).rev().map(|bit| 1 << bit).collect(),
        };
        steps.into_iter().map(|step| place + step).filter(|at| *at < self.members).map(|at| self.member(at)).collect()
    }

    /// Which child of its parent `member` is.
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
