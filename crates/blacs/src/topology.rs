//! Communication topologies: the neighbours of each member of a scope in broadcasts and combines.
//!
//! All results depend only on the number of members, the root and the topology, so that every
//! member can compute its neighbours locally.

use crate::Parameters;
use core::num::NonZeroU8;

#[cfg(test)]
mod tests;

/// The topology of a broadcast or combine within its scope. Members are counted from the root, around
/// the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Topology {
    /// The default. Broadcasts use the network's multicast where it reaches all of the scope, as
    /// [`fmpl`] does: then a process that broadcasts waits until the others have taken the message
    /// before the last, and may wait inside a long one. Otherwise, and in combines, it is a binomial
    /// tree, as `Tree(1)`.
    #[default]
    Default,
    /// From each member to the one with the next higher number.
    IncreasingRing,
    /// From each member to the one with the next lower number.
    DecreasingRing,
    /// Broadcasts go in both directions from the root, combines in two halves.
    SplitRing,
    /// Several paths: [`Parameters::broadcast_rings`], [`Parameters::combine_rings`].
    MultiRing,
    /// A tree in which a member has up to this number of children at each level, 1 to 9; 1 makes a
    /// binomial tree.
    Tree(NonZeroU8),
    /// A tree whose number of branches is [`Parameters::broadcast_branches`] or
    /// [`Parameters::combine_branches`].
    GeneralTree,
    /// Directly between the root and each other member.
    Full,
    /// Broadcasts follow the edges of a hypercube; combines whose result goes to all members exchange
    /// along these edges. Other combines, and scopes whose number of members is not a power of two,
    /// use `Tree(1)`.
    Hypercube,
}

impl Topology {
    /// Returns the topology with this letter or digit in BLACS.
    pub fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter.to_ascii_lowercase() {
            b' ' => Topology::Default,
            b'i' => Topology::IncreasingRing,
            b'd' => Topology::DecreasingRing,
            b's' => Topology::SplitRing,
            b'm' => Topology::MultiRing,
            digit @ b'1'..=b'9' => Topology::Tree(NonZeroU8::new(digit - b'0')?),
            b't' => Topology::GeneralTree,
            b'f' => Topology::Full,
            b'h' => Topology::Hypercube,
            _ => return None,
        })
    }
}

/// A member's neighbours in a broadcast or combine, by their numbers in the scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// The neighbour nearer to the root; `None` at the root.
    pub(crate) parent: Option<usize>,
    /// The neighbours further from the root, in message order.
    pub(crate) children: Vec<usize>,
}

/// A member of a scope, and the root of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) members: usize,
    pub(crate) me: usize,
    pub(crate) root: usize,
}

/// The basic forms of topologies.
#[derive(Clone, Copy)]
enum Form {
    /// Several paths of nearly equal length, to higher numbers or to lower ones.
    Paths { paths: usize, increasing: bool },
    /// Two paths, one in each direction.
    Split,
    /// A tree in this base: the parent of member d is d with its last nonzero digit set to 0.
    Tree { base: usize },
    /// The same in base 2, with members counted from the root by exclusive or.
    Cube,
}

impl Form {
    fn rings(rings: i32) -> Self {
        Form::Paths { paths: rings.unsigned_abs() as usize, increasing: rings > 0 }
    }

    /// Returns the form of a topology, given the parameters of general trees and rings.
    fn new(topology: Topology, rings: i32, branches: usize, members: usize) -> Self {
        match topology {
            Topology::Default => Form::Tree { base: 2 },
            Topology::IncreasingRing => Form::rings(1),
            Topology::DecreasingRing => Form::rings(-1),
            Topology::SplitRing => Form::Split,
            Topology::MultiRing => Form::rings(rings),
            Topology::Tree(branches) => Form::Tree { base: usize::from(branches.get()) + 1 },
            Topology::GeneralTree => Form::Tree { base: branches.saturating_add(1) },
            Topology::Full => Form::Tree { base: usize::MAX },
            Topology::Hypercube if members.is_power_of_two() => Form::Cube,
            Topology::Hypercube => Form::Tree { base: 2 },
        }
    }
}

impl Position {
    /// Returns the member's neighbours in a broadcast. It receives from its parent.
    pub(crate) fn broadcast(self, topology: Topology, parameters: &Parameters) -> Neighbours {
        let Parameters { broadcast_rings, broadcast_branches, .. } = *parameters;
        match Form::new(topology, broadcast_rings, broadcast_branches, self.members) {
            Form::Paths { paths, increasing } => self.paths(increasing, Paths::longer_first(paths, self.members)),
            Form::Split => self.split(),
            Form::Tree { base } => self.tree(base),
            Form::Cube => self.cube(),
        }
    }

    /// Returns the member's neighbours in a combine. It receives from its children, in this order, and
    /// then sends to its parent.
    pub(crate) fn combine(self, topology: Topology, parameters: &Parameters) -> Neighbours {
        let Parameters { combine_rings, combine_branches, .. } = *parameters;
        match Form::new(topology, combine_rings, combine_branches, self.members) {
            // On a path to higher numbers, members with lower numbers are further from the root.
            Form::Paths { paths, increasing } => self.paths(!increasing, Paths::last_longer(paths, self.members)),
            Form::Split => self.paths(false, Paths::last_longer(2, self.members)),
            Form::Tree { base } => self.mirrored_tree(base),
            Form::Cube => self.mirrored_tree(2),
        }
    }

    /// Returns the member's neighbours in the broadcast of a combine's result.
    pub(crate) fn back(self, topology: Topology, parameters: &Parameters) -> Neighbours {
        let Parameters { combine_rings, combine_branches, .. } = *parameters;
        let (broadcast_rings, broadcast_branches) = (combine_rings, combine_branches);
        self.broadcast(topology, &Parameters { broadcast_rings, broadcast_branches, ..*parameters })
    }

