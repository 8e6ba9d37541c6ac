//! Shapes: the elements of memory that belong to a matrix.
//!
//! Any numbers form a shape. Sizes that do not fit into `usize` saturate at `usize::MAX`, which
//! exceeds any memory.

#![deny(clippy::arithmetic_side_effects)]

use crate::{BlacsError, Result};
use core::{iter::FusedIterator, ops::Range};

/// The maximum number of bytes of memory.
pub(crate) const MOST: usize = isize::MAX as usize;

/// The triangle of which a trapezoid is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uplo {
    /// The upper triangle.
    Upper,
    /// The lower triangle.
    Lower,
}

impl Uplo {
    /// Returns the upper triangle for `u` and `U`, and the lower one for all other letters.
    pub const fn from_letter(letter: u8) -> Self {
        match letter.to_ascii_lowercase() {
            b'u' => Uplo::Upper,
            _ => Uplo::Lower,
        }
    }
}

/// Whether a trapezoid has a diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Diag {
    /// The diagonal is included: it is also sent.
    NonUnit,
    /// The diagonal is excluded: it is neither sent nor written.
    Unit,
}

impl Diag {
    /// Returns a unit diagonal for `u` and `U`, and a non-unit one for all other letters.
    pub const fn from_letter(letter: u8) -> Self {
        match letter.to_ascii_lowercase() {
            b'u' => Diag::Unit,
            _ => Diag::NonUnit,
        }
    }
}

/// A part of a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The whole rectangle.
    General,
    /// A triangle, together with the rectangle beside it if there are more columns than rows, or with
    /// the rectangle above or below it if there are more rows.
    Trapezoid {
        /// The triangle.
        uplo: Uplo,
        /// Whether the diagonal is included.
        diag: Diag,
    },
}

/// The elements of memory that belong to a matrix, in column-major order, relative to its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    rows: usize,
    columns: usize,
    /// At least `rows`, and at least 1.
    leading: usize,
    part: Part,
}

impl Shape {
    /// Returns a rectangle whose columns are `leading` elements apart, or `rows` if that is
    /// greater.
    pub const fn general(rows: usize, columns: usize, leading: usize) -> Self {
        let least = if rows > 1 { rows } else { 1 };
        let leading = if leading > least { leading } else { least };
        Shape { rows, columns, leading, part: Part::General }
    }

    /// Returns a trapezoid of such a rectangle.
    pub const fn trapezoid(uplo: Uplo, diag: Diag, rows: usize, columns: usize, leading: usize) -> Self {
        Shape { part: Part::Trapezoid { uplo, diag }, ..Shape::general(rows, columns, leading) }
    }

    /// Returns the same rectangle with another part.
    pub(crate) const fn with(self, part: Part) -> Self {
        Shape { part, ..self }
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of elements between the starts of consecutive columns.
    pub const fn leading(&self) -> usize {
        self.leading
    }

    /// Returns the part of the rectangle that belongs to the shape.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// Returns whether the elements, if there are any, are contiguous from the first one on: whether
    /// the shape is a rectangle of one column, or one without gaps between its columns.
    #[inline]
    pub fn is_one_run(&self) -> bool {
        self.part == Part::General && (self.columns <= 1 || self.leading == self.rows || self.rows == 0)
    }

    /// Returns the number of elements of the shape.
    pub fn elements(&self) -> usize {
        let less = self.rows.min(self.columns);
        match self.part {
            Part::General => self.rows.saturating_mul(self.columns),
            Part::Trapezoid { diag, .. } => {
                let beside = less.saturating_mul(self.rows.abs_diff(self.columns));
                // Half of the product of two consecutive numbers, one of which is even.
                let beyond = match diag {
                    Diag::NonUnit => less.saturating_add(1),
                    Diag::Unit => less.saturating_sub(1),
                };
                let triangle = if less.is_multiple_of(2) {
                    (less >> 1).saturating_mul(beyond)
                } else {
                    less.saturating_mul(beyond >> 1)
                };
                beside.saturating_add(triangle)
            }
        }
    }

    /// Returns the length of the shape's message, for elements of `size` bytes.
    pub(crate) fn bytes(&self, size: usize) -> usize {
        self.elements().saturating_mul(size)
    }

    /// Checks that memory can hold the shape, for elements of `size` bytes.
    pub(crate) fn fits(&self, size: usize) -> Result<()> {
        let (needed, elements) = (self.extent(), MOST.checked_div(size).unwrap_or(MOST));
        if needed <= elements { Ok(()) } else { Err(BlacsError::TooShort { needed, elements }) }
    }

    /// Returns the rows of a column that belong to the shape.
    fn column(&self, column: usize) -> Range<usize> {
        let (rows, columns) = (self.rows, self.columns);
        match self.part {
            Part::General => 0..rows,
            Part::Trapezoid { uplo: Uplo::Upper, diag } => {
                // Down to the diagonal, which ends in the last row if there are more rows than
                // columns.
                let diagonal = column.saturating_add(rows.saturating_sub(columns));
                0..rows.min(diagonal.saturating_add(usize::from(diag == Diag::NonUnit)))
            }
            Part::Trapezoid { uplo: Uplo::Lower, diag } => {
                // From the diagonal on, which begins after the excess columns if there are more
                // columns than rows.
                match column.checked_sub(columns.saturating_sub(rows)) {
                    Some(diagonal) => rows.min(diagonal.saturating_add(usize::from(diag == Diag::Unit)))..rows,
                    None => 0..rows,
                }
            }
        }
    }

    /// Returns the maximal runs of contiguous elements, none of them empty: a single run for a
    /// rectangle with contiguous columns.
    pub fn runs(&self) -> Runs {
        Runs { shape: *self, next: 0 }
    }

    /// Returns the number of elements from the first one of the rectangle to the last one of the
    /// shape, inclusive.
    pub fn extent(&self) -> usize {
        let columns = if self.rows == 0 { 0 } else { self.columns };
        let last = (0..columns).rev().find(|column| !self.column(*column).is_empty());
        last.map_or(0, |last| last.saturating_mul(self.leading).saturating_add(self.column(last).end))
    }

    /// Returns row and column of each element, in message order.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let shape = *self;
        (0..shape.columns).flat_map(move |column| shape.column(column).map(move |row| (row, column)))
    }

    /// Returns the range of a column's elements in memory.
    fn elements_of(&self, column: usize) -> Range<usize> {
        let Range { start, end } = self.column(column);
        let first = column.saturating_mul(self.leading);
        first.saturating_add(start)..first.saturating_add(end)
    }
}

/// The runs of a [`Shape`].
#[derive(Clone, Debug)]
pub struct Runs {
    shape: Shape,
    /// The first column that is not yet part of a run.
    next: usize,
}

impl Iterator for Runs {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let Shape { rows, columns, leading, part } = self.shape;
        if part == Part::General && (leading == rows || rows == 0) {
            let all = self.next.saturating_mul(rows)..columns.saturating_mul(rows);
            self.next = columns;
            return (!all.is_empty()).then_some(all);
        }
        let mut run = 0..0;
        while self.next < columns {
            let more = self.shape.elements_of(self.next);
            if run.is_empty() {
                run = more;
            } else if more.start == run.end {
                run.end = more.end;
            } else if !more.is_empty() {
                break;
            }
            self.next = self.next.saturating_add(1);
        }
        (!run.is_empty()).then_some(run)
    }
}

impl FusedIterator for Runs {}
