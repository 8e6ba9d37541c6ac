//! A dynamical core in the style of SCALE-LES, with which the XcalableMP paper measured: the
//! compressible Euler equations of a dry atmosphere in flux form.
//!
//! Five fields change: density, three momenta, and density times potential temperature, the first
//! and the last as differences from a resting atmosphere of equal potential temperature. They are
//! staggered (Arakawa's C grid), transported by fluxes of the fourth order, and stepped by three
//! Runge–Kutta stages. Pressure is linear in the difference. The bottom and the top are rigid, both
//! horizontal directions periodic.
//!
//! An array's dimensions are the vertical, which every node has all of and which is fastest in
//! memory, and the two horizontal ones in blocks. A stage reads cells up to [`SHADOW`] away, corners
//! included. A flux is computed from the same numbers in the same order at either side of it, so
//! what leaves a column enters the next one bit by bit, on whichever node that is; and a result does
//! not depend on how the grid is distributed.

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

/// The number of fields that change.
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

/// How many cells away a column's neighbours are that its change depends on.
pub const SHADOW: usize = 2;

/// A Runge–Kutta stage: the state at the step's beginning, which is state 0, goes on by a share of
/// the step, at the rate of change of state `from`, and becomes state `to`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// The state whose rate of change it is.
    pub from: usize,
    /// The state that results.
    pub to: usize,
    /// The share of the step.
    pub share: f64,
}

/// The number of states that a step needs.
pub const STATES: usize = 3;

/// The stages of a step. The last one writes the step's beginning, which nobody needs any more.
pub const STAGES: [Stage; 3] = [
    Stage { from: 0, to: 1, share: 1.0 / 3.0 },
    Stage { from: 1, to: 2, share: 1.0 / 2.0 },
    Stage { from: 2, to: 0, share: 1.0 },
];
