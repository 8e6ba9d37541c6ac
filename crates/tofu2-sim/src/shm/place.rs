//! A resolved place: what the contract's pointers hold.

use super::{existing::Outside, mapping::Piece};
use core::fmt;
use rdma_fabric::{FabricError, Location, Rank, RemoteAddr};

/// Some bytes of one region of some rank, checked when they were resolved. Keeps the segment mapped, not the region
/// registered.
#[derive(Clone)]
pub struct Place {
    /// The bytes; if they are outside the segment, what [`Mapping::stand_in`](super::mapping::Mapping::stand_in) makes.
    pub(super) piece: Piece,
    /// Address of the first byte.
    addr: RemoteAddr,
    /// The bytes, if they are memory that existed before it was registered.
    outside: Option<Outside>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({} {:?}+{}, {} bytes)", self.addr.rank, self.addr.region, self.addr.offset, self.len())
    }
}

impl Place {
    pub(super) fn new(piece: Piece, addr: RemoteAddr) -> Self {
        Place { piece, addr, outside: None }
    }

    /// Memory that existed before it was registered; `stand_in` is for its table entry.
    pub(super) fn outside_of(stand_in: Piece, addr: RemoteAddr, outside: Outside) -> Self {
        Place { piece: stand_in, addr, outside: Some(outside) }
    }

    pub(super) fn outside(&self) -> Option<&Outside> {
        self.outside.as_ref()
    }

    /// What tells whether the place may still be used.
    fn life(&self) -> &Piece {
        self.outside.as_ref().map_or(&self.piece, Outside::life)
    }

    /// Whether its rank lives and its region is registered.
    pub(super) fn is_fit(&self) -> bool {
        !(self.life().is_lost() || self.life().is_stale())
    }

    /// Why an access of `len` bytes, aligned to `align`, was refused.
    #[cold]
    pub(super) fn refusal(&self, len: usize, align: usize) -> FabricError {
        let RemoteAddr { rank, region, offset } = self.addr;
        if self.life().is_lost() {
            FabricError::PeerLost { rank }
        } else if self.life().is_stale() {
            FabricError::StaleRegion { rank, region }
        } else if self.len() != len {
            FabricError::LengthMismatch { have: len, want: self.len() }
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
        self.outside.as_ref().map_or_else(|| self.piece.len(), Outside::len)
    }

    fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let (piece, outside) = match &self.outside {
            None => (self.piece.part(offset, len)?, None),
            Some(outside) => (self.piece.clone(), Some(outside.part(offset, len)?)),
        };
        // Inside the place, so it can't overflow.
        Some(Place { piece, addr: RemoteAddr { offset: self.addr.offset + offset as u64, ..self.addr }, outside })
    }
}
