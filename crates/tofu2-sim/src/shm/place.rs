//! A resolved place: what the contract's pointers hold.

use super::mapping::Piece;
use core::fmt;
use rdma_fabric::{FabricError, Location, Rank, RemoteAddr};

/// Some bytes of one region of some rank, checked when they were resolved. Keeps the segment mapped, not the region
/// registered.
#[derive(Clone)]
pub struct Place {
    pub(super) piece: Piece,
    /// Address of the first byte.
    addr: RemoteAddr,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} {:?}+{}, {} bytes)", self.addr.rank, self.addr.region, self.addr.offset, self.piece.len())
    }
}

impl Place {
    pub(super) fn new(piece: Piece, addr: RemoteAddr) -> Self {
        Place { piece, addr }
    }

    /// Why an access of `len` bytes, aligned to `align`, was refused.
    #[cold]
    pub(super) fn refusal(&self, len: usize, align: usize) -> FabricError {
        let RemoteAddr { rank, region, offset } = self.addr;
        if self.piece.is_lost() {
            FabricError::PeerLost { rank }
        } else if self.piece.is_stale() {
            FabricError::StaleRegion { rank, region }
        } else if self.piece.len() != len {
            FabricError::LengthMismatch { have: len, want: self.piece.len() }
        } else {
            FabricError::Misaligned { rank, region, offset, align }
        }
    }
}

impl Location for Place {
    #[inline]
    fn rank(&self) -> Rank {
        self.addr.rank
    }

    #[inline]
    fn addr(&self) -> RemoteAddr {
        self.addr
    }

    #[inline]
    fn len(&self) -> usize {
        self.piece.len()
    }

    fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let piece = self.piece.part(offset, len)?;
        // Inside the piece, so it can't overflow.
        Some(Place { piece, addr: RemoteAddr { offset: self.addr.offset + offset as u64, ..self.addr } })
    }
}
