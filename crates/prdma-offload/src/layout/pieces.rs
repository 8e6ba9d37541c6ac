//! Moving the bytes of one layout to those of another with few commands.
//!
//! A command of a network interface moves blocks of the same length at a constant distance, equal
//! on both sides. The bytes of both layouts are counted in order. Where both are nested loops over
//! parts of that count, each inside the other, they are turned into the same loops ([`of_both`]),
//! and the longest loop with equal steps on both sides becomes the blocks of one command. For other
//! layouts, the runs of both sides are intersected one by one, and adjacent blocks that continue
//! with the same step form one command.

use super::{Layout, LayoutError, overlap::gcd};

/// One command: `count` blocks of `len` bytes, each `stride` bytes after the previous one, on both
/// sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The source of the first block, in bytes from the buffer's start.
    pub from: u64,
    /// The destination of the first block, in bytes from the other buffer's start.
    pub at: u64,
    /// Bytes of a block.
    pub len: u32,
    /// The number of blocks, at least 1.
    pub count: u32,
    /// The distance from start to start, in bytes; 0 if there is one block.
    pub stride: u64,
}

/// Returns the transfer of all bytes of `from` to the positions of `at`, in order, as commands with
/// blocks of at most `longest` bytes. An empty transfer is one command of length 0. Bytes that are
/// written twice, because `at` [overlaps itself](Layout::for_receiving), may be written in any
/// order.
///
/// The length of the list is the number of commands: for layouts that differ in every run, it is
/// that of [`count_blocks`].
///
/// # Errors
/// [`LayoutError::Lengths`] for different numbers of bytes, [`LayoutError::NoLength`] for a
/// `longest` of 0.
pub fn pieces(from: &Layout, at: &Layout, longest: u32) -> Result<Vec<Piece>, LayoutError> {
    if from.bytes() != at.bytes() {
        return Err(LayoutError::Lengths { from: from.bytes(), at: at.bytes() });
    }
    if from.bytes() == 0 {
        return Ok(vec![Piece { from: 0, at: 0, len: 0, count: 1, stride: 0 }]);
    }
    if longest == 0 {
        return Err(LayoutError::NoLength);
    }
    Ok(match of_both(from, at) {
        Some(nest) => nest.pieces(from.offset, at.offset, longest),
        None => one_by_one(from, at, longest),
    })
}

/// Returns the number of blocks of the transfer from `from` to `at` that are in one run on both
/// sides, regardless of their length: it determines whether to [pack](Layout::pack) first. Computed
/// without enumerating the blocks. 1 for no bytes, 0 if the layouts have different numbers of
/// bytes.
pub fn count_blocks(from: &Layout, at: &Layout) -> u64 {
    let bytes = from.bytes();
    match (bytes == at.bytes(), bytes) {
        (false, _) => 0,
        (true, 0) => 1,
        // A block starts where a run starts on one side or both.
        (true, _) => {
            let both = u128::from(from.run) * u128::from(at.run) / gcd(from.run.into(), at.run.into()) as u128;
            from.count() + at.count() - (u128::from(bytes) / both) as u64
        }
    }
}

fn one_by_one(from: &Layout, at: &Layout, longest: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut sources, mut places) = (from.runs(), at.runs());
    let (mut source, mut place) = ((0, 0), (0, 0));
    loop {
        for (run, runs) in [(&mut source, &mut sources), (&mut place, &mut places)] {
            if run.1 == 0 {
                // Both have the same number of bytes, so both end here.
                let Some(next) = runs.next() else { return pieces };
                *run = next;
            }
        }
        let len = u64::min(source.1, place.1).min(u64::from(longest));
        append(&mut pieces, source.0, place.0, len as u32);
        for run in [&mut source, &mut place] {
            *run = (run.0 + len, run.1 - len);
        }
    }
}

/// Appends a block; extends the last command if the block continues it.
fn append(pieces: &mut Vec<Piece>, from: u64, at: u64, len: u32) {
    if let Some(last) = pieces.last_mut().filter(|last| last.len == len && last.count < u32::MAX) {
        if last.count == 1 && from > last.from && from.checked_sub(last.from) == at.checked_sub(last.at) {
            last.stride = from - last.from;
        }
        let on = last.stride * u64::from(last.count);
        if on > 0 && from.checked_sub(last.from) == Some(on) && at.checked_sub(last.at) == Some(on) {
            last.count += 1;
            return;
        }
    }
    pieces.push(Piece { from, at, len, count: 1, stride: 0 });
}

