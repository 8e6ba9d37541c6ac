//! A route, link by link.

use super::{
    Axis, Coordinates, Link, PathId, Port, TofuShape,
    order::{self, Leg, LegIndex},
};

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
        Self::in_order(&order::TOFU, shape, from, to, path)
    }

    /// With legs in another order than Tofu's: what the tests must reject.
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
        let (leg, axis, goal) = order::next_leg(self.order, self.leg, &self.at, &self.to, self.path)?;
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
