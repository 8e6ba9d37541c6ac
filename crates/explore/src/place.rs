//! Resolved places.

use rdma_fabric::{Location, Rank, RemoteAddr};

/// Some bytes of one rank.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) addr: RemoteAddr,
    pub(crate) len: usize,
}

impl Location for Place {
    fn rank(&self) -> Rank {
        self.addr.rank
    }
    fn addr(&self) -> RemoteAddr {
        self.addr
    }
    fn len(&self) -> usize {
        self.len
    }
    fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        inside.then(|| Place { addr: RemoteAddr { offset: self.addr.offset + offset as u64, ..self.addr }, len })
    }
}
