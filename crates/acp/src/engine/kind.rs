//! The properties of an operation that affect its order.

/// The source rank and the destination rank of a copy.
pub(crate) type Pair = (u32, u32);

/// The kind of an operation, as far as its order depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of this pair.
    Copy(Pair),
    /// An operation of another rank: an atomic, or a copy of this pair.
    Delegated {
        pair: Option<Pair>,
        server: u32,
    },
    Atomic,
}