/// A loop: a number of turns, with a step on each side, in bytes.
#[derive(Clone, Copy, Debug)]
struct Loop {
    count: u64,
    from: u64,
    at: u64,
}

/// Blocks of bytes in loops, the innermost first.
#[derive(Debug)]
pub(super) struct Nest {
    block: u64,
    loops: Vec<Loop>,
}

/// Returns the nest of two layouts with equal numbers of bytes, not 0; `None` if a loop of one
/// straddles those of the other.
pub(super) fn of_both(from: &Layout, at: &Layout) -> Option<Nest> {
    let (mut sources, mut places) = (inside_out(from), inside_out(at));
    let (mut source, mut place) = (sources.next()?, places.next()?);
    let mut loops = Vec::with_capacity(10);
    loop {
        let count = u64::min(source.0, place.0);
        if source.0 % count != 0 || place.0 % count != 0 {
            return None;
        }
        loops.push(Loop { count, from: source.1, at: place.1 });
        let (a, b) = (rest(source, count, &mut sources), rest(place, count, &mut places));
        let (Some(next), Some(after)) = (a, b) else { break };
        (source, place) = (next, after);
    }
    let block = loops.remove(0).count;
    Some(Nest { block, loops })
}

/// Returns counts and distances, from the bytes of a run outwards.
fn inside_out(layout: &Layout) -> impl Iterator<Item = (u64, u64)> {
    core::iter::once((layout.run, 1)).chain(layout.dims().iter().rev().copied())
}

/// Returns the rest of a loop after `count` of its steps have become a separate loop; without a
/// rest, the next loop.
fn rest((have, step): (u64, u64), count: u64, others: &mut impl Iterator<Item = (u64, u64)>) -> Option<(u64, u64)> {
    if have == count { others.next() } else { Some((have / count, step * count)) }
}

impl Nest {
    pub(super) fn pieces(mut self, from: u64, at: u64, longest: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let longest = u64::from(longest);
        if self.block <= longest {
            self.emit(from, at, self.block as u32, &mut pieces);
            return pieces;
        }
        // Whole blocks of the maximum length, and the rest after them.
        let (whole, left) = (self.block / longest, self.block % longest);
        if left > 0 {
            self.emit(from + whole * longest, at + whole * longest, left as u32, &mut pieces);
        }
        self.loops.insert(0, Loop { count: whole, from: longest, at: longest });
        self.emit(from, at, longest as u32, &mut pieces);
        pieces
    }

    /// Appends a command for each turn of all loops but one: the longest of those with the same
    /// step on both sides.
    fn emit(&self, from: u64, at: u64, len: u32, pieces: &mut Vec<Piece>) {
        let equal = self.loops.iter().enumerate().filter(|(_, turn)| turn.from == turn.at && turn.from > 0);
        // Among equally long ones, the innermost.
        let chosen = equal.rev().max_by_key(|(_, turn)| turn.count);
        let blocks = chosen.map_or(Loop { count: 1, from: 0, at: 0 }, |(_, turn)| *turn);
        let others: Vec<Loop> = self
            .loops
            .iter()
            .enumerate()
            .rev()
            .filter(|(i, _)| chosen.is_none_or(|(c, _)| c != *i))
            .map(|(_, turn)| *turn)
            .collect();
        nested(&others, from, at, &mut |from, at| {
            let mut done = 0;
            while done < blocks.count {
                let count = u32::try_from(blocks.count - done).unwrap_or(u32::MAX);
                let stride = if count == 1 { 0 } else { blocks.from };
                pieces.push(Piece { from: from + done * blocks.from, at: at + done * blocks.at, len, count, stride });
                done += u64::from(count);
            }
        });
    }
}

/// Calls `each` for every turn of `loops`, the outermost first.
fn nested(loops: &[Loop], from: u64, at: u64, each: &mut impl FnMut(u64, u64)) {
    match loops.split_first() {
        None => each(from, at),
        Some((turn, inner)) => {
            (0..turn.count).for_each(|n| nested(inner, from + n * turn.from, at + n * turn.at, each))
        }
    }
}
