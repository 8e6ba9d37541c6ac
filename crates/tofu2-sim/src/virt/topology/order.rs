//! In which order a route takes the axes: one table, for routes on paper and for packets under way.

use super::{Axis, PathId};

/// One leg of a route: along an axis, to the path's coordinate or to the target's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leg {
    /// [`Axis::index`], or the axis' number in a plain torus.
    pub(super) axis: u8,
    pub(super) by_path: bool,
}

/// Where a packet or route stands in the order: the leg it is on. Only ever grows.
pub(in super::super) type LegIndex = u8;

const fn to_path(axis: Axis) -> Leg {
    Leg { axis: axis as u8, by_path: true }
}

const fn to_target(axis: Axis) -> Leg {
    Leg { axis: axis as u8, by_path: false }
}

/// Tofu: B, C, A inside the own group to the path's coordinates, X, Y, Z between groups, A, C, B inside the target's group.
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

/// First leg inside the target's group.
pub(super) const TARGET_GROUP: LegIndex = 6;

/// The next leg on which there is a way to go, from leg `leg` on: its leg, axis and goal.
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
