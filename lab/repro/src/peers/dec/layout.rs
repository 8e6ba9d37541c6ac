//! The header of a queue in the home's memory, and its entries.

/// The field widths: a number takes as many bits as the number of ranks requires.
///
/// * Header: `head | participants:bits | writers:bits`. The head counts releases; the carry out of
///   the head's width is dropped.
/// * Entry: `index | rank + 1:bits | alone:1 | exclusive:1`, and 0 before it is first written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    bits: u32,
    /// The number of entries of the ring, minus one.
    ring: u64,
}

/// The maximum width for which the head still counts 16 turns of the ring.
const WIDEST: u32 = 20;
/// The maximum number of ranks of a queue.
pub(super) const RANKS: u32 = (1 << WIDEST) - 1;

/// The state of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// The position of the first participant.
    pub(super) head: u64,
    /// The number of participants, inside or waiting.
    pub(super) participants: u64,
    /// The number of writers among them.
    pub(super) writers: u64,
}

/// A waiting participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// [`super::super::lock::RankState::name`].
    pub(super) name: u64,
    pub(super) exclusive: bool,
    /// A writer that found no other writer in the queue: all participants before it are readers.
    pub(super) alone: bool,
}

/// The meaning of an entry for a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// This participant waits there.
    Waits(Entry),
    /// No entry has been written for it yet, or none ever will be.
    Nothing,
    /// A participant waits there one turn of the ring later: this position was taken off long ago.
    Later,
}

impl Layout {
    /// Returns the layout for this number of ranks, at most [`RANKS`].
    pub(super) fn of(ranks: u32) -> Self {
        let ranks = ranks.max(1);
        Layout { bits: u32::BITS - ranks.leading_zeros(), ring: u64::from(ranks).next_power_of_two() - 1 }
    }

    /// Returns the number of entries.
    pub(super) fn entries(self) -> u64 {
        self.ring + 1
    }

    /// Returns the index of a position's entry.
    pub(super) fn place(self, position: u64) -> u64 {
        position & self.ring
    }

    fn positions(self) -> u64 {
        u64::MAX >> (2 * self.bits)
    }

    /// Returns the position `steps` after another one.
    pub(super) fn after(self, position: u64, steps: u64) -> u64 {
        (position + steps) & self.positions()
    }

    /// Returns the distance from `from` to `to`.
    pub(super) fn distance(self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) & self.positions()
    }

    pub(super) fn header(self, bits: u64) -> Header {
        let count = (1 << self.bits) - 1;
        Header { head: bits >> (2 * self.bits), participants: bits >> self.bits & count, writers: bits & count }
    }

    /// Returns the value that an arriving participant adds to the header.
    pub(super) fn arrive(self, exclusive: bool) -> u64 {
        (1 << self.bits) + u64::from(exclusive)
    }

    /// Returns the value that a leaving participant adds to the header: it takes the first one off.
    pub(super) fn leave(self, exclusive: bool) -> u64 {
        (1u64 << (2 * self.bits)).wrapping_sub(self.arrive(exclusive))
    }

    pub(super) fn entry(self, position: u64, entry: Entry) -> u64 {
        position << (self.bits + 2) | entry.name << 2 | u64::from(entry.alone) << 1 | u64::from(entry.exclusive)
    }

    /// Returns the meaning of `bits`, stored in the entry of `position`, for that position.
    pub(super) fn found(self, position: u64, bits: u64) -> Found {
        let written = bits >> (self.bits + 2);
        let name = bits >> 2 & ((1 << self.bits) - 1);
        match name {
            0 => Found::Nothing,
            name if written == position => Found::Waits(Entry { name, exclusive: bits & 1 != 0, alone: bits & 2 != 0 }),
            _ if self.distance(position, written) == self.entries() => Found::Later,
            _ => Found::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_count_and_wrap() {
        for ranks in [1, 2, 3, 4, 48, 4096, 663_552, RANKS] {
            let layout = Layout::of(ranks);
            assert!(layout.entries() >= u64::from(ranks) && layout.positions() >= layout.ring, "{ranks}");
            let mut bits = layout.positions() << (2 * layout.bits);
            for _ in 0..ranks.min(100) {
                bits = bits.wrapping_add(layout.arrive(true));
            }
            let all = u64::from(ranks.min(100));
            let header = Header { head: layout.positions(), participants: all, writers: all };
            assert_eq!(layout.header(bits), header, "{ranks}");
            bits = bits.wrapping_add(layout.leave(true));
            let header = Header { head: 0, participants: all - 1, writers: all - 1 };
            assert_eq!(layout.header(bits), header, "{ranks}");
        }
    }

    #[test]
    fn entries_tell_their_position_from_others() {
        let layout = Layout::of(663_552);
        let entry = Entry { name: 663_552, exclusive: true, alone: false };
        let position = layout.positions() - 3;
        let bits = layout.entry(position, entry);
        assert_eq!(layout.found(position, bits), Found::Waits(entry));
        let turn_before = position - layout.entries();
        assert_eq!(layout.place(turn_before), layout.place(position));
        assert_eq!(layout.found(turn_before, bits), Found::Later);
        assert_eq!(layout.found(layout.after(position, layout.entries()), bits), Found::Nothing);
        assert_eq!(layout.found(position, 0), Found::Nothing);
        assert_eq!(layout.distance(position, layout.after(position, 9)), 9);
    }
}
