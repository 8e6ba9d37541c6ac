//! What a receiver tells a sender in every exchange, because nothing was agreed before.

use crate::{buffer::Width, layout::Layout};
use rdma_fabric::RegionKey;

/// Where a block may be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) region: RegionKey,
    /// The cells of that memory.
    pub(super) width: Width,
    pub(super) layout: Layout,
}

impl Offer {
    pub(super) const WORDS: usize = 2 + Layout::WORDS;

    /// As words. `None` is the offer of a receiver that can't take part.
    pub(super) fn to_words(offer: Option<Offer>) -> [u64; Offer::WORDS] {
        let mut words = [0; Offer::WORDS];
        if let Some(Offer { region, width, layout }) = offer {
            (words[0], words[1]) = (region.to_bits(), width.bytes());
            words[2..].copy_from_slice(&layout.to_words());
        }
        words
    }

    /// What the words say; an error if no member of this version says so.
    pub(super) fn from_words(words: [u64; Offer::WORDS]) -> Result<Option<Offer>, ()> {
        if words[1] == 0 {
            return Ok(None);
        }
        let mut layout = [0; Layout::WORDS];
        layout.copy_from_slice(&words[2..]);
        let layout = Layout::from_words(layout).ok_or(())?;
        Ok(Some(Offer { region: RegionKey::from_bits(words[0]), width: Width::of_bytes(words[1]), layout }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_come_back_and_garbage_does_not() {
        let layout = Layout::vector::<u32>(3, 5, 2, 7).unwrap();
        let offer = Offer { region: RegionKey::from_bits(0x1234_5678), width: Width::Four, layout };
        assert_eq!(Offer::from_words(Offer::to_words(Some(offer))), Ok(Some(offer)));
        assert_eq!(Offer::from_words(Offer::to_words(None)), Ok(None));
        let mut words = Offer::to_words(Some(offer));
        words[Offer::WORDS - 1] = u64::MAX;
        assert_eq!(Offer::from_words(words), Err(()));
    }
}
