//! A receiver's progress, as a word.

/// The progress of a receiver in taking the messages offered to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The number of messages taken, including earlier ones that were put directly.
    pub(crate) messages: u64,
    /// The last of them that was too long for its receive, unless that is too far back to be
    /// recorded.
    pub(crate) refused: Option<u64>,
}

const AGO: u32 = 20;

impl Taken {
    pub(super) fn to_word(self) -> u64 {
        let ago = self.refused.map_or(0, |refused| self.messages - refused);
        self.messages << AGO | if ago < 1 << AGO { ago } else { 0 }
    }

    pub(super) fn of_word(word: u64) -> Self {
        let (messages, ago) = (word >> AGO, word & ((1 << AGO) - 1));
        Taken { messages, refused: (ago > 0).then(|| messages.saturating_sub(ago)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_for_a_million_messages() {
        for (messages, refused) in [(0, None), (7, None), (8, Some(7)), (1 << 20, Some(1)), (1 << 43, None)] {
            assert_eq!(Taken::of_word(Taken { messages, refused }.to_word()), Taken { messages, refused });
        }
        let long_ago = Taken { messages: (1 << 20) + 1, refused: Some(1) };
        assert_eq!(Taken::of_word(long_ago.to_word()), Taken { refused: None, ..long_ago });
    }
}
