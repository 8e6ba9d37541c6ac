//! The hash of keys, and the rank and slot of a key.

/// The ECMA-182 polynomial, bit-reflected: the lowest bit is the coefficient of the highest power.
const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

static TABLES: [[u64; 256]; 8] = tables();

/// Returns the contribution to the remainder of a byte followed by `n` zero bytes.
const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut rest, mut bit) = (byte as u64, 0);
        while bit < 8 {
            rest = rest >> 1 ^ if rest & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[n - 1][byte];
            tables[n][byte] = before >> 8 ^ tables[0][before as u8 as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// Returns the CRC-64 of bytes as in XZ: reflected ECMA-182 polynomial, initial value and final
/// exclusive or all ones.
pub(crate) fn crc64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(!0, |crc, word| {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        (0..8).fold(0, |sum, n| sum ^ TABLES[7 - n][usize::from(mixed[n])])
    });
    !rest.iter().fold(crc, |crc, byte| crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)])
}

/// Returns the index of a key's rank, below `ranks`, and of its slot there, below `slots`. Neither
/// bound is 0.
pub(crate) fn place_of(key: &[u8], ranks: u64, slots: u64) -> (usize, u64) {
    let crc = crc64(key) >> 16;
    ((crc / slots % ranks) as usize, crc % slots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_published_values_come_out() {
        assert_eq!(crc64(b""), 0);
        // The check value of CRC-64/XZ.
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        let long = b"The quick brown fox jumps over the lazy dog.";
        assert_eq!(crc64(long), bit_by_bit(long));
    }

    fn bit_by_bit(bytes: &[u8]) -> u64 {
        !bytes.iter().fold(!0, |crc, byte| {
            (0..8).fold(crc ^ u64::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 })
        })
    }

    proptest! {
        #[test]
        fn tables_agree_with_bits(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            prop_assert_eq!(crc64(&bytes), bit_by_bit(&bytes));
        }

        #[test]
        fn places_exist(key in prop::collection::vec(any::<u8>(), 0..20), ranks in 1u64..9, slots in 1u64..1000) {
            let (rank, slot) = place_of(&key, ranks, slots);
            prop_assert!((rank as u64) < ranks && slot < slots);
        }
    }

    #[test]
    fn numbers_spread_over_ranks_and_slots() {
        let mut counts = [[0u32; 16]; 4];
        for number in 0..6400u64 {
            let (rank, slot) = place_of(&number.to_ne_bytes(), 4, 16);
            counts[rank][slot as usize] += 1;
        }
        assert!(counts.iter().flatten().all(|count| (60..=140).contains(count)), "{counts:?}");
    }
}
