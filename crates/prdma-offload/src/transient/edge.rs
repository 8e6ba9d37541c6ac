//! One edge in one exchange, at either end.

use super::mailboxes::{CLOSED, InBox, NO_BLOCK, OutBox};
use crate::{
    Layout, PrdmaError, Result, Side,
    buffer::Width,
    engine::transfer,
    init::{Block, Outgoing, Staged},
    layout::{count_blocks, pieces},
    packing::Packing,
};
use core::slice;
use fabric_offload::{Triggers, triggered::put_behind};
use rdma_fabric::{Deps, Fabric, RegionKey, RemoteAddr};

/// Blocks beyond this number are packed before, and unpacked after: the default of
/// [`crate::Options`].
const DIRECT_BLOCKS: u64 = 12;

impl OutBox {
    /// Waits for the receiver's offer of exchange `k`, compares sizes, puts the block, and answers.
    /// A sender without a block reports that in its answer.
    pub(super) async fn send(&self, fabric: &Fabric, k: u64, block: Option<&Block>) -> Result<()> {
        let offered = fabric.wait_until(&self.offered, Deps::One(self.to), |offered| offered >= k);
        if Triggers::of(fabric).run_during(offered).await? & CLOSED != 0 {
            return Err(PrdmaError::ElsewhereFailed);
        }
        let mut words = [0; Offer::WORDS];
        fabric.read(&self.offer, &mut words)?;
        let Some(offer) =
            Offer::from_words(words).map_err(|()| PrdmaError::Damaged { member: self.member }).transpose()
        else {
            // The receiver does not wait for an answer.
            return Err(PrdmaError::ElsewhereFailed);
        };
        let sent = match (offer, block) {
            (_, None) => Err(PrdmaError::ElsewhereFailed),
            (Ok(offer), Some(block)) => self.put(fabric, &offer, block).await,
            (Err(error), Some(_)) => Err(error),
        };
        if sent.is_err() {
            let bytes = block.map_or(NO_BLOCK, |block| block.layout.bytes());
            fabric.put_word(&self.about, bytes).await?;
            put_behind(fabric, &self.answer, 2 * k + 1).await?;
        } else {
            put_behind(fabric, &self.answer, 2 * k).await?;
        }
        sent
    }

    async fn put(&self, fabric: &Fabric, offer: &Offer, block: &Block) -> Result<()> {
        let (mine, theirs) = (block.layout.bytes(), offer.layout.bytes());
        if mine != theirs {
            return Err(PrdmaError::Size {
                side: Side::Destination,
                slot: self.slot,
                member: self.member,
                mine,
                theirs,
            });
        }
        let (mut memory, mut from) = (block.memory.clone(), block.layout);
        if !from.is_contiguous() && count_blocks(&from, &offer.layout) > DIRECT_BLOCKS {
            let staged = Staged::new(fabric, block)?;
            staged.pack(&Packing::serial())?;
            Staged::charge(fabric, &Packing::serial(), slice::from_ref(&staged)).await;
            (memory, from) = (staged.staging().clone(), Layout::first(mine));
        }
        let pieces = pieces(&from, &offer.layout, u32::MAX)?;
        let width = Width::of_bytes(offer.width.bytes().min(memory.width().bytes()));
        let at = RemoteAddr { rank: self.to, region: offer.region, offset: 0 };
        let out = Outgoing { packed: None, pieces, bytes: mine, width };
        Ok(transfer(fabric, &out, &memory, at)?.put(fabric).await?)
    }
}

impl InBox {
    /// Offers the block's memory for exchange `k`, and waits for the answer. A receiver without a
    /// block reports that and does not wait for an answer.
    pub(super) async fn receive(&self, fabric: &Fabric, k: u64, block: Option<&Block>) -> Result<()> {
        let staged = match block {
            Some(block) if block.layout.count() > DIRECT_BLOCKS || block.memory.is_in_place() => {
                Some(Staged::new(fabric, block))
            }
            _ => None,
        };
        let (block, staged) = match staged.transpose() {
            Ok(staged) => (block, staged),
            Err(error) => {
                self.offer(fabric, k, None).await?;
                return Err(error);
            }
        };
        let offer = block.map(|block| {
            let (memory, layout) = match &staged {
                Some(staged) => (staged.staging(), Layout::first(block.layout.bytes())),
                None => (&block.memory, block.layout),
            };
            Offer { region: memory.region().key(), width: memory.width(), layout }
        });
        self.offer(fabric, k, offer).await?;
        let Some(block) = block else { return Ok(()) };
        let answer = fabric.wait_until(&self.answer, Deps::One(self.from), |answer| answer >= 2 * k);
        let answer = Triggers::of(fabric).run_during(answer).await? & !CLOSED;
        if answer < 2 * k {
            return Err(PrdmaError::ElsewhereFailed);
        }
        if answer > 2 * k {
            let mine = block.layout.bytes();
            return Err(match fabric.load(&self.about)? {
                NO_BLOCK => PrdmaError::ElsewhereFailed,
                // Sizes agree, so there is another reason.
                theirs if theirs == mine => PrdmaError::ElsewhereFailed,
                theirs => PrdmaError::Size { side: Side::Source, slot: self.slot, member: self.member, mine, theirs },
            });
        }
        if let Some(staged) = staged {
            staged.unpack(&Packing::serial())?;
            Staged::charge(fabric, &Packing::serial(), slice::from_ref(&staged)).await;
        }
        Ok(())
    }

    async fn offer(&self, fabric: &Fabric, k: u64, offer: Option<Offer>) -> Result<()> {
        fabric.put(&self.offer, Offer::to_words(offer)).await?;
        Ok(put_behind(fabric, &self.offered, k).await?)
    }
}

/// The memory into which a block may be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) region: RegionKey,
    /// The width of the cells of that memory.
    pub(super) width: Width,
    pub(super) layout: Layout,
}

impl Offer {
    pub(super) const WORDS: usize = 2 + Layout::WORDS;

    /// Returns an offer as words; `None` is that of a receiver that cannot take part.
    pub(super) fn to_words(offer: Option<Offer>) -> [u64; Offer::WORDS] {
        let mut words = [0; Offer::WORDS];
        if let Some(Offer { region, width, layout }) = offer {
            (words[0], words[1]) = (region.to_bits(), width.bytes());
            words[2..].copy_from_slice(&layout.to_words());
        }
        words
    }

    /// Returns the offer that `words` encode; an error if no member of this version writes such
    /// words.
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
