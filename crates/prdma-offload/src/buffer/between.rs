//! Copies between two buffers of a rank, from one layout to another.

use super::{Memory, width::with_width};
use crate::{
    Result,
    layout::{Layout, Runs},
};
use core::ops::Range;
use rdma_fabric::{Fabric, LocalSpan, Pod};

/// Bytes that are copied at a time: few enough to stay in the first-level cache between the two
/// memories.
const CHUNK: usize = 4096;

/// Copies the bytes of one layout to those of another, which has the same number of bytes. Does not
/// allocate if the cells of both have the same width, which is the usual case.
///
/// # Errors
/// Those of the fabric; the content of the destination is then unspecified.
pub(crate) fn copy((source, taken): (&Memory, &Layout), (sink, given): (&Memory, &Layout)) -> Result<()> {
    copy_runs((source, taken, taken.runs()), (sink, given, given.runs()))
}

/// Copies as [`copy`] does, some runs of one layout to some of another, with the same number of
/// bytes.
///
/// # Errors
/// As [`copy`].
#[inline(never)]
pub(crate) fn copy_runs(from: (&Memory, &Layout, Runs), to: (&Memory, &Layout, Runs)) -> Result<()> {
    let ((source, taken, _), (sink, given, _)) = (&from, &to);
    if taken.bytes() == 0 || given.bytes() == 0 {
        return Ok(());
    }
    if source.width() != sink.width() {
        let mut bytes = Vec::new();
        source.gather(from.2, &mut bytes)?;
        return sink.scatter(to.2, &bytes);
    }
    let (fabric, width) = (&source.allocation.fabric, source.width());
    with_width!(width, W => copy_cells(fabric, Side::<W>::new(from)?, Side::<W>::new(to)?))
}

fn copy_cells<W: Pod>(fabric: &Fabric, mut source: Side<W>, mut sink: Side<W>) -> Result<()> {
    let mut chunk = [0u64; CHUNK / 8];
    let cells: &mut [W] = bytemuck::cast_slice_mut(&mut chunk);
    loop {
        let mut filled = 0;
        while filled < cells.len()
            && let Some(run) = source.next(cells.len() - filled)
        {
            let end = filled + run.len();
            fabric.read(&*source.span.part(run)?, &mut cells[filled..end])?;
            filled = end;
        }
        if filled == 0 {
            return Ok(());
        }
        let mut done = 0;
        while done < filled
            && let Some(run) = sink.next(filled - done)
        {
            let end = done + run.len();
            fabric.write(&*sink.span.part(run)?, &cells[done..end])?;
            done = end;
        }
    }
}

/// One end of a copy, in cells.
struct Side<W: Pod> {
    /// From the first byte of the layout to the last one.
    span: LocalSpan<W>,
    /// The offset of the span in the memory, in bytes.
    start: u64,
    runs: Runs,
    /// The rest of the current run.
    run: Range<usize>,
}

impl<W: Pod> Side<W> {
    fn new((memory, layout, runs): (&Memory, &Layout, Runs)) -> Result<Self> {
        let (start, end) = (layout.offset, layout.end());
        let (allocation, cells) = (&memory.allocation, (end - start) as usize / size_of::<W>());
        let span = allocation.region().span(&allocation.fabric, start as usize, cells)?;
        Ok(Side { span, start, runs, run: 0..0 })
    }

    /// Returns the next contiguous cells, at most `most`.
    fn next(&mut self, most: usize) -> Option<Range<usize>> {
        if self.run.is_empty() {
            let (offset, len) = self.runs.next()?;
            let first = (offset - self.start) as usize / size_of::<W>();
            self.run = first..first + len as usize / size_of::<W>();
        }
        let end = self.run.end.min(self.run.start + most);
        let next = self.run.start..end;
        self.run.start = end;
        Some(next)
    }
}
