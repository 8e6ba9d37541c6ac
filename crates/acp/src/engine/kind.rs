//! What the order of an operation depends on.

/// From which rank to which a copy goes.
pub(crate) type Pair = (u32, u32);

/// What an operation is, as far as its order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of this pair.
    Copy(Pair),
    /// What another rank carries out: an atomic, or a copy of this pair.
    Delegated {
        pair: Option<Pair>,
        server: u32,
    },
    Atomic,
}
