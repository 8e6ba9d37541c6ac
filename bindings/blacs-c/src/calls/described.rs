//! Matrix descriptions from callers, and their checks.
//!
//! The checks are those of the reference implementation built for debugging (`BI_ArgCheck`), except
//! for `LDA`: where the reference warns and accesses `M` x `N` elements, which may be more than the
//! caller's array has, this library ends the job.

use crate::{
    boundary::Call,
    error::{CallError, Result},
    int::{Int, extent},
    library::Library,
};
use blacs::{Diag, Shape, Uplo};

/// A matrix as a caller describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described {
    rows: Int,
    columns: Int,
    leading: Int,
    /// The letters `UPLO` and `DIAG` of a trapezoid.
    trapezoid: Option<(u8, u8)>,
}

impl Described {
    pub(crate) fn rectangle(rows: Int, columns: Int, leading: Int) -> Self {
        Described { rows, columns, leading, trapezoid: None }
    }

    pub(crate) fn trapezoid(uplo: u8, diag: u8, rows: Int, columns: Int, leading: Int) -> Self {
        Described { trapezoid: Some((uplo, diag)), ..Described::rectangle(rows, columns, leading) }
    }

    /// Returns the number of rows, as the caller passed it.
    pub(crate) fn rows(self) -> Int {
        self.rows
    }

    /// Checks the description, warns about suspicious values, and returns the shape. Without rows
    /// or without columns, no other value matters.
    ///
    /// # Errors
    /// [`CallError::NegativeExtent`], [`CallError::ShortColumns`].
    #[inline]
    pub(crate) fn shape(self, call: Call, library: &Library) -> Result<Shape> {
        let Described { rows, columns, leading, trapezoid } = self;
        let shape = Shape::general(extent(rows), extent(columns), extent(leading));
        if rows < 1 || columns < 1 || leading < rows {
            self.check_extents(call, library)?;
        }
        let Some((uplo, diag)) = trapezoid else { return Ok(shape) };
        if !uplo.eq_ignore_ascii_case(&b'u') && !uplo.eq_ignore_ascii_case(&b'l') {
            let uplo = char::from(uplo);
            call.warn(library, format_args!("UPLO is '{uplo}', but must be one of u, l: l is assumed"));
        }
        if !diag.eq_ignore_ascii_case(&b'u') && !diag.eq_ignore_ascii_case(&b'n') {
            let diag = char::from(diag);
            call.warn(library, format_args!("DIAG is '{diag}', but must be one of u, n: n is assumed"));
        }
        let (uplo, diag) = (Uplo::from_letter(uplo), Diag::from_letter(diag));
        Ok(Shape::trapezoid(uplo, diag, extent(rows), extent(columns), extent(leading)))
    }

    #[cold]
    fn check_extents(self, call: Call, library: &Library) -> Result<()> {
        let Described { rows, columns, leading, .. } = self;
        if rows == 0 || columns == 0 {
            return Ok(());
        }
        for (name, extent) in [("M", rows), ("N", columns)] {
            if extent < 0 {
                return Err(CallError::NegativeExtent { name, extent });
            }
        }
        if columns > 1 {
            return Err(CallError::ShortColumns { leading, rows });
        }
        // ScaLAPACK's PZLATTRS combines a column with LDA = 1.
        call.warn(
            library,
            format_args!("LDA is {leading}, less than M = {rows}: {rows} is assumed for the one column"),
        );
        Ok(())
    }
}
