//! The 128-bit hash that identifies states.
//!
//! It has two lanes of folded multiplications with different constants. If these behave like random
//! functions, n states collide with a probability of about n² / 2^129: 10^-23 for a hundred million
//! states.

use crate::space::Key;
use std::hash::Hasher;

const LANES: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
const START: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];

/// A hash in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix([u64; 2]);

#[inline(always)]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

impl Mix {
    pub(crate) fn new() -> Self {
        Mix(START)
    }

    /// Adds a value. Order matters.
    #[inline(always)]
    pub(crate) fn add(&mut self, value: u64) {
        let [a, b] = self.0;
        // The rotation keeps a lane that has become zero from losing the values that follow.
        self.0 = [
            fold(a ^ value, LANES[0]).wrapping_add(value.rotate_left(17)),
            fold(b ^ value.rotate_left(32), LANES[1]).wrapping_add(value.rotate_left(41)),
        ];
    }

    #[inline]
    pub(crate) fn end(self) -> u128 {
        let [a, b] = self.0;
        let a = fold(a ^ START[1], LANES[1]);
        let b = fold(b ^ START[0], LANES[0]);
        u128::from(a) << 64 | u128::from(b)
    }
}

impl Default for Mix {
    fn default() -> Self {
        Mix::new()
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        self.add(bytes.len() as u64);
    }
    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
    fn finish(&self) -> u64 {
        self.end() as u64
    }
}

/// A map of small keys.
pub(crate) type SmallMap<K, V> = std::collections::HashMap<K, V, std::hash::BuildHasherDefault<Mix>>;
/// A set of small keys.
pub(crate) type SmallSet<K> = std::collections::HashSet<K, std::hash::BuildHasherDefault<Mix>>;
pub(crate) type MixMap<V> = std::collections::HashMap<u128, V, <u128 as Key>::Build>;
