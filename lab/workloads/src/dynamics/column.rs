//! The change of one column.

use super::{
    Atmosphere, DENSITY, EAST, FIELDS, HEAT, NORTH, SHADOW, UP,
    atmosphere::GRAVITY,
    rows::{diverge, lift, rising, transport, velocity},
};

/// The columns of a field in a rectangle, regardless of their place in memory, each from its bottom
/// to its top.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    /// In the order of the first horizontal direction, then of the second.
    columns: Vec<&'a [f64]>,
    width: usize,
}

impl<'a> Columns<'a> {
    /// Creates the rectangle from columns in order, `width` of them along the first horizontal
    /// direction.
    pub fn new(width: usize, columns: impl Iterator<Item = &'a [f64]>) -> Self {
        Columns { columns: columns.collect(), width }
    }

    #[inline]
    fn at(&self, i: isize, j: isize) -> &'a [f64] {
        self.columns[i as usize + j as usize * self.width]
    }
}

/// Reusable rows for intermediate results.
#[derive(Clone, Debug)]
pub struct Work {
    east: [Vec<f64>; 5],
    north: [Vec<f64>; 5],
    /// At faces, from the bottom to the top.
    up: [Vec<f64>; 3],
    potential: [Vec<f64>; 9],
    /// At faces.
    flows: Vec<f64>,
    points: Vec<f64>,
}

/// The places at which velocities are needed.
const EAST_AT: [(isize, isize); 5] = [(-1, 0), (0, 0), (1, 0), (-1, 1), (0, 1)];
const NORTH_AT: [(isize, isize); 5] = [(0, -1), (0, 0), (0, 1), (1, -1), (1, 0)];
const UP_AT: [(isize, isize); 3] = [(0, 0), (1, 0), (0, 1)];
/// The places at which potential temperatures are needed: along the first direction, then along the
/// second.
const POTENTIAL_AT: [(isize, isize); 9] = [(-2, 0), (-1, 0), (0, 0), (1, 0), (2, 0), (0, -2), (0, -1), (0, 1), (0, 2)];

impl Work {
    /// Allocates rows for the columns of an atmosphere.
    pub fn new(atmosphere: &Atmosphere) -> Self {
        let (layers, faces) = (vec![0.0; atmosphere.cells[0]], vec![0.0; atmosphere.cells[0] + 1]);
        Work {
            east: core::array::from_fn(|_| layers.clone()),
            north: core::array::from_fn(|_| layers.clone()),
            up: core::array::from_fn(|_| faces.clone()),
            potential: core::array::from_fn(|_| layers.clone()),
            flows: faces.clone(),
            points: faces,
        }
    }
}

