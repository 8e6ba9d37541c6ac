//! The neighbours of each member, and a second computation of the slot at the other end of each
//! slot.

use onesided::prdma::{Cartesian, Topology, TopologyError};

/// The sources and destinations of each member.
pub(super) type Lists = Vec<(Vec<usize>, Vec<usize>)>;

/// The neighbours of all members.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// Neighbours along the axes of a grid.
    Grid {
        dims: Vec<usize>,
        periodic: Vec<bool>,
    },
    /// Neighbours on a grid, corners included.
    Moore {
        dims: Vec<usize>,
        periodic: Vec<bool>,
    },
    Graph(Lists),
}

impl Shape {
    pub(super) fn ring(members: usize) -> Self {
        Shape::torus(&[members])
    }

    pub(super) fn torus(dims: &[usize]) -> Self {
        Shape::Grid { dims: dims.to_vec(), periodic: vec![true; dims.len()] }
    }

    /// Creates a shape from the destinations of each member. Sources are listed by descending
    /// member, so that the slots of both sides are in different orders.
    pub(super) fn graph(destinations: &[Vec<usize>]) -> Self {
        let sources = |me: usize| {
            let named = |from: usize| destinations[from].iter().filter(|to| **to == me).map(move |_| from);
            (0..destinations.len()).rev().flat_map(named).collect()
        };
        Shape::Graph((0..destinations.len()).map(|me| (sources(me), destinations[me].clone())).collect())
    }

    /// Creates a shape from a rule for the destinations of each member.
    pub(super) fn by(members: usize, to: impl Fn(usize) -> Vec<usize>) -> Self {
        Shape::graph(&(0..members).map(to).collect::<Vec<_>>())
    }

    /// Creates a star, in which member 0 exchanges with all others.
    pub(super) fn star(members: usize) -> Self {
        Shape::by(members, |me| if me == 0 { (1..members).collect() } else { vec![0] })
    }

    /// Creates a shape in which all members exchange with all others.
    pub(super) fn complete(members: usize) -> Self {
        Shape::by(members, |me| (0..members).filter(|other| *other != me).collect())
    }

    /// Returns the crate's topology for a member.
    pub(super) fn topology(&self, me: usize) -> Result<Topology, TopologyError> {
        match self {
            Shape::Grid { dims, periodic } => Ok(Cartesian::new(dims, periodic)?.topology(me)),
            Shape::Moore { dims, periodic } => Ok(Cartesian::new(dims, periodic)?.moore(me)),
            Shape::Graph(lists) => Topology::graph(lists.len(), me, &lists[me].0, &lists[me].1),
        }
    }

    /// Returns the numbers of slots of sources and of destinations.
    pub(super) fn slots(&self, me: usize) -> (usize, usize) {
        match self {
            Shape::Grid { dims, .. } => (2 * dims.len(), 2 * dims.len()),
            Shape::Moore { dims, .. } => {
                let around = 3usize.pow(dims.len() as u32) - 1;
                (around, around)
            }
            Shape::Graph(lists) => (lists[me].0.len(), lists[me].1.len()),
        }
    }

    /// Returns the member whose data arrives in source slot `slot` of `me`, and its slot; `None`
    /// beyond a border.
    pub(super) fn sender(&self, me: usize, slot: usize) -> Option<(usize, usize)> {
        match self {
            Shape::Grid { dims, periodic } => {
                let mut direction = vec![0; dims.len()];
                direction[slot / 2] = if slot.is_multiple_of(2) { -1 } else { 1 };
                neighbour(dims, periodic, me, &direction).map(|member| (member, slot ^ 1))
            }
            Shape::Moore { dims, periodic } => {
                let all = 3usize.pow(dims.len() as u32);
                // The middle one is left out.
                let number = if slot < all / 2 { slot } else { slot + 1 };
                let digit = |dim: usize| (number / 3usize.pow((dims.len() - 1 - dim) as u32) % 3) as i64 - 1;
                let direction: Vec<i64> = (0..dims.len()).map(digit).collect();
                neighbour(dims, periodic, me, &direction).map(|member| (member, all - 2 - slot))
            }
            Shape::Graph(lists) => {
                let from = lists[me].0[slot];
                let earlier = lists[me].0[..slot].iter().filter(|other| **other == from).count();
                let mine = lists[from].1.iter().enumerate().filter(|(_, to)| **to == me).map(|(at, _)| at);
                mine.clone().nth(earlier).map(|at| (from, at))
            }
        }
    }
}

/// Returns the member in a direction, seen from `me`; the last dimension varies fastest.
fn neighbour(dims: &[usize], periodic: &[bool], me: usize, direction: &[i64]) -> Option<usize> {
    let (mut member, mut rest, mut stride) = (0, me, 1);
    for dim in (0..dims.len()).rev() {
        let extent = dims[dim] as i64;
        let at = (rest % dims[dim]) as i64 + direction[dim];
        if !periodic[dim] && !(0..extent).contains(&at) {
            return None;
        }
        member += ((at + extent) % extent) as usize * stride;
        rest /= dims[dim];
        stride *= dims[dim];
    }
    Some(member)
}
