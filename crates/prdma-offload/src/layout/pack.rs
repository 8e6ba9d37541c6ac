//! Gathering a layout's bytes in one place, and spreading them.

use super::{Layout, LayoutError};

impl Layout {
    /// Append the layout's bytes of the buffer `from` to `out`, in order (`MPI_Pack`).
    ///
    /// # Errors
    /// [`LayoutError::OutsideBuffer`]; `out` is as it was then.
    pub fn pack(&self, from: &[u8], out: &mut Vec<u8>) -> Result<(), LayoutError> {
        self.check_inside(from.len())?;
        out.reserve(self.bytes() as usize);
        for (offset, len) in self.runs() {
            out.extend_from_slice(&from[offset as usize..][..len as usize]);
        }
        Ok(())
    }

    /// Copy `packed`, which has just the layout's bytes, to their places in the buffer `at` (`MPI_Unpack`).
    ///
    /// # Errors
    /// [`LayoutError::OutsideBuffer`], [`LayoutError::Lengths`]; `at` is as it was then.
    pub fn unpack(&self, packed: &[u8], at: &mut [u8]) -> Result<(), LayoutError> {
        self.check_inside(at.len())?;
        if packed.len() as u64 != self.bytes() {
            return Err(LayoutError::Lengths { from: packed.len() as u64, at: self.bytes() });
        }
        let mut rest = packed;
        for (offset, len) in self.runs() {
            let (run, after) = rest.split_at(len as usize);
            at[offset as usize..][..run.len()].copy_from_slice(run);
            rest = after;
        }
        Ok(())
    }

    fn check_inside(&self, len: usize) -> Result<(), LayoutError> {
        let len = len as u64;
        if self.inside(len) { Ok(()) } else { Err(LayoutError::OutsideBuffer { end: self.end(), len }) }
    }
}
