//! Atomic operations as words.

use rdma_fabric::Amo;

/// Returns the kind, never 0, and two operands.
pub(crate) fn to_words(amo: Amo<u64>) -> [u64; 3] {
    match amo {
        Amo::Add(v) => [1, v, 0],
        Amo::Swap(v) => [2, v, 0],
        Amo::CompareSwap { expected, new } => [3, expected, new],
        Amo::Or(v) => [4, v, 0],
        Amo::And(v) => [5, v, 0],
        Amo::Xor(v) => [6, v, 0],
    }
}

/// Restores an operation; `None` if the words do not encode one.
pub(crate) fn from_words([kind, a, b]: [u64; 3]) -> Option<Amo<u64>> {
    Some(match kind {
        1 => Amo::Add(a),
        2 => Amo::Swap(a),
        3 => Amo::CompareSwap { expected: a, new: b },
        4 => Amo::Or(a),
        5 => Amo::And(a),
        6 => Amo::Xor(a),
        _ => return None,
    })
}

/// One of each kind, for tests.
#[cfg(test)]
pub(crate) const EXAMPLES: [Amo<u64>; 6] =
    [Amo::Add(1), Amo::Swap(2), Amo::CompareSwap { expected: 3, new: 4 }, Amo::Or(5), Amo::And(6), Amo::Xor(7)];
