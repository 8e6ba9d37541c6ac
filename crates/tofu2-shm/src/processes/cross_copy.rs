//! Bytes of another process's memory, and copies of them through the operating system. Long copies
//! are made in parts: one call moves a limited number of bytes, possibly fewer than requested.

use super::peer_memory::PeerMemory;
use crate::memory::Piece;
use rdma_fabric::{FabricError, RemoteAddr, Result, error::CrossCopy};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::sync::Arc;

/// The maximum number of bytes that one system call moves: Linux's `MAX_RW_COUNT` with 64 KiB
/// pages, the largest.
pub(crate) const LONGEST_CALL: usize = 0x7fff_0000;

/// Why a transfer stopped before its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stopped<E> {
    /// Bytes moved before it stopped.
    pub(crate) moved: usize,
    /// The error of the last call; `None` if the call moved nothing.
    pub(crate) error: Option<E>,
}

/// Moves `len` bytes by calling `copy` with the number of bytes already moved and the number to
/// move, at most `most` (not 0). `copy` returns the number of bytes that it moved.
pub(crate) fn in_parts<E>(
    len: usize,
    most: usize,
    mut copy: impl FnMut(usize, usize) -> Result<usize, E>,
) -> Result<(), Stopped<E>> {
    let mut moved = 0;
    while moved < len {
        match copy(moved, (len - moved).min(most)) {
            Ok(0) => return Err(Stopped { moved, error: None }),
            // Never more than requested, regardless of what `copy` returns.
            Ok(more) => moved += more.min(len - moved).min(most),
            Err(error) => return Err(Stopped { moved, error: Some(error) }),
        }
    }
    Ok(())
}

/// Bytes of another process's memory.
#[derive(Clone, Debug)]
pub(crate) struct CrossPlace {
    pub(super) peer: Arc<PeerMemory>,
    /// Covers no bytes of the owner's segment, only its region's generation.
    pub(super) life: Piece,
    /// The address from which `len` bytes were registered. Their end does not overflow.
    pub(super) address: u64,
    pub(super) len: usize,
}

impl CrossPlace {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn life(&self) -> &Piece {
        &self.life
    }

    /// Returns the `len` bytes from `offset` on.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        offset.checked_add(len).filter(|&end| end <= self.len)?;
        Some(CrossPlace { address: self.address + offset as u64, len, ..self.clone() })
    }

    /// Fills the place at `addr` from `bytes` of the same length. The caller has announced that it
    /// is inside.
    pub(crate) fn write(&self, bytes: &[u8], addr: RemoteAddr) -> Result<()> {
        let copied = in_parts(bytes.len().min(self.len), LONGEST_CALL, |done, part| {
            retry_on_intr(|| pwrite(&self.peer.image, &bytes[done..done + part], self.address + done as u64))
        });
        copied.map_err(|stopped| self.failure("pwrite", stopped, addr))
    }

    /// Fills `bytes`, which have the same length, from the place.
    pub(crate) fn read(&self, bytes: &mut [u8], addr: RemoteAddr) -> Result<()> {
        let copied = in_parts(bytes.len().min(self.len), LONGEST_CALL, |done, part| {
            retry_on_intr(|| pread(&self.peer.image, &mut bytes[done..done + part], self.address + done as u64))
        });
        copied.map_err(|stopped| self.failure("pread", stopped, addr))
    }

    #[cold]
    fn failure(&self, call: &'static str, stopped: Stopped<Errno>, addr: RemoteAddr) -> FabricError {
        let rank = addr.rank;
        match stopped.error {
            // The image no longer exists, and neither does the process.
            None => FabricError::PeerLost { rank },
            Some(errno) => FabricError::from(CrossCopy {
                addr,
                len: self.len as u64,
                moved: stopped.moved as u64,
                call,
                errno: errno.raw_os_error(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lengths around every limit of a network or system.
    fn limits() -> impl Iterator<Item = usize> {
        let around = |limit: u64| [limit - 1, limit, limit + 1];
        let limits = [1 << 24, LONGEST_CALL as u64, 1 << 31, 1 << 32, (1 << 32) + 4099, 3 << 32];
        limits.into_iter().flat_map(around).filter_map(|len| usize::try_from(len).ok())
    }

    #[test]
    fn parts_are_adjacent_and_complete() {
        for len in limits().chain([0, 1]) {
            for most in [16_777_215, LONGEST_CALL, usize::MAX] {
                let (mut end, mut calls) = (0, 0);
                let outcome = in_parts(len, most, |done, part| {
                    assert!(done == end && part > 0 && part <= most && part <= len - done, "{done} {part} of {len}");
                    (end, calls) = (done + part, calls + 1);
                    Ok::<_, ()>(part)
                });
                assert_eq!((outcome, end, calls), (Ok(()), len, len.div_ceil(most)));
            }
        }
    }

    proptest! {
        /// Calls may move any part of the requested bytes, and fail anywhere.
        #[test]
        fn partial_calls_lose_nothing(
            len in 0usize..1 << 33, most in 1usize << 24..1 << 32, shares in prop::collection::vec(1u64..=100, 1..20), fails_at in 0usize..40,
        ) {
            let (mut end, mut calls) = (0, 0);
            let outcome = in_parts(len, most, |done, part| {
                assert_eq!(done, end);
                if calls == fails_at {
                    return Err("refused");
                }
                let moved = ((part as u128 * u128::from(shares[calls % shares.len()]) / 100) as usize).max(1);
                (end, calls) = (done + moved, calls + 1);
                Ok(moved)
            });
            match outcome {
                Ok(()) => prop_assert_eq!(end, len),
                Err(stopped) => {
                    prop_assert!(end < len && calls == fails_at);
                    prop_assert_eq!(stopped, Stopped { moved: end, error: Some("refused") });
                }
            }
        }
    }

    #[test]
    fn a_call_that_moves_nothing_ends_it() {
        let outcome = in_parts(10, 4, |done, part| Ok::<_, ()>(if done < 4 { part } else { 0 }));
        assert_eq!(outcome, Err(Stopped { moved: 4, error: None }));
    }
}
