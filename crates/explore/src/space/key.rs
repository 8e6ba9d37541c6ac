//! What identifies a state in the set of those that were visited.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
    rc::Rc,
};

/// What identifies a state.
pub trait Key: Clone + Eq + Hash {
    /// Makes the hashers for sets of such keys.
    type Build: BuildHasher + Default;
}

/// A fingerprint: a hash of the state whose bits are all equally random.
impl Key for u128 {
    type Build = BuildHasherDefault<FingerprintHasher>;
}

/// Hashes a 128-bit fingerprint by taking half of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only 128-bit fingerprints are looked up");
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A copy of the state itself: different states are never merged, but each takes its full size.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Whole<S>(Rc<S>);

impl<S: Clone> Whole<S> {
    /// Copies a state.
    pub fn of(state: &S) -> Self {
        Whole(Rc::new(state.clone()))
    }
}

impl<S: Clone + Eq + Hash> Key for Whole<S> {
    type Build = RandomState;
}
