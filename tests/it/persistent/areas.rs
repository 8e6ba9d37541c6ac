//! Blocks of bytes, as a layout and as a list of the bytes in it.

use onesided::prdma::{Layout, LayoutError};

/// The bytes reserved for each slot.
pub(super) const ROOM: usize = 2048;

/// A block of a buffer, described twice.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub(super) layout: Layout,
    /// Its bytes in the order in which they are sent.
    pub(super) bytes: Vec<usize>,
}

/// The shape of blocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// One run each.
    Contiguous,
    /// Columns of one matrix.
    Column,
    /// One face of a cube each.
    Face,
    /// Random blocks, drawn from this seed; blocks that are sent may overlap.
    Drawn(u64),
}

/// Returns a number that depends on all arguments.
pub(super) fn draw(seed: u64, a: usize, b: usize) -> u64 {
    let mut x = seed ^ (a as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Cut {
    /// Returns the block of `slot` among `slots`: `bytes` bytes, none of them before `base`. Blocks
    /// that are received share no bytes.
    pub(super) fn area(
        self,
        base: usize,
        slot: usize,
        slots: usize,
        bytes: usize,
        sent: bool,
    ) -> Result<Area, LayoutError> {
        if bytes == 0 {
            return Ok(Area { layout: Layout::nothing(), bytes: Vec::new() });
        }
        let start = base + slot * ROOM;
        match self {
            Cut::Contiguous => {
                let layout = Layout::contiguous::<u8>(start, bytes)?;
                Ok(Area { layout, bytes: (start..start + bytes).collect() })
            }
            Cut::Column => {
                let block = if bytes.is_multiple_of(4) { 4 } else { 1 };
                let (start, stride, count) = (base + slot * block, (slots + 1) * block, bytes / block);
                let layout = Layout::vector::<u8>(start, count, block, stride)?;
                let row = |row: usize| start + row * stride..start + row * stride + block;
                Ok(Area { layout, bytes: (0..count).flat_map(row).collect() })
            }
            Cut::Face => {
                // The buffer is a box of planes of three lines; the block is the last line of some
                // planes, without its first byte.
                let (deep, wide) = if bytes.is_multiple_of(4) { (4, bytes / 4) } else { (1, bytes) };
                let line = wide + 1;
                let plane = start.div_ceil(3 * line);
                let (sizes, starts) = ([plane + deep, 3, line], [plane, 2, 1]);
                let layout = Layout::subarray::<u8>(&sizes, &[deep, 1, wide], &starts)?;
                let line = |at: usize| {
                    let first = ((plane + at) * 3 + 2) * line + 1;
                    first..first + wide
                };
                Ok(Area { layout, bytes: (0..deep).flat_map(line).collect() })
            }
            Cut::Drawn(seed) => drawn(seed, base, slot, bytes, sent),
        }
    }
}

/// Draws a block of runs in two nested loops.
fn drawn(seed: u64, base: usize, slot: usize, bytes: usize, sent: bool) -> Result<Area, LayoutError> {
    let draw = |number: usize, below: usize| draw(seed, slot, number) as usize % below;
    let divides = |whole: usize| -> Vec<usize> { (1..=whole).filter(|part| whole.is_multiple_of(*part)).collect() };
    let one_of = |parts: Vec<usize>, number: usize| parts[draw(number, parts.len())];
    let run = one_of(divides(bytes), 1);
    let inner = one_of(divides(bytes / run), 2);
    let outer = bytes / run / inner;
    // The gaps between the runs take at most the remaining room.
    let gap = |room: usize, number: usize| draw(number, room.min(64) + 1);
    let free = ROOM - bytes;
    let step = run + gap(free / bytes.max(1), 3);
    let wide = step * inner;
    let stride = wide + gap((ROOM - wide * outer) / outer, 4);
    // Several slots may send the same bytes.
    let base = if sent && draw(5, 3) == 0 { base } else { base + slot * ROOM };
    let layout =
        Layout::strided(base as u64, run as u64, &[(outer as u64, stride as u64), (inner as u64, step as u64)])?;
    let mut all = Vec::with_capacity(bytes);
    for loops in 0..outer * inner {
        let start = base + loops / inner * stride + loops % inner * step;
        all.extend(start..start + run);
    }
    Ok(Area { layout, bytes: all })
}
