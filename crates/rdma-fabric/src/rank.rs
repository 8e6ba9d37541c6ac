//! Ranks, and the nodes (machines) they run on.

use core::fmt;

/// One member of the job, numbered from 0 without gaps.
///
/// A rank is not a process number: several ranks may be threads of one process or tasks of one
/// simulator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Rank(u32);

impl Rank {
    /// Creates the rank with number `index`.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Rank(index)
    }

    /// Returns the rank's number, for indexing arrays.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the rank's number in the form in which it is stored in memory.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// A machine: ranks with the same node share memory and a network interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(u32);

impl Node {
    /// Creates the node with number `index`.
    #[inline]
    pub const fn new(index: u32) -> Self {
        Node(index)
    }

    /// Returns the node's number, for indexing arrays.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}
