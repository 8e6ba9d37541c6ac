//! The width of the cells in which the bytes of a buffer are accessed.
//!
//! Where memory that other ranks may access is accessed through atomics (Miri, processors without
//! the copy routines), all accesses to a region have the same width: that of the buffer's elements,
//! for the program's own accesses and for those of the protocol.

use crate::layout::Runs;
use core::marker::PhantomData;
use rdma_fabric::{Fabric, Pod, Region, Result};

/// Bytes of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    One,
    Two,
    Four,
    Eight,
}

impl Width {
    /// Returns the cell width of a buffer of `T`.
    pub(crate) const fn of<T>() -> Self {
        match size_of::<T>() {
            2 => Width::Two,
            4 => Width::Four,
            size if size > 0 && size.is_multiple_of(8) && align_of::<T>() == 8 => Width::Eight,
            _ => Width::One,
        }
    }

    /// Returns the width of this many bytes; one byte for numbers that are not a width.
    pub(crate) const fn of_bytes(bytes: u64) -> Self {
        match bytes {
            2 => Width::Two,
            4 => Width::Four,
            8 => Width::Eight,
            _ => Width::One,
        }
    }

    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
            Width::Eight => 8,
        }
    }
}

/// Runs a block with the integer type of a width.
macro_rules! with_width {
    ($width:expr, $word:ident => $body:expr) => {
        match $width {
            $crate::buffer::Width::One => {
                type $word = u8;
                $body
            }
            $crate::buffer::Width::Two => {
                type $word = u16;
                $body
            }
            $crate::buffer::Width::Four => {
                type $word = u32;
                $body
            }
            $crate::buffer::Width::Eight => {
                type $word = u64;
                $body
            }
        }
    };
}
pub(crate) use with_width;

/// Accesses in cells of one type.
pub(crate) struct Cells<W>(PhantomData<W>);

impl<W: Pod> Cells<W> {
    /// Appends the bytes of runs to `out`. The offset and the length of each run are multiples of
    /// the width.
    pub(crate) fn gather(fabric: &Fabric, region: &Region, runs: Runs, out: &mut Vec<u8>) -> Result<()> {
        for (offset, len) in runs {
            let start = out.len();
            out.resize(start + len as usize, 0);
            Self::read(fabric, region, offset, &mut out[start..])?;
        }
        Ok(())
    }

    /// Copies the bytes of runs to `into`, which has their total length.
    pub(crate) fn gather_into(fabric: &Fabric, region: &Region, runs: Runs, into: &mut [u8]) -> Result<()> {
        let mut rest = into;
        for (offset, len) in runs {
            let (run, after) = rest.split_at_mut(len as usize);
            Self::read(fabric, region, offset, run)?;
            rest = after;
        }
        Ok(())
    }

    /// Reads a run, without another copy where `into` is aligned for cells.
    fn read(fabric: &Fabric, region: &Region, offset: u64, into: &mut [u8]) -> Result<()> {
        let span = region.span::<W>(fabric, offset as usize, into.len() / size_of::<W>())?;
        if let Ok(cells) = bytemuck::try_cast_slice_mut(into) {
            return fabric.read(&span, cells);
        }
        let mut cells = vec![W::zeroed(); span.len()];
        fabric.read(&span, &mut cells)?;
        into.copy_from_slice(bytemuck::cast_slice(&cells));
        Ok(())
    }

    /// Writes `bytes` to the runs, which have the same total length.
    pub(crate) fn scatter(fabric: &Fabric, region: &Region, runs: Runs, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for (offset, len) in runs {
            let (run, after) = rest.split_at(len as usize);
            let span = region.span::<W>(fabric, offset as usize, run.len() / size_of::<W>())?;
            match bytemuck::try_cast_slice(run) {
                Ok(cells) => fabric.write(&span, cells)?,
                Err(_) => {
                    let mut cells = vec![W::zeroed(); span.len()];
                    bytemuck::cast_slice_mut(&mut cells).copy_from_slice(run);
                    fabric.write(&span, &cells)?;
                }
            }
            rest = after;
        }
        Ok(())
    }
}
