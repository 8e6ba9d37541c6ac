//! The data that a libfabric put delivers to its target: the range of bytes that it has written. A
//! rank that waits for other bytes is therefore not woken.

use core::ops::Range;
use tofu2_shm::part::Part;

/// Unit of ranges in bytes.
const GRAIN: u64 = 8;
/// Number of bits for the first unit; the higher bits hold the number of units.
const FIRST: u32 = 40;

/// Encodes the `len` bytes at offset `at` of a heap; 0 if the range can't be encoded.
pub(super) fn encode(at: u64, len: usize) -> u64 {
    let first = at / GRAIN;
    let count = at.saturating_add(len as u64).div_ceil(GRAIN) - first;
    if first >> FIRST == 0 && count >> (u64::BITS - FIRST) == 0 { count << FIRST | first } else { 0 }
}

/// Wakes a rank if it waits for bytes in an encoded range.
pub(super) fn wake(part: &Part, told: u64) {
    match bytes(told) {
        Some(bytes) => part.wake_for(bytes),
        None => part.wake(),
    }
}

/// Decodes the range of a heap that was written, in whole units; `None` if any byte may have been
/// written.
fn bytes(told: u64) -> Option<Range<u64>> {
    let (first, count) = (told & ((1 << FIRST) - 1), told >> FIRST);
    (count > 0).then(|| first * GRAIN..(first + count) * GRAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_bytes_are_told_and_few_others(at in 0_u64..1 << 43, len in 1_usize..100 << 20) {
            let bytes = bytes(encode(at, len)).expect("not too many");
            prop_assert!(bytes.start <= at && at + len as u64 <= bytes.end);
            prop_assert!(at - bytes.start < GRAIN && bytes.end - (at + len as u64) < GRAIN);
        }

        #[test]
        fn what_anybody_tells_is_some_bytes(any: u64) {
            prop_assert!(bytes(any).is_none_or(|bytes| bytes.start < bytes.end));
        }
    }

    #[test]
    fn of_too_many_nothing_is_told() {
        assert_eq!((encode(1 << 43, 8), encode(0, 128 << 20), encode(u64::MAX, 8)), (0, 0, 0));
        assert_eq!((bytes(0), bytes(encode(0, (128 << 20) - 8))), (None, Some(0..(128 << 20) - 8)));
    }
}
