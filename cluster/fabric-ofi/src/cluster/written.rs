//! The data that a libfabric put delivers to its target: the range of bytes that it has written. A
//! rank that waits for other bytes is therefore not woken.
//!
//! Providers deliver 8 bytes, 4 (verbs, as InfiniBand's immediate data), or none. The two forms
//! differ in their value: that of 4 bytes is less than 2³², that of 8 bytes is not.

use core::ops::Range;
use tofu2_shm::part::Part;

/// Unit of ranges in bytes.
const GRAIN: u64 = 8;
/// In 8 bytes, the number of bits for the first unit; the higher bits hold the number of units.
const FIRST: u32 = 40;
/// In 4 bytes, the same, of larger units: the highest bits hold how often a unit is doubled.
const SHORT_FIRST: u32 = 22;
const SHORT_COUNT: u32 = 5;
const DOUBLED: u32 = 5;
const _: () = assert!(SHORT_FIRST + SHORT_COUNT + DOUBLED == u32::BITS);

/// Encodes the `len` bytes at offset `at` of a heap in the `data_bytes` bytes that the provider
/// delivers: 0 if the range can't be encoded, `None` if the provider delivers less than 4 bytes.
pub(super) fn encode(at: u64, len: usize, data_bytes: usize) -> Option<u64> {
    match data_bytes {
        0..4 => None,
        4..8 => Some(u64::from(short(at, len))),
        _ => Some(long(at, len)),
    }
}

fn long(at: u64, len: usize) -> u64 {
    let (first, count) = units(at, len, GRAIN);
    if first >> FIRST == 0 && count >> (u64::BITS - FIRST) == 0 { count << FIRST | first } else { 0 }
}

fn short(at: u64, len: usize) -> u32 {
    let encoded = (0..1 << DOUBLED).find_map(|doubled: u32| {
        let (first, count) = units(at, len, GRAIN << doubled);
        let fits = first >> SHORT_FIRST == 0 && count >> SHORT_COUNT == 0;
        fits.then_some((doubled << SHORT_COUNT | count as u32) << SHORT_FIRST | first as u32)
    });
    encoded.unwrap_or(0)
}

/// Returns the first unit of `grain` bytes and the number of units.
fn units(at: u64, len: usize, grain: u64) -> (u64, u64) {
    let first = at / grain;
    (first, at.saturating_add(len as u64).div_ceil(grain) - first)
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
    let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
    let (first, count, grain) = if told >> u32::BITS == 0 {
        let rest = told >> SHORT_FIRST;
        (low(told, SHORT_FIRST), low(rest, SHORT_COUNT), GRAIN << (rest >> SHORT_COUNT))
    } else {
        (low(told, FIRST), told >> FIRST, GRAIN)
    };
    (count > 0).then(|| first * grain..(first + count) * grain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_bytes_are_told_and_few_others(at in 0_u64..1 << 43, len in 1_usize..100 << 20) {
            let bytes = bytes(long(at, len)).expect("not too many");
            prop_assert!(bytes.start <= at && at + len as u64 <= bytes.end);
            prop_assert!(at - bytes.start < GRAIN && bytes.end - (at + len as u64) < GRAIN);
        }

        #[test]
        fn four_bytes_tell_all_bytes_and_few_others(at in 0_u64..1 << 43, len in 1_usize..100 << 20) {
            let told = encode(at, len, 4).expect("a form of 4 bytes");
            prop_assert!(told >> 32 == 0);
            let bytes = bytes(told).expect("not too many");
            prop_assert!(bytes.start <= at && at + len as u64 <= bytes.end);
            // A unit is doubled while more than 31 are needed, or the first one has no room.
            let most = (len as u64 / 15).max(at >> (SHORT_FIRST - 1)).max(GRAIN);
            prop_assert!(at - bytes.start <= most && bytes.end - (at + len as u64) <= most, "{bytes:?}");
        }

        #[test]
        fn what_anybody_tells_is_some_bytes(any: u64) {
            prop_assert!(bytes(any).is_none_or(|bytes| bytes.start < bytes.end));
        }
    }

    #[test]
    fn of_too_many_nothing_is_told() {
        assert_eq!((long(1 << 43, 8), long(0, 128 << 20), long(u64::MAX, 8)), (0, 0, 0));
        assert_eq!((bytes(0), bytes(long(0, (128 << 20) - 8))), (None, Some(0..(128 << 20) - 8)));
        assert_eq!((short(u64::MAX - 8, 8), short(0, usize::MAX)), (0, 0));
        assert_eq!((encode(8, 8, 0), encode(8, 8, 3)), (None, None));
    }

    #[test]
    fn eight_bytes_and_four_are_told_apart() {
        assert!(long(0, 1) >> 32 != 0 && long(u64::MAX >> 22, 1) >> 32 != 0);
        assert_eq!(encode(64, 8, 8), Some(long(64, 8)));
        assert_eq!((bytes(long(64, 8)), bytes(u64::from(short(64, 8)))), (Some(64..72), Some(64..72)));
    }
}