    /// Returns the member's distance after the root (`increasing`) or before it.
    fn distance(&self, increasing: bool) -> usize {
        let Position { members, me, root } = *self;
        if increasing { (members + me - root) % members } else { (members + root - me) % members }
    }

    /// Returns the member at `distance` after the root (`increasing`) or before it.
    fn at(&self, increasing: bool, distance: usize) -> usize {
        let Position { members, root, .. } = *self;
        if increasing { (root + distance) % members } else { (members + root - distance) % members }
    }

    fn paths(&self, increasing: bool, paths: Paths) -> Neighbours {
        let member = |distance| self.at(increasing, distance);
        let distance = self.distance(increasing);
        if distance == 0 {
            return Neighbours { parent: None, children: paths.firsts().map(member).collect() };
        }
        let (first, last) = paths.of(distance);
        let parent = if distance == first { 0 } else { distance - 1 };
        let children = (distance < last).then(|| member(distance + 1)).into_iter().collect();
        Neighbours { parent: Some(member(parent)), children }
    }

    fn split(&self) -> Neighbours {
        let half = self.members / 2;
        let (up, down) = (self.distance(true), self.distance(false));
        let (after, before) = (|distance| self.at(true, distance), |distance| self.at(false, distance));
        let longest_down = self.members - 1 - half.min(self.members - 1);
        match up {
            0 => {
                let children = [(half > 0).then(|| after(1)), (longest_down > 0).then(|| before(1))];
                Neighbours { parent: None, children: children.into_iter().flatten().collect() }
            }
            up if up <= half => Neighbours {
                parent: Some(after(up - 1)),
                children: (up < half).then(|| after(up + 1)).into_iter().collect(),
            },
            _ => {
                let children = (down < longest_down).then(|| before(down + 1)).into_iter().collect();
                Neighbours { parent: Some(before(down - 1)), children }
            }
        }
    }

    fn tree(&self, base: usize) -> Neighbours {
        let (parent, children) = in_tree(base, self.members, self.distance(true));
        self.neighbours(parent, &children)
    }

    /// Returns the neighbours in a tree, nearest child first.
    fn mirrored_tree(&self, base: usize) -> Neighbours {
        let (parent, mut children) = in_tree(base, self.members, self.distance(true));
        children.sort_unstable();
        self.neighbours(parent, &children)
    }

    fn neighbours(&self, parent: Option<usize>, children: &[usize]) -> Neighbours {
        let member = |distance| self.at(true, distance);
        Neighbours { parent: parent.map(member), children: children.iter().copied().map(member).collect() }
    }

    fn cube(&self) -> Neighbours {
        let Position { members, me, root } = *self;
        let place = me ^ root;
        let bits = (0..usize::BITS).map(|bit| 1 << bit).take_while(|bit| *bit < members);
        let children = bits.filter(|bit| *bit > place).map(|bit| me ^ bit).collect();
        let parent = place.checked_ilog2().map(|bit| me ^ 1 << bit);
        Neighbours { parent, children }
    }
}

/// Returns the parent of a position in a tree, and its children, largest subtree first.
fn in_tree(base: usize, members: usize, place: usize) -> (Option<usize>, Vec<usize>) {
    let mut weight: usize = 1;
    while weight.checked_mul(base).is_some_and(|weight| weight < members) && place.is_multiple_of(weight * base) {
        weight *= base;
    }
    // The weight is now that of the last nonzero digit, or of the first digit at the root.
    let (parent, mut weight) = match place {
        0 => (None, Some(weight)),
        _ => (Some(place - place / weight % base * weight), (weight > 1).then(|| weight / base)),
    };
    let mut children = Vec::new();
    while let Some(of) = weight {
        let further = (1..base).map(|digit| place + digit * of).take_while(|child| *child < members);
        children.extend(further);
        weight = (of > 1).then(|| of / base);
    }
    (parent, children)
}

/// The division of the distances from 1 on into paths.
#[derive(Clone, Copy)]
struct Paths {
    /// The greatest distance.
    all: usize,
    /// The number of paths.
    paths: usize,
    /// The length of most paths; not 0.
    length: usize,
    /// The number of paths, from the first one, that have one more member.
    longer: usize,
}

impl Paths {
    /// Divides the distances into paths whose lengths differ by at most one member.
    fn longer_first(paths: usize, members: usize) -> Self {
        let all = members - 1;
        let paths = paths.clamp(1, all.max(1));
        Paths { all, paths, length: (all / paths).max(1), longer: all % paths }
    }

    /// Divides the distances into paths of equal length, the last of which takes the remainder.
    fn last_longer(paths: usize, members: usize) -> Self {
        Paths { longer: 0, ..Paths::longer_first(paths, members) }
    }

    /// Returns the first distance of a path.
    fn first(&self, path: usize) -> usize {
        1 + path * self.length + path.min(self.longer)
    }

    fn firsts(self) -> impl Iterator<Item = usize> {
        (0..self.paths).map(move |path| self.first(path)).take_while(move |first| *first <= self.all)
    }

    /// Returns the first and last distance of the path that contains `distance`.
    fn of(&self, distance: usize) -> (usize, usize) {
        let long = self.longer * (self.length + 1);
        let path = match distance - 1 {
            before if before < long => before / (self.length + 1),
            before => self.longer + (before - long) / self.length,
        };
        let path = path.min(self.paths - 1);
        let last = if path + 1 == self.paths { self.all } else { self.first(path + 1) - 1 };
        (self.first(path), last)
    }
}
