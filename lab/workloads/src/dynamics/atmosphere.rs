//! The resting atmosphere, and its initial disturbance.

use super::{DENSITY, EAST, FIELDS, NORTH};
use std::f64::consts::PI;

/// Acceleration due to gravity, in m/s².
pub(super) const GRAVITY: f64 = 9.81;
/// The potential temperature at rest, in K.
const POTENTIAL: f64 = 300.0;
/// The reference pressure of potential temperatures, also that at the ground, in Pa.
const GROUND: f64 = 1e5;
/// The gas constant of dry air, and its specific heats at constant pressure and volume, in J/(kg K).
const GAS: f64 = 287.0;
const HEAT_PRESSURE: f64 = 1004.5;
const HEAT_VOLUME: f64 = HEAT_PRESSURE - GAS;

/// The excess temperature of the bubble's centre, in K.
const WARMER: f64 = 3.0;
/// The centre of the bubble, and its extent: shares of the grid, vertical first.
const MIDDLE: [f64; 3] = [0.4, 0.5, 0.5];
const REACH: [f64; 3] = [0.35, 0.25, 0.25];
/// The initial wind everywhere, in m/s.
const WIND: [f64; 2] = [20.0, 10.0];

/// A grid with the resting atmosphere, relative to which the fields are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Atmosphere {
    /// The numbers of cells: vertically, then in both horizontal directions.
    pub(super) cells: [usize; 3],
    /// For each layer of cells, at rest: density, density times potential temperature, and the
    /// derivative of the pressure with respect to the latter.
    pub(super) density: Vec<f64>,
    pub(super) heat: Vec<f64>,
    pub(super) stiffness: Vec<f64>,
}

impl Atmosphere {
    /// The length of a cell's edges, in m.
    pub const EDGE: f64 = 100.0;
    /// The length of a step, in s: sound travels a third of an edge.
    pub const STEP: f64 = 0.1;

    /// Returns an atmosphere of `cells` cells, vertically and in both horizontal directions, with
    /// at least four layers of cells. `None` if there are fewer layers, or no columns, or if the
    /// uppermost layer would be in empty space.
    pub fn new(cells: [usize; 3]) -> Option<Self> {
        let layers = cells[0];
        // The temperature of a layer, as a share of that at the ground.
        let cooling =
            |layer: usize| 1.0 - GRAVITY * (layer as f64 + 0.5) * Atmosphere::EDGE / (HEAT_PRESSURE * POTENTIAL);
        if layers < 4 || cells.contains(&0) || cooling(layers) < 0.1 {
            return None;
        }
        let heat = |layer| GROUND / GAS * cooling(layer).powf(HEAT_VOLUME / GAS);
        let pressure = |layer| GROUND * cooling(layer).powf(HEAT_PRESSURE / GAS);
        let stiffness = |layer| HEAT_PRESSURE / HEAT_VOLUME * pressure(layer) / heat(layer);
        Some(Atmosphere {
            cells,
            density: (0..layers).map(|layer| heat(layer) / POTENTIAL).collect(),
            heat: (0..layers).map(heat).collect(),
            stiffness: (0..layers).map(stiffness).collect(),
        })
    }

    /// Returns the numbers of cells: vertically, then in both horizontal directions.
    pub fn cells(&self) -> [usize; 3] {
        self.cells
    }

    /// Returns the initial fields of a cell: a warm bubble in a steady wind.
    pub fn first(&self, [layer, i, j]: [usize; 3]) -> [f64; FIELDS] {
        let [_, columns, rows] = self.cells;
        let (here, base) = (self.lightness([layer, i, j]), self.density[layer]);
        let between = |there: f64| base + 0.5 * (here + there);
        let mut fields = [0.0; FIELDS];
        fields[DENSITY] = here;
        fields[EAST] = WIND[0] * between(self.lightness([layer, (i + 1) % columns, j]));
        fields[NORTH] = WIND[1] * between(self.lightness([layer, i, (j + 1) % rows]));
        fields
    }

    /// Returns the initial difference of a cell's density.
    fn lightness(&self, cell: [usize; 3]) -> f64 {
        let far = |dim: usize| ((cell[dim] as f64 + 0.5) / self.cells[dim] as f64 - MIDDLE[dim]) / REACH[dim];
        let distance = (0..3).map(|dim| far(dim) * far(dim)).sum::<f64>().sqrt();
        let warmer = if distance < 1.0 { WARMER * (0.5 * PI * distance).cos().powi(2) } else { 0.0 };
        // At the pressure at rest.
        -self.density[cell[0]] * warmer / (POTENTIAL + warmer)
    }

    /// Returns the excess temperature of a cell of a layer over that at rest, in K of potential
    /// temperature.
    pub fn warmth(&self, layer: usize, density: f64, heat: f64) -> f64 {
        (self.heat[layer] + heat) / (self.density[layer] + density) - POTENTIAL
    }
}
