//! The progress of a sender in queueing messages, as a word.

/// The number of messages queued in a channel, and the number of headers of the slot that their sender
/// had used before the last of them. Both are known modulo 2^32: fewer messages wait at once, since
/// each takes more than 100 bytes of its sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued(u64);

impl Queued {
    pub(crate) fn new(messages: u64, before: u32) -> Self {
        Queued(u64::from(before) << 32 | messages & u64::from(u32::MAX))
    }

    pub(super) fn of_word(word: u64) -> Self {
        Queued(word)
    }

    pub(super) fn to_word(self) -> u64 {
        self.0
    }

    /// Returns how many messages were queued after the first `taken` ones.
    pub(crate) fn after(self, taken: u64) -> u64 {
        u64::from((self.0 as u32).wrapping_sub(taken as u32))
    }

    /// Returns [`Record::before`](crate::area::Record::before) of the last message.
    pub(crate) fn before(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Queued;

    #[test]
    fn numbers_may_pass_32_bits() {
        let queued = Queued::new((7 << 32) + 2, u32::MAX);
        assert_eq!((queued.after((7 << 32) + 2), queued.after((6 << 32) + (u64::from(u32::MAX)))), (0, 3));
        assert_eq!(Queued::of_word(queued.to_word()).before(), u32::MAX);
    }
}
