//! The same computation in plain vectors, on one processor.

use super::{Atmosphere, Columns, FIELDS, SHADOW, STAGES, STATES, Work};
use xmp_reflect::Section;

/// The fields of a block with its shadow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    /// The numbers of cells including the shadow: vertically, then in both horizontal directions.
    extents: [usize; 3],
    fields: [Vec<f64>; FIELDS],
}

impl Vectors {
    /// Creates fields of zeros for a block of this number of cells.
    pub fn new([layers, columns, rows]: [usize; 3]) -> Self {
        let extents = [layers, columns + 2 * SHADOW, rows + 2 * SHADOW];
        let fields = core::array::from_fn(|_| vec![0.0; extents.iter().product()]);
        Vectors { extents, fields }
    }

    /// Returns the cells of the block without its shadow.
    pub fn block(&self) -> Section {
        let [layers, columns, rows] = self.extents;
        let extents = vec![layers, columns - 2 * SHADOW, rows - 2 * SHADOW];
        Section { starts: vec![0, SHADOW, SHADOW], extents }
    }

    /// Returns a column of a field, counted from the shadow's beginning.
    pub fn column(&self, field: usize, i: usize, j: usize) -> &[f64] {
        let start = self.start(i, j);
        &self.fields[field][start..start + self.extents[0]]
    }

    /// Returns a column of each field for writing.
    pub fn columns_mut(&mut self, i: usize, j: usize) -> [&mut [f64]; FIELDS] {
        let (start, layers) = (self.start(i, j), self.extents[0]);
        self.fields.each_mut().map(|field| &mut field[start..start + layers])
    }

    fn start(&self, i: usize, j: usize) -> usize {
        (j * self.extents[1] + i) * self.extents[0]
    }

    /// Copies the opposite end of the block into the shadow, in both horizontal directions.
    pub fn wrap(&mut self) {
        let [_, columns, rows] = self.extents;
        let other = |at: usize, all: usize| {
            let inside = all - 2 * SHADOW;
            (at + inside * SHADOW - SHADOW) % inside + SHADOW
        };
        for j in 0..rows {
            for i in 0..columns {
                let (from, to) = (self.start(other(i, columns), other(j, rows)), self.start(i, j));
                if from != to {
                    self.fields.iter_mut().for_each(|field| field.copy_within(from..from + self.extents[0], to));
                }
            }
        }
    }

    /// Computes a stage for a section, as [`compute`](super::compute) does.
    pub fn compute(
        &mut self,
        atmosphere: &Atmosphere,
        from: &Vectors,
        base: Option<&Vectors>,
        section: &Section,
        time: f64,
        work: &mut Work,
    ) {
        let (starts, extents) = (&section.starts, &section.extents);
        let [first_i, first_j] = [starts[1] - SHADOW, starts[2] - SHADOW];
        let columns: [Columns<'_>; FIELDS] = core::array::from_fn(|field| {
            let (width, height) = (extents[1] + 2 * SHADOW, extents[2] + 2 * SHADOW);
            let all = (first_j..first_j + height).flat_map(|j| (first_i..first_i + width).map(move |i| (i, j)));
            Columns::new(width, all.map(|(i, j)| from.column(field, i, j)))
        });
        for j in 0..extents[2] {
            for i in 0..extents[1] {
                let (at_i, at_j) = (starts[1] + i, starts[2] + j);
                let mut out = self.columns_mut(at_i, at_j);
                if let Some(base) = base {
                    for (field, out) in out.iter_mut().enumerate() {
                        out.copy_from_slice(base.column(field, at_i, at_j));
                    }
                }
                atmosphere.advance(&columns, [i, j], time, work, out);
            }
        }
    }
}

/// The whole grid, computed by one loop.
#[derive(Clone, Debug)]
pub struct Alone {
    atmosphere: Atmosphere,
    states: [Vectors; STATES],
    work: Work,
}

impl Alone {
    /// Creates the grid in its initial state.
    pub fn new(atmosphere: &Atmosphere) -> Self {
        let [layers, columns, rows] = atmosphere.cells();
        let mut states: [Vectors; STATES] = core::array::from_fn(|_| Vectors::new(atmosphere.cells()));
        for j in 0..rows {
            for i in 0..columns {
                let mut out = states[0].columns_mut(i + SHADOW, j + SHADOW);
                for layer in 0..layers {
                    let first = atmosphere.first([layer, i, j]);
                    out.iter_mut().zip(first).for_each(|(out, first)| out[layer] = first);
                }
            }
        }
        Alone { atmosphere: atmosphere.clone(), states, work: Work::new(atmosphere) }
    }

    /// Computes one step.
    pub fn step(&mut self) {
        let block = self.states[0].block();
        for stage in STAGES {
            self.states[stage.from].wrap();
            let mut to = core::mem::take(&mut self.states[stage.to]);
            let base = Some(&self.states[0]).filter(|_| stage.to != 0);
            let time = stage.share * Atmosphere::STEP;
            to.compute(&self.atmosphere, &self.states[stage.from], base, &block, time, &mut self.work);
            self.states[stage.to] = to;
        }
    }

    /// Returns a column of a field, counted without shadow.
    pub fn column(&self, field: usize, i: usize, j: usize) -> &[f64] {
        self.states[0].column(field, i + SHADOW, j + SHADOW)
    }
}
