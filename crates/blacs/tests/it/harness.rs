//! The fabrics that a test runs over, and matrices with guard cells.

use blacs::{Diag, Element, Matrix, MatrixMut, Part, Scope, Shape, Topology, Uplo};
use checks::watchdog::watch_test;
use rdma_fabric::Program;
use std::{fmt::Debug, num::NonZeroU8, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Runs a program on threads and in virtual time, where operations may take up to 30 µs longer than
/// necessary and simultaneous events occur in any order; returns its results, which must be the same
/// in both runs.
#[track_caller]
pub(crate) fn everywhere<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + Debug,
{
    watch_test();
    let real = Threads::new(ranks).run(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    let job = Job::new(&Platform::fx100(), ranks).jitter(Duration::from_micros(30)).shuffle_ties(true);
    let outs = job.run(program).unwrap_or_else(|error| panic!("in virtual time: {error}")).outs;
    assert_eq!(real, outs, "threads and virtual time differ");
    real
}

/// Element types whose test values are derived from small integers.
pub(crate) trait Number: Element + PartialEq + Debug {
    /// Returns the element for a number; elements for different numbers below 2^24 differ, and are
    /// exact in each precision.
    fn of(number: i32) -> Self;
}

impl Number for i32 {
    fn of(number: i32) -> Self {
        number
    }
}

impl Number for i64 {
    fn of(number: i32) -> Self {
        i64::from(number) << 20
    }
}

impl Number for f32 {
    fn of(number: i32) -> Self {
        number as f32
    }
}

impl Number for f64 {
    fn of(number: i32) -> Self {
        f64::from(number) / 1024.0
    }
}

impl Number for [f32; 2] {
    fn of(number: i32) -> Self {
        [number as f32, -(number as f32) / 2.0]
    }
}

impl Number for [f64; 2] {
    fn of(number: i32) -> Self {
        [f64::from(number), f64::from(number) / -4.0]
    }
}

/// The value of the cells before, between and after the columns of a matrix.
const GUARD: i32 = -9999;
/// The number of guard cells before and after the matrix.
const MARGIN: usize = 3;

/// A matrix in memory, with guard cells that must not change.
pub(crate) struct Guarded<T> {
    cells: Vec<T>,
    shape: Shape,
}

impl<T: Number> Guarded<T> {
    /// Creates a matrix whose element (i, j) is `number(i, j)`.
    pub(crate) fn new(shape: Shape, number: impl Fn(usize, usize) -> i32) -> Self {
        let cells = vec![T::of(GUARD); MARGIN + shape.leading() * shape.columns() + MARGIN];
        let mut made = Guarded { cells, shape };
        for (i, j) in places(&shape) {
            made.cells[MARGIN + j * shape.leading() + i] = T::of(number(i, j));
        }
        made
    }

    /// Creates a matrix to be received into.
    pub(crate) fn empty(shape: Shape) -> Self {
        Guarded::new(shape, |_, _| GUARD)
    }

    pub(crate) fn get(&self) -> Matrix<'_, T> {
        let a = Matrix::new(&self.cells[MARGIN..], self.shape.rows(), self.shape.columns(), self.shape.leading());
        let a = a.expect("a matrix that fits");
        match self.shape.part() {
            Part::General => a,
            Part::Trapezoid { uplo: Uplo::Upper, diag } => a.upper(diag),
            Part::Trapezoid { uplo: Uplo::Lower, diag } => a.lower(diag),
        }
    }

    pub(crate) fn get_mut(&mut self) -> MatrixMut<'_, T> {
        let cells = &mut self.cells[MARGIN..];
        let a = MatrixMut::new(cells, self.shape.rows(), self.shape.columns(), self.shape.leading());
        let a = a.expect("a matrix that fits");
        match self.shape.part() {
            Part::General => a,
            Part::Trapezoid { uplo: Uplo::Upper, diag } => a.upper(diag),
            Part::Trapezoid { uplo: Uplo::Lower, diag } => a.lower(diag),
        }
    }

    /// Checks all elements and all guard cells.
    #[track_caller]
    pub(crate) fn check(&self, number: impl Fn(usize, usize) -> i32, what: impl Debug) {
        let expected = Guarded::<T>::new(self.shape, number);
        for (at, (found, expected)) in self.cells.iter().zip(&expected.cells).enumerate() {
            assert!(found == expected, "{what:?}, {:?}: cell {at} is {found:?}, not {expected:?}", self.shape);
        }
    }
}

/// Returns the positions of a shape, as the standard defines them: for each column, the rows from the
/// top or the bottom.
pub(crate) fn places(shape: &Shape) -> Vec<(usize, usize)> {
    let (m, n) = (shape.rows() as isize, shape.columns() as isize);
    let belongs = |i: isize, j: isize| match shape.part() {
        Part::General => true,
        Part::Trapezoid { uplo, diag } => {
            // The diagonal of an upper trapezoid ends in the last row; that of a lower one begins in
            // the first row, after the excess columns.
            let beyond = match uplo {
                Uplo::Upper => i - j - (m - n).max(0),
                Uplo::Lower => j - i - (n - m).max(0),
            };
            beyond < 0 || beyond == 0 && diag == Diag::NonUnit
        }
    };
    let all = (0..n).flat_map(|j| (0..m).map(move |i| (i, j)));
    all.filter(|(i, j)| belongs(*i, *j)).map(|(i, j)| (i as usize, j as usize)).collect()
}

/// Returns shapes of all kinds: empty, small, with gaps, and longer than the scratch buffer.
pub(crate) fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (rows, columns) in [(0, 3), (3, 0), (1, 1), (4, 1), (1, 6), (5, 3), (3, 7), (4, 4)] {
        shapes.push(Shape::general(rows, columns, rows));
        shapes.push(Shape::general(rows, columns, rows + 2));
        for uplo in [Uplo::Upper, Uplo::Lower] {
            for diag in [Diag::NonUnit, Diag::Unit] {
                let leading = rows + columns % 3;
                shapes.push(Shape::trapezoid(uplo, diag, rows, columns, leading));
            }
        }
    }
    shapes
}

/// Returns shapes whose messages consist of several pieces.
pub(crate) fn large_shapes() -> [Shape; 4] {
    [
        Shape::general(3000, 2, 3001),
        Shape::general(3, 2000, 5),
        Shape::general(5000, 1, 5000),
        Shape::trapezoid(Uplo::Lower, Diag::Unit, 150, 140, 150),
    ]
}

pub(crate) const SCOPES: [Scope; 3] = [Scope::Row, Scope::Column, Scope::All];

/// Returns all topologies.
pub(crate) fn topologies() -> Vec<Topology> {
    let letters = b" idsm123456789tfh";
    let all = letters.iter().map(|letter| Topology::from_letter(*letter).expect("a topology"));
    assert!(all.clone().any(|topology| topology == Topology::Tree(NonZeroU8::MIN)));
    all.collect()
}
