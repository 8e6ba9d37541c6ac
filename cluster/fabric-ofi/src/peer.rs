//! Peers of endpoints.

/// A peer of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The number of that endpoint in this process.
    pub(crate) endpoint: u64,
    pub(crate) index: usize,
}

impl Peer {
    /// Returns its number: 0 for the first that was inserted.
    pub fn index(self) -> usize {
        self.index
    }
}
