//! A dynamical core in the style of SCALE-LES, which the XcalableMP paper used for its
//! measurements: the compressible Euler equations of a dry atmosphere in flux form.
//!
//! Five fields change: density, three momenta, and density times potential temperature, the first
//! and the last as differences from a resting atmosphere of equal potential temperature. They are
//! staggered (Arakawa's C grid), transported by fluxes of the fourth order, and stepped by three
//! Runge–Kutta stages. Pressure is linear in the difference. The bottom and the top are rigid, both
//! horizontal directions periodic.
//!
//! The dimensions of an array are the vertical one, which every node has completely and which is
//! fastest in memory, and the two horizontal ones, distributed in blocks. A stage reads cells up to
//! [`SHADOW`] away, including corners. A flux is computed from the same numbers in the same order
//! on both sides of it, so the flux out of one column is bitwise equal to the flux into the next
//! one, no matter on which node that is, and a result does not depend on the distribution of the
//! grid.

mod atmosphere;
mod column;
mod distributed;
mod rows;
#[cfg(test)]
mod tests;
mod totals;
mod vectors;

pub use atmosphere::Atmosphere;
pub use column::{Columns, Work};
pub use distributed::{Fields, compute, fields, mapping};
pub use totals::Totals;
pub use vectors::{Alone, Vectors};

/// The number of fields.
pub const FIELDS: usize = 5;
/// The difference in density.
pub const DENSITY: usize = 0;
/// The momentum along the first horizontal direction, at a cell's far face.
pub const EAST: usize = 1;
/// The momentum along the second horizontal direction, at a cell's far face.
pub const NORTH: usize = 2;
/// The vertical momentum, at a cell's upper face; 0 at the top.
pub const UP: usize = 3;
/// The difference in density times potential temperature.
pub const HEAT: usize = 4;

/// The maximum distance, in cells, of the columns on which a column's change depends.
pub const SHADOW: usize = 2;

/// A Runge–Kutta stage: the state at the step's beginning, which is state 0, advances by a share of
/// the step, at the rate of change of state `from`, and becomes state `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The state that determines the rate of change.
    pub from: usize,
    /// The resulting state.
    pub to: usize,
    /// The share of the step.
    pub share: f64,
}

/// The number of states of a step.
pub const STATES: usize = 3;

/// The stages of a step. The last one overwrites the step's beginning, which is no longer needed.
pub const STAGES: [Stage; 3] = [
    Stage { from: 0, to: 1, share: 1.0 / 3.0 },
    Stage { from: 1, to: 2, share: 1.0 / 2.0 },
    Stage { from: 2, to: 0, share: 1.0 },
];
