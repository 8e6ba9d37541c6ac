//! What tests send: here, where they are optimised.

/// Returns bytes that differ for each message.
pub fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (seed * 37 + n * 11 + n / 251) as u8).collect()
}
