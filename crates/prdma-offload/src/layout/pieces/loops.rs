//! Two layouts as one nest of loops, each step of which is known at both ends.

use super::Piece;
use crate::Layout;

/// So many times, with a step at either end, in bytes.
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

/// The nest of two layouts with equal numbers of bytes, not 0; `None` if a loop of one straddles those of the other.
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

/// Counts and distances from the bytes of a run outwards.
fn inside_out(layout: &Layout) -> impl Iterator<Item = (u64, u64)> {
    core::iter::once((layout.run, 1)).chain(layout.dims().iter().rev().copied())
}

/// What is left of a loop after `count` of its steps were made a loop of their own; then the next one.
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
        // Whole blocks of the greatest length, and what is left behind them.
        let (whole, left) = (self.block / longest, self.block % longest);
        if left > 0 {
            self.emit(from + whole * longest, at + whole * longest, left as u32, &mut pieces);
        }
        self.loops.insert(0, Loop { count: whole, from: longest, at: longest });
        self.emit(from, at, longest as u32, &mut pieces);
        pieces
    }

    /// A command for each turn of all loops but one: the longest of those with the same step at both ends.
    fn emit(&self, from: u64, at: u64, len: u32, pieces: &mut Vec<Piece>) {
        let equal = self.loops.iter().enumerate().filter(|(_, turn)| turn.from == turn.at && turn.from > 0);
        // Of equally long ones the innermost.
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

/// Every turn of `loops`, the outermost first.
fn nested(loops: &[Loop], from: u64, at: u64, each: &mut impl FnMut(u64, u64)) {
    match loops.split_first() {
        None => each(from, at),
        Some((turn, inner)) => {
            (0..turn.count).for_each(|n| nested(inner, from + n * turn.from, at + n * turn.at, each))
        }
    }
}
