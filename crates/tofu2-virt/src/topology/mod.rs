//! The positions of nodes, and the links that connect them.
//!
//! [`TofuShape`] is Tofu's six-dimensional mesh/torus of groups, with its ports, paths and
//! foldings; [`Torus`] is a plain torus or mesh of one to six dimensions, for comparison and for
//! jobs of which only the number of nodes is known; [`Crossbar`] is a rectangle of nodes whose rows
//! and columns are crossbars.

mod axes;
mod crossbar;
mod filled;
mod folding;
mod map;
mod path;
mod route;
mod shape;
mod systems;
#[cfg(test)]
mod tests;
mod torus;

pub use axes::{Axis, Coordinates, Link, Port};
pub use crossbar::Crossbar;
pub use folding::{Fold, Folding, Placement};
pub use path::{Path, PathId, Paths};
pub use route::Route;
pub use shape::{TofuShape, TopologyError};
pub use systems::System;
pub use torus::{MAX_AXES, Torus};

pub(super) use map::{Hop, Map};
pub(super) use path::Choice;
pub(super) use route::LegIndex;
pub(super) use shape::MAX_NODES;

use std::fmt;

/// The network of one job.
#[derive(Debug)]
pub(super) enum Topology {
    Torus(Torus),
    Tofu(Fold, Choice),
    Crossbar(Crossbar),
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Torus(torus) => fmt::Display::fmt(torus, f),
            Topology::Tofu(fold, _) => fmt::Display::fmt(&fold.shape(), f),
            Topology::Crossbar(crossbar) => fmt::Display::fmt(crossbar, f),
        }
    }
}

impl Topology {
    pub(super) fn nodes(&self) -> u32 {
        match self {
            Topology::Torus(torus) => torus.nodes(),
            Topology::Tofu(fold, _) => fold.shape().nodes(),
            Topology::Crossbar(crossbar) => crossbar.nodes(),
        }
    }
}