impl Atmosphere {
    /// Adds the change of a column during `time`. `columns` are those of each field, in a rectangle
    /// that starts [`SHADOW`] columns before column (0, 0) in both directions.
    pub fn advance(
        &self,
        columns: &[Columns<'_>; FIELDS],
        [i, j]: [usize; 2],
        time: f64,
        work: &mut Work,
        out: [&mut [f64]; FIELDS],
    ) {
        let layers = self.cells[0];
        let (i, j) = ((i + SHADOW) as isize, (j + SHADOW) as isize);
        let at = |field: usize, x: isize, y: isize| &columns[field].at(i + x, j + y)[..layers];
        // Two before, itself, two behind.
        let along = |field| [-2, -1, 0, 1, 2].map(|x| at(field, x, 0));
        let across = |field| [-2, -1, 0, 1, 2].map(|y| at(field, 0, y));
        self.velocities(&at, work);
        let Work { east, north, up, potential, flows, points } = work;
        let [density, east_out, north_out, up_out, heat] = out.map(|row| &mut row[..layers]);
        let rate = time / Atmosphere::EDGE;
        // The flows through faces whose vertical velocity is the mean of two.
        let rise = |flows: &mut [f64], a: &[f64], b: &[f64]| {
            for ((flow, a), b) in flows.iter_mut().zip(a).zip(b) {
                *flow = 0.5 * (a + b);
            }
        };

        // Vertical momenta at all faces: none at the bottom and at the top.
        points[0] = 0.0;
        points[1..].copy_from_slice(at(UP, 0, 0));

        diverge(density, rate, at(EAST, -1, 0), at(EAST, 0, 0));
        diverge(density, rate, at(NORTH, 0, -1), at(NORTH, 0, 0));
        diverge(density, rate, &points[..layers], &points[1..]);

        let [far_west, west, here, east_of, far_east, far_south, south, north_of, far_north] =
            potential.each_ref().map(Vec::as_slice);
        let flow = [(-1, 0), (-1, 0), (0, 0), (0, 0)].map(|(x, y)| at(EAST, x, y));
        transport(heat, rate, flow, [far_west, west, here, east_of, far_east]);
        let flow = [(0, -1), (0, -1), (0, 0), (0, 0)].map(|(x, y)| at(NORTH, x, y));
        transport(heat, rate, flow, [far_south, south, here, north_of, far_north]);
        flows.copy_from_slice(points);
        lift(&mut flows[1..layers], here);
        diverge(heat, rate, &flows[..layers], &flows[1..]);

        let [east_west, east_here, east_east, east_north_west, east_north] = east.each_ref().map(Vec::as_slice);
        let [north_south, north_here, north_north, north_south_east, north_east] = north.each_ref().map(Vec::as_slice);
        let [up_here, up_east, up_north] = up.each_ref().map(Vec::as_slice);

        transport(east_out, rate, [east_west, east_here, east_here, east_east], along(EAST));
        transport(east_out, rate, [north_south, north_south_east, north_here, north_east], across(EAST));
        rise(flows, up_here, up_east);
        lift(&mut flows[1..layers], at(EAST, 0, 0));
        diverge(east_out, rate, &flows[..layers], &flows[1..]);
        self.press(east_out, rate, at(HEAT, 0, 0), at(HEAT, 1, 0));

        transport(north_out, rate, [east_west, east_north_west, east_here, east_north], along(NORTH));
        transport(north_out, rate, [north_south, north_here, north_here, north_north], across(NORTH));
        rise(flows, up_here, up_north);
        lift(&mut flows[1..layers], at(NORTH, 0, 0));
        diverge(north_out, rate, &flows[..layers], &flows[1..]);
        self.press(north_out, rate, at(HEAT, 0, 0), at(HEAT, 0, 1));

        // At the face between two cells: the mean of the flows through both.
        let (both, inner) = (|row| -> [&[f64]; 2] { [row, &row[1..]] }, layers - 1);
        let up_out = &mut up_out[..inner];
        let ([a, b], [c, d]) = (both(east_west), both(east_here));
        transport(up_out, rate, [a, b, c, d], along(UP));
        let ([a, b], [c, d]) = (both(north_south), both(north_here));
        transport(up_out, rate, [a, b, c, d], across(UP));
        rise(&mut flows[..layers], up_here, &up_here[1..]);
        lift(&mut flows[..layers], points);
        diverge(up_out, rate, &flows[..inner], &flows[1..layers]);
        self.sink(up_out, rate, time, at(DENSITY, 0, 0), at(HEAT, 0, 0));
    }

    /// Writes the velocities and potential temperatures around a column.
    fn velocities<'a>(&self, at: &impl Fn(usize, isize, isize) -> &'a [f64], work: &mut Work) {
        for (into, (x, y)) in work.east.iter_mut().zip(EAST_AT) {
            velocity(into, at(EAST, x, y), &self.density, [at(DENSITY, x, y), at(DENSITY, x + 1, y)]);
        }
        for (into, (x, y)) in work.north.iter_mut().zip(NORTH_AT) {
            velocity(into, at(NORTH, x, y), &self.density, [at(DENSITY, x, y), at(DENSITY, x, y + 1)]);
        }
        for (into, (x, y)) in work.up.iter_mut().zip(UP_AT) {
            rising(into, at(UP, x, y), &self.density, at(DENSITY, x, y));
        }
        for (into, (x, y)) in work.potential.iter_mut().zip(POTENTIAL_AT) {
            let n = into.len();
            let (heat, density) = (&at(HEAT, x, y)[..n], &at(DENSITY, x, y)[..n]);
            for k in 0..n {
                into[k] = (self.heat[k] + heat[k]) / (self.density[k] + density[k]);
            }
        }
    }

    /// Accelerates by the difference in pressure between two columns.
    fn press(&self, out: &mut [f64], rate: f64, near: &[f64], far: &[f64]) {
        for (((out, stiffness), near), far) in out.iter_mut().zip(&self.stiffness).zip(near).zip(far) {
            *out -= rate * stiffness * (far - near);
        }
    }

    /// Accelerates by the differences in pressure and weight between the cells of a column.
    fn sink(&self, out: &mut [f64], rate: f64, time: f64, density: &[f64], heat: &[f64]) {
        let n = out.len();
        let (stiffness, density, heat) = (&self.stiffness[..=n], &density[..=n], &heat[..=n]);
        for k in 0..n {
            let pressure = stiffness[k + 1] * heat[k + 1] - stiffness[k] * heat[k];
            out[k] -= rate * pressure + time * GRAVITY * 0.5 * (density[k] + density[k + 1]);
        }
    }
}
