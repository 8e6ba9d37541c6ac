//! The tree along which a collective proceeds.

/// A member's place in the binomial tree of a root.
///
/// Count members from the root on: number `v` has the children `v + 1`, `v + 2`, `v + 4` … as far as
/// these are below the lowest bit of `v`. Its subtree is then a range of numbers that begins with
/// `v`, and its children's subtrees follow each other in this range.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The next member towards the root.
    pub(crate) parent: Option<usize>,
    /// In the order of their numbers; later children have larger subtrees.
    pub(crate) children: Vec<usize>,
}

impl Tree {
    pub(crate) fn new(me: usize, members: usize, root: usize) -> Self {
        let number = (me + members - root) % members;
        let member = |number: usize| (number + root) % members;
        let steps = if number == 0 { usize::BITS } else { number.trailing_zeros() };
        let children = (0..steps).map(|step| 1 << step).take_while(|step| *step < members - number);
        Tree {
            parent: (number > 0).then(|| member(number & (number - 1))),
            children: children.map(|step| member(number + step)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    fn depth(me: usize, members: usize, root: usize) -> u32 {
        Tree::new(me, members, root).parent.map_or(0, |parent| 1 + depth(parent, members, root))
    }

    #[test]
    fn there_is_one_stage_fewer_unless_the_number_is_a_power_of_two() {
        for members in 1usize..=70 {
            for root in [0, members / 2, members - 1] {
                let stages = (0..members).map(|me| depth(me, members, root)).max().expect("a member");
                let doubling = members.next_power_of_two().ilog2();
                assert_eq!(stages, if members.is_power_of_two() { doubling } else { doubling - 1 }, "{members}");
            }
        }
    }

    #[test]
    fn a_subtree_is_a_range_and_its_children_follow_each_other() {
        fn walk(me: usize, members: usize, root: usize, order: &mut Vec<usize>) {
            order.push(me);
            for child in Tree::new(me, members, root).children {
                assert_eq!(Tree::new(child, members, root).parent, Some(me));
                walk(child, members, root, order);
            }
        }
        for members in 1..=33 {
            for root in 0..members {
                let mut order = Vec::new();
                walk(root, members, root, &mut order);
                assert!(order.iter().enumerate().all(|(n, member)| *member == (root + n) % members));
                assert_eq!(order.len(), members);
            }
        }
    }
}
