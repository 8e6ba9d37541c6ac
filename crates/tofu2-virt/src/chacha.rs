//! Random numbers from a seed: ChaCha with 8 rounds.
//!
//! The numbers are those of `ChaCha8Rng::seed_from_u64` in the crate `rand_chacha` and will never
//! change, so that recorded seeds and trace hashes stay valid.

use std::array::from_fn;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct ChaCha8 {
    key: [u32; 8],
    /// The number of blocks generated.
    blocks: u64,
    /// The block generated last.
    words: [u32; 16],
    /// The number of its words used up.
    used: usize,
}

impl ChaCha8 {
    /// Creates a stream whose key consists of eight numbers from a PCG32 seeded with `seed`.
    pub(super) fn seed_from_u64(mut seed: u64) -> Self {
        let key = from_fn(|_| {
            seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0xA176_54E4_6FBE_17F3);
            ((((seed >> 18) ^ seed) >> 27) as u32).rotate_right((seed >> 59) as u32)
        });
        ChaCha8 { key, blocks: 0, words: [0; 16], used: 16 }
    }

    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        if self.used == self.words.len() {
            self.fill();
        }
        let [low, high] = [self.words[self.used], self.words[self.used + 1]];
        self.used += 2;
        u64::from(high) << 32 | u64::from(low)
    }

    /// Returns a nearly uniform number below `bound`, which must not be 0.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn fill(&mut self) {
        let [a, b, c, d, e, f, g, h] = self.key;
        let (low, high) = (self.blocks as u32, (self.blocks >> 32) as u32);
        // "expand 32-byte k", the key, the block number, zeros.
        let begin = [0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574, a, b, c, d, e, f, g, h, low, high, 0, 0];
        let mut words = begin;
        for _ in 0..4 {
            quarter_round::<0, 4, 8, 12>(&mut words);
            quarter_round::<1, 5, 9, 13>(&mut words);
            quarter_round::<2, 6, 10, 14>(&mut words);
            quarter_round::<3, 7, 11, 15>(&mut words);
            quarter_round::<0, 5, 10, 15>(&mut words);
            quarter_round::<1, 6, 11, 12>(&mut words);
            quarter_round::<2, 7, 8, 13>(&mut words);
            quarter_round::<3, 4, 9, 14>(&mut words);
        }
        self.words = from_fn(|at| words[at].wrapping_add(begin[at]));
        self.blocks = self.blocks.wrapping_add(1);
        self.used = 0;
    }
}

#[inline(always)]
fn quarter_round<const A: usize, const B: usize, const C: usize, const D: usize>(words: &mut [u32; 16]) {
    for (to, from, mixed, bits) in [(A, B, D, 16), (C, D, B, 12), (A, B, D, 8), (C, D, B, 7)] {
        words[to] = words[to].wrapping_add(words[from]);
        words[mixed] = (words[mixed] ^ words[to]).rotate_left(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{Rng, SeedableRng},
    };

    #[test]
    fn the_numbers_are_those_of_rand_chacha() {
        for seed in (0..40).chain([u64::MAX, 1 << 63, 0x0123_4567_89AB_CDEF]) {
            let (mut ours, mut theirs) = (ChaCha8::seed_from_u64(seed), ChaCha8Rng::seed_from_u64(seed));
            for at in 0..200 {
                assert_eq!(ours.next_u64(), theirs.next_u64(), "number {at} of seed {seed}");
            }
        }
    }

    #[test]
    fn the_counter_has_64_bits() {
        let (mut ours, mut theirs) = (ChaCha8::seed_from_u64(5), ChaCha8Rng::seed_from_u64(5));
        ours.blocks = (1 << 32) - 2;
        theirs.set_word_pos(16 * u128::from(ours.blocks));
        for at in 0..64 {
            assert_eq!(ours.next_u64(), theirs.next_u64(), "number {at}");
        }
    }
}
