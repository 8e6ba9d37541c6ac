//! What the order of an operation depends on.

/// From which rank to which a copy goes.
pub(crate) type Pair = (u32, u32);

/// What an operation is, as far as its order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of this pair.
    Copy(Pair),
    /// A copy of this pair that another rank carries out.
    Delegated {
        pair: Pair,
        server: u32,
    },
    Atomic,
}
