//! The interpretation of steering addresses: the table entry of a tag, and ranges of registered
//! memory.

use rdma_fabric::control_queue::{QueueError, QueueId, Stadd};

/// Fixed tags of a queue.
pub(crate) const FIXED: u32 = 256;
/// Automatic tags that a queue can have at the same time.
pub(crate) const AUTOMATIC: u32 = 768;
/// The number of places in a table of tags.
pub(crate) const PLACES: usize = (FIXED + AUTOMATIC) as usize;

/// Returns a tag's index in a table; `None` for numbers that are not tags.
///
/// Many automatic tags use the same table entry, one after another. So an address that outlived its
/// registration or its queue does not contain a current tag, until the numbers wrap around after 16
/// 000 uses of an entry.
pub(crate) fn place(tag: u32) -> Option<usize> {
    match tag {
        0..FIXED => Some(tag as usize),
        Stadd::FIRST_AUTOMATIC.. => Some((FIXED + (tag - Stadd::FIRST_AUTOMATIC) % AUTOMATIC) as usize),
        _ => None,
    }
}

/// Returns the automatic tag of entry `place` in its `use_`-th use.
pub(crate) fn automatic(place: usize, use_: u32) -> u32 {
    const USES: u32 = ((1 << 24) - Stadd::FIRST_AUTOMATIC) / AUTOMATIC;
    Stadd::FIRST_AUTOMATIC + use_ % USES * AUTOMATIC + (place as u32).saturating_sub(FIXED)
}

/// Returns the offset of `len` bytes at `at` in memory of `registered` bytes.
pub(crate) fn range(queue: QueueId, at: Stadd, len: u64, registered: u64) -> Result<u64, QueueError> {
    match at.offset().checked_add(len) {
        Some(end) if end <= registered => Ok(at.offset()),
        _ => Err(QueueError::OutOfBounds { queue, stadd: at, len, registered }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::Rank;

    #[test]
    fn every_automatic_tag_comes_back_to_its_place() {
        for at in [FIXED as usize, 300, PLACES - 1] {
            let tags: Vec<u32> = (0..16_000).map(|use_| automatic(at, use_)).collect();
            assert!(tags.iter().all(|&tag| place(tag) == Some(at) && tag < 1 << 24));
            assert!(tags.windows(2).all(|pair| pair[0] != pair[1]));
        }
        assert_eq!([0, 255, 256, 0xfff].map(place), [Some(0), Some(255), None, None]);
    }

    #[test]
    fn ranges_stay_inside() {
        let queue = QueueId::new(Rank::new(1), 0, 0, 0);
        let at = Stadd::fixed(3) + 8;
        assert_eq!(range(queue, at, 8, 16), Ok(8));
        assert_eq!(range(queue, at + 8, 0, 16), Ok(16));
        let error = QueueError::OutOfBounds { queue, stadd: at, len: 9, registered: 16 };
        assert_eq!(range(queue, at, 9, 16), Err(error));
        assert!(range(queue, Stadd::from_bits(u64::MAX), u64::MAX, u64::MAX).is_err());
    }
}
