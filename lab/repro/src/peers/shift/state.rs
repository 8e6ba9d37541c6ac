//! The words of a ShiftLock and of its messages.

/// The state word: `released:36 | mode:2 | writers:2 | readers:24`.
///
/// Fields never carry into each other: the carry out of `released` is dropped, a rank that changes
/// the mode knows its previous value, and the two other fields count present ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State(pub(super) u64);

const WRITERS: u32 = 24;
const MODE: u32 = 26;
const RELEASED: u32 = 28;

const READER: u64 = 1;
const WRITER: u64 = 1 << WRITERS;
const ONE_RELEASED: u64 = 1 << RELEASED;
const READERS: u64 = WRITER - 1;

/// The maximum number of ranks whose readers can be counted.
pub(super) const RANKS: u32 = READERS as u32;

/// The admitted group, modulo 4: readers that arrived in one mode, behind `n` announced writers,
/// enter in the `n`-th mode after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mode(u64);

impl Mode {
    fn after(self, turns: u64) -> Mode {
        Mode((self.0 + turns) & 3)
    }

    pub(super) fn next(self) -> Mode {
        self.after(1)
    }

    /// Returns the value to add to the state so that its mode becomes the next one.
    fn flip(self) -> u64 {
        (self.next().0 << MODE).wrapping_sub(self.0 << MODE)
    }
}

impl State {
    /// The value that an arriving reader adds.
    pub(super) const ARRIVE: u64 = READER;
    /// The value that a leaving reader adds.
    pub(super) const LEAVE: u64 = ONE_RELEASED - READER;
    /// The value that the queue's first writer adds.
    pub(super) const ANNOUNCE: u64 = WRITER;

    /// Returns the value that a writer adds, in its own mode, to admit readers while its successor
    /// waits.
    pub(super) fn let_readers_in(mode: Mode) -> u64 {
        mode.flip().wrapping_add(ONE_RELEASED)
    }

    /// Returns the value that a writer adds, in its own mode, when it leaves the queue empty.
    pub(super) fn withdraw(mode: Mode) -> u64 {
        Self::let_readers_in(mode).wrapping_sub(WRITER)
    }

    fn readers(self) -> u64 {
        self.0 & READERS
    }

    pub(super) fn writers(self) -> u64 {
        self.0 >> WRITERS & 3
    }

    pub(super) fn mode(self) -> Mode {
        Mode(self.0 >> MODE & 3)
    }

    /// Returns the mode in which a reader that has just arrived enters.
    pub(super) fn turn(self) -> Mode {
        self.mode().after(self.writers())
    }

    pub(super) fn released(self) -> u64 {
        self.0 >> RELEASED
    }

    /// Returns the number of releases at the time when all counted readers have left, with `more`
    /// further releases.
    pub(super) fn drained(self, more: u64) -> u64 {
        (self.released() + self.readers() + more) & (u64::MAX >> RELEASED)
    }
}

/// A message of a predecessor to a waiting writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// The writer is inside.
    Handover {
        mode: Mode,
        /// The number of consecutive writers before it.
        in_a_row: u32,
    },
    /// Readers are inside. The writer is inside once `released` releases have been counted.
    ModeChanged { mode: Mode, released: u64 },
}

/// A message in a word: `released:36 | in a row:16 | mode:2 | kind:2`.
impl Message {
    pub(super) fn bits(self) -> u64 {
        match self {
            Message::Handover { mode, in_a_row } => u64::from(in_a_row) << 4 | mode.0 << 2 | 1,
            Message::ModeChanged { mode, released } => released << 28 | mode.0 << 2 | 2,
        }
    }

    pub(super) fn of(bits: u64) -> Self {
        let mode = Mode(bits >> 2 & 3);
        match bits & 3 {
            1 => Message::Handover { mode, in_a_row: (bits >> 4) as u32 },
            _ => Message::ModeChanged { mode, released: bits >> 28 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_carry_into_each_other() {
        let mut state = State(0xf_ffff_ffff << RELEASED);
        for turn in 0..9 {
            let mode = state.mode();
            assert_eq!(mode, Mode(turn % 4));
            state = State(state.0.wrapping_add(State::ANNOUNCE).wrapping_add(State::ARRIVE));
            assert_eq!((state.readers(), state.writers(), state.mode(), state.turn()), (1, 1, mode, mode.next()));
            state = State(state.0.wrapping_add(State::withdraw(mode)).wrapping_add(State::LEAVE));
            assert_eq!((state.readers(), state.writers(), state.mode()), (0, 0, mode.next()));
            assert_eq!(state.released(), 2 * turn + 1);
        }
        assert_eq!(State(0xf_ffff_ffff << RELEASED | 5).drained(1), 5);
    }

    #[test]
    fn messages_are_read_back() {
        for message in [
            Message::Handover { mode: Mode(3), in_a_row: 15 },
            Message::ModeChanged { mode: Mode(2), released: 0xf_ffff_ffff },
            Message::ModeChanged { mode: Mode(0), released: 0 },
        ] {
            assert_ne!(message.bits(), 0);
            assert_eq!(Message::of(message.bits()), message);
        }
    }
}
