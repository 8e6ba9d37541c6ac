//! Maps from grid coordinates to processes.

#![deny(clippy::arithmetic_side_effects)]

use crate::{BlacsError, Result};
use std::collections::BTreeMap;

/// The order in which processes are assigned to the positions of a grid, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Along the first row, then along the second one.
    #[default]
    RowMajor,
    /// Down the first column, then down the second one.
    ColumnMajor,
}

impl Order {
    /// Returns column-major order for `c` and `C`, and row-major order for all other letters.
    pub const fn from_letter(letter: u8) -> Self {
        match letter.to_ascii_lowercase() {
            b'c' => Order::ColumnMajor,
            _ => Order::RowMajor,
        }
    }
}

/// An assignment of processes to the positions of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridMap {
    rows: usize,
    columns: usize,
    /// Process numbers, row by row, without duplicates.
    numbers: Box<[usize]>,
}

/// The maximum number of processes of a job, whose ranks are 32-bit numbers.
const MOST: usize = u32::MAX as usize;

/// Returns the index of (row, column) among rows of `columns` positions; a map has at most [`MOST`]
/// positions.
fn place(row: usize, column: usize, columns: usize) -> usize {
    row.saturating_mul(columns).saturating_add(column)
}

impl GridMap {
    /// Creates a map with process `number(row, column)` at (row, column).
    ///
    /// # Errors
    /// [`BlacsError::BadExtent`], [`BlacsError::DuplicateProcess`]; [`BlacsError::TooFewProcesses`] if
    /// no job can have this number of processes.
    pub fn new(rows: usize, columns: usize, mut number: impl FnMut(usize, usize) -> usize) -> Result<Self> {
        let count = match rows.checked_mul(columns) {
            Some(0) => return Err(BlacsError::BadExtent { rows, columns }),
            Some(count) if count <= MOST => count,
            _ => return Err(BlacsError::TooFewProcesses { rows, columns, processes: MOST }),
        };
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let mut known = BTreeMap::new();
        for (row, column) in places.clone() {
            let number = number(row, column);
            if let Some(first) = known.insert(number, (row, column)) {
                return Err(BlacsError::DuplicateProcess { number, first, second: (row, column) });
            }
        }
        let mut numbers = vec![0; count].into_boxed_slice();
        known.into_iter().for_each(|(number, (row, column))| numbers[place(row, column, columns)] = number);
        Ok(GridMap { rows, columns, numbers })
    }

    /// Creates the map of the first `rows` x `columns` of `processes` processes, in an order.
    pub(crate) fn in_order(order: Order, rows: usize, columns: usize, processes: usize) -> Result<Self> {
        if rows == 0 || columns == 0 {
            return Err(BlacsError::BadExtent { rows, columns });
        }
        if rows.checked_mul(columns).is_none_or(|places| places > processes) {
            return Err(BlacsError::TooFewProcesses { rows, columns, processes });
        }
        GridMap::new(rows, columns, |row, column| match order {
            Order::RowMajor => place(row, column, columns),
            Order::ColumnMajor => place(column, row, rows),
        })
    }

    /// Checks that all numbers of the map are less than `processes`.
    pub(crate) fn checked(&self, processes: usize) -> Result<()> {
        let GridMap { rows, columns, ref numbers } = *self;
        if let Some(number) = numbers.iter().copied().find(|number| *number >= processes) {
            return Err(BlacsError::NoSuchProcess { number, processes });
        }
        if numbers.len() > processes {
            return Err(BlacsError::TooFewProcesses { rows, columns, processes });
        }
        Ok(())
    }

    /// Returns a hash of the map (FNV-1a), which is assumed to differ for different maps.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(None)
    }

    /// Returns a hash of a row or column of the map, which differs from those of the others.
    pub(crate) fn hash_of_line(&self, line: usize) -> u64 {
        self.hash_with(Some(line))
    }

    fn hash_with(&self, line: Option<usize>) -> u64 {
        let words = [self.rows, self.columns].into_iter().chain(self.numbers.iter().copied()).chain(line);
        words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| {
            (word as u64)
                .to_le_bytes()
                .iter()
                .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
        })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of the process at (row, column); `None` outside the grid.
    pub fn number(&self, row: usize, column: usize) -> Option<usize> {
        (row < self.rows && column < self.columns).then(|| self.numbers[place(row, column, self.columns)])
    }

    /// Returns row and column of a process; `None` if it is not in the map.
    pub fn coordinates(&self, number: usize) -> Option<(usize, usize)> {
        let place = self.numbers.iter().position(|there| *there == number)?;
        Some((place.checked_div(self.columns)?, place.checked_rem(self.columns)?))
    }
}
