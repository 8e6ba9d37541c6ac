//! Routes: the order in which they take the axes, and their links. One table of legs serves both
//! computed routes and packets in flight.

use super::{Axis, Coordinates, Link, PathId, Port, TofuShape};

/// One leg of a route: along an axis, to the path's coordinate or to the target's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leg {
    /// [`Axis::index`], or the axis's number in a plain torus.
    pub(super) axis: u8,
    pub(super) by_path: bool,
}

/// The index of the current leg of a packet or route. It only increases.
pub(crate) type LegIndex = u8;

const fn to_path(axis: Axis) -> Leg {
    Leg { axis: axis as u8, by_path: true }
}

const fn to_target(axis: Axis) -> Leg {
    Leg { axis: axis as u8, by_path: false }
}

/// Tofu's legs: B, C, A inside the sender's own group to the path's coordinates, X, Y, Z between
/// groups, then A, C, B inside the target's group.
pub(super) const TOFU: [Leg; 9] = [
    to_path(Axis::B),
    to_path(Axis::C),
    to_path(Axis::A),
    to_target(Axis::X),
    to_target(Axis::Y),
    to_target(Axis::Z),
    to_target(Axis::A),
    to_target(Axis::C),
    to_target(Axis::B),
];

/// The first leg inside the target's group.
pub(super) const TARGET_GROUP: LegIndex = 6;

/// Returns the next leg, from `leg` on, that is not empty: its index, axis and goal.
#[inline]
pub(super) fn next_leg(
    order: &[Leg],
    leg: LegIndex,
    at: &[u16; 6],
    to: &[u16; 6],
    path: PathId,
) -> Option<(LegIndex, u8, u16)> {
    for (i, leg) in order.iter().enumerate().skip(leg.into()) {
        let axis = usize::from(leg.axis);
        let goal = if leg.by_path { path.along(Axis::ALL[axis]) } else { to[axis] };
        if at[axis] != goal {
            return Some((i as LegIndex, leg.axis, goal));
        }
    }
    None
}

/// The links from one node to another, in order.
#[derive(Clone, Debug)]
pub struct Route {
    shape: TofuShape,
    order: &'static [Leg],
    at: [u16; 6],
    to: [u16; 6],
    path: PathId,
    leg: LegIndex,
}

impl Route {
    pub(super) fn new(shape: TofuShape, from: Coordinates, to: Coordinates, path: PathId) -> Self {
        Self::in_order(&TOFU, shape, from, to, path)
    }

    /// Creates a route with legs in an order other than Tofu's, which the tests must reject.
    pub(super) fn in_order(
        order: &'static [Leg],
        shape: TofuShape,
        from: Coordinates,
        to: Coordinates,
        path: PathId,
    ) -> Self {
        let leg = if from == to { order.len() as LegIndex } else { 0 };
        Route { shape, order, at: wide(from), to: wide(to), path, leg }
    }
}

fn wide(coordinates: Coordinates) -> [u16; 6] {
    <[u8; 6]>::from(coordinates).map(u16::from)
}

impl Iterator for Route {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        let (leg, axis, goal) = next_leg(self.order, self.leg, &self.at, &self.to, self.path)?;
        let axis = Axis::ALL[usize::from(axis)];
        let extent = self.shape.extent(axis);
        let here = u32::from(self.at[axis.index()]);
        let (_, up) = extent.steps(here, goal.into());
        let node =
            self.at.iter().zip(Axis::ALL).fold(0, |node, (&at, axis)| node * self.shape.length(axis) + u32::from(at));
        self.at[axis.index()] = extent.step(here, up).0 as u16;
        self.leg = leg;
        Some(Link { node, port: Port::along(axis, up) })
    }
}

impl std::iter::FusedIterator for Route {}
