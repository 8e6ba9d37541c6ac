//! One array of bytes over the memory of all ranks.

use crate::{Acp, AcpError, GlobalAddress, Key, Result};
use core::{fmt, future::Future};
use rdma_fabric::{Pod, Rank, provider::Boxed};

/// How a [`WorkSpace`] lies over the ranks: so many bytes at the first rank, as many at the next,
/// and so on; after the last rank comes rank 0, and after a round the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// The rank that has the first bytes.
    pub first_rank: Rank,
    /// How many bytes of a round each rank has, at least 1.
    pub bytes_per_rank: usize,
}

impl Default for Striping {
    /// 1 MiB at each rank, from rank 0 on.
    fn default() -> Self {
        Striping { first_rank: Rank::new(0), bytes_per_rank: 1 << 20 }
    }
}

/// Where the bytes of a work space are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stripes {
    bytes: u64,
    first: u64,
    unit: u64,
    ranks: u64,
}

/// Bytes of a work space that are one after another in one part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    rank: u64,
    /// Where in the rank's part.
    at: u64,
    bytes: u64,
}

impl Stripes {
    /// Returns how many bytes a rank has.
    fn share(&self, rank: u64) -> u64 {
        let turn = (rank + self.ranks - self.first) % self.ranks;
        let whole = self.bytes / self.unit;
        let rest = if whole % self.ranks == turn { self.bytes % self.unit } else { 0 };
        (whole + self.ranks - 1 - turn) / self.ranks * self.unit + rest
    }

    /// Returns where a byte is that exists, and how many follow it there.
    fn run(&self, position: u64) -> Run {
        let (block, within) = (position / self.unit, position % self.unit);
        Run {
            rank: (self.first + block) % self.ranks,
            at: block / self.ranks * self.unit + within,
            bytes: (self.unit - within).min(self.bytes - position),
        }
    }
}

/// An array of bytes that is spread over the ranks, each of which may read and write all of it.
///
/// A value takes 8 bytes for each rank. All bytes are 0 at first. Calls are not ordered among each
/// other or among ranks, except that each ends when its effect is visible: if several ranks write
/// the same bytes at the same time, each byte is what one of them wrote. For more than that, there
/// are [atomics](Acp::atomic) on [addresses](WorkSpace::address).
pub struct WorkSpace {
    acp: Acp,
    stripes: Stripes,
    /// Where each rank's part begins.
    parts: Box<[Option<GlobalAddress>]>,
    own: Option<Key>,
}

impl fmt::Debug for WorkSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkSpace({:?})", self.stripes)
    }
}

impl WorkSpace {
    /// Makes a work space of so many bytes, with the default [`Striping`]. Collective.
    ///
    /// # Errors
    /// As [`WorkSpace::create_with`].
    pub fn create(acp: &Acp, bytes: usize) -> impl Future<Output = Result<Self>> {
        Self::create_with(acp, bytes, Striping::default())
    }

    /// Makes a work space. Collective: all ranks give the same. Each rank registers its part as one
    /// region.
    ///
    /// # Errors
    /// At all ranks, and nothing is kept: [`AcpError::NoPart`] if another rank could not register
    /// its part or asked for something else, and at that rank the reason, as of [`Acp::allocate`];
    /// [`AcpError::NoSuchRank`]; [`AcpError::Option`]; what [`Acp::sync`] meets.
    pub fn create_with(acp: &Acp, bytes: usize, striping: Striping) -> impl Future<Output = Result<Self>> {
        let made: Boxed<'_, Result<Self>> = Box::pin(async move {
            let asked = [bytes as u64, u64::from(striping.first_rank.number()), striping.bytes_per_rank as u64];
            let own = allocate(acp, asked);
            let address = match &own {
                Ok(Some(key)) => acp.address(*key, 0)?.to_bits(),
                Ok(None) => 0,
                // No address of any rank.
                Err(_) => 1,
            };
            let gathered = acp.gather("a work space", [asked[0], asked[1], asked[2], address]).await;
            let parts = own.clone().and_then(|_| agreed(&gathered?, asked));
            match (parts, own) {
                (Ok(parts), Ok(own)) => Ok(WorkSpace { acp: acp.clone(), stripes: stripes(acp, asked)?, parts, own }),
                (Err(error), Ok(Some(key))) => acp.unregister(key).and(Err(error)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        });
        made
    }

    /// Frees the work space, when all ranks have come here. Collective.
    ///
    /// # Errors
    /// What [`Acp::sync`] meets; this rank's part is freed all the same.
    pub fn destroy(self) -> impl Future<Output = Result<()>> {
        let destroyed: Boxed<'static, Result<()>> = Box::pin(async move {
            let met = self.acp.sync().await;
            let freed = self.own.map_or(Ok(()), |key| self.acp.unregister(key));
            met.and(freed)
        });
        destroyed
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.stripes.bytes as usize
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.stripes.bytes == 0
    }

    /// Returns where a byte is, and how many bytes follow there, with itself, before the next ones
    /// are somewhere else.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`].
    pub fn address(&self, position: usize) -> Result<(GlobalAddress, usize)> {
        self.check(position, 1)?;
        let Run { rank, at, bytes } = self.stripes.run(position as u64);
        let part = self.parts[rank as usize].ok_or(AcpError::NoPart { rank: Rank::new(rank as u32) })?;
        Ok((part.offset_by(at)?, bytes as usize))
    }

    /// Reads from a position, in bytes, on.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], and nothing is read; what [`Acp::read`] meets.
    pub fn read<'a, T: Pod>(&'a self, position: usize, into: &'a mut [T]) -> impl Future<Output = Result<()>> + 'a {
        self.read_bytes(position, bytemuck::cast_slice_mut(into))
    }

    /// Writes from a position, in bytes, on.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], and nothing is written; what [`Acp::write`] meets.
    pub fn write<'a, T: Pod>(&'a self, position: usize, from: &'a [T]) -> impl Future<Output = Result<()>> + 'a {
        self.write_bytes(position, bytemuck::cast_slice(from))
    }

    /// Copies bytes from a position on to global memory of any rank.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], and nothing is copied; as [`Acp::copy`].
    pub fn copy_to(&self, position: usize, to: GlobalAddress, bytes: usize) -> impl Future<Output = Result<()>> {
        self.copied(position, to, bytes, false)
    }

    /// Copies bytes of global memory of any rank to a position.
    ///
    /// # Errors
    /// As [`WorkSpace::copy_to`].
    pub fn copy_from(&self, position: usize, from: GlobalAddress, bytes: usize) -> impl Future<Output = Result<()>> {
        self.copied(position, from, bytes, true)
    }

    fn read_bytes<'a>(&'a self, mut position: usize, mut into: &'a mut [u8]) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.check(position, into.len())?;
            while !into.is_empty() {
                let (from, bytes) = self.address(position)?;
                let (part, rest) = into.split_at_mut(bytes.min(into.len()));
                self.acp.read(from, part).await?;
                (position, into) = (position + part.len(), rest);
            }
            Ok(())
        })
    }

    fn write_bytes<'a>(&'a self, mut position: usize, mut from: &'a [u8]) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            self.check(position, from.len())?;
            while !from.is_empty() {
                let (to, bytes) = self.address(position)?;
                let (part, rest) = from.split_at(bytes.min(from.len()));
                self.acp.write(to, part).await?;
                (position, from) = (position + part.len(), rest);
            }
            Ok(())
        })
    }

    fn copied(&self, position: usize, other: GlobalAddress, bytes: usize, inwards: bool) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            self.check(position, bytes)?;
            let mut done = 0;
            while done < bytes {
                let (here, run) = self.address(position + done)?;
                let (there, part) = (other.offset_by(done as u64)?, run.min(bytes - done));
                let (to, from) = if inwards { (here, there) } else { (there, here) };
                self.acp.moved(to, from, part).await?;
                done += part;
            }
            Ok(())
        })
    }

    fn check(&self, position: usize, bytes: usize) -> Result<()> {
        let end = (position as u64).saturating_add(bytes as u64);
        let len = self.stripes.bytes;
        if end <= len { Ok(()) } else { Err(AcpError::OutOfRange { position: end, len }) }
    }
}

/// Returns where the bytes are to be, if that is possible.
fn stripes(acp: &Acp, [bytes, first, unit]: [u64; 3]) -> Result<Stripes> {
    let ranks = acp.ranks();
    match unit {
        0 => Err(AcpError::option("bytes_per_rank", "at least 1", 0)),
        _ if first >= ranks as u64 => Err(AcpError::NoSuchRank { rank: Rank::new(first as u32), ranks }),
        _ => Ok(Stripes { bytes, first, unit, ranks: ranks as u64 }),
    }
}

/// Registers this rank's part, if it has one.
fn allocate(acp: &Acp, asked: [u64; 3]) -> Result<Option<Key>> {
    match stripes(acp, asked)?.share(u64::from(acp.rank().number())) {
        0 => Ok(None),
        share => acp.allocate(share as usize, 0).map(Some),
    }
}

/// Returns where all ranks' parts are, if all have asked for the same and have registered theirs.
fn agreed(gathered: &[[u64; 4]], asked: [u64; 3]) -> Result<Box<[Option<GlobalAddress>]>> {
    let mut parts = vec![None; gathered.len()];
    for (place, [bytes, first, unit, address]) in gathered.iter().enumerate() {
        let part = GlobalAddress::from_bits(*address);
        if [*bytes, *first, *unit] != asked || (part.is_none() && *address != 0) {
            return Err(AcpError::NoPart { rank: Rank::new(place as u32) });
        }
        if let Some(part) = part {
            parts[part.rank().index()] = Some(part);
        }
    }
    Ok(parts.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte has a place of its own, and each rank has as many as it needs.
        #[test]
        fn stripes_cover_all_bytes(bytes in 0u64..300, first in 0u64..5, unit in 1u64..40, more in 0u64..3) {
            let stripes = Stripes { bytes, first, unit, ranks: first + 1 + more };
            let mut places: Vec<Vec<bool>> =
                (0..stripes.ranks).map(|rank| vec![false; stripes.share(rank) as usize]).collect();
            let mut position = 0;
            while position < bytes {
                let run = stripes.run(position);
                for at in run.at..run.at + run.bytes {
                    let place = &mut places[run.rank as usize][at as usize];
                    prop_assert!(!*place);
                    *place = true;
                }
                prop_assert_eq!(Run { at: run.at + run.bytes - 1, bytes: 1, ..run }, stripes.run(position + run.bytes - 1));
                position += run.bytes;
            }
            prop_assert!(places.iter().flatten().all(|place| *place));
        }
    }
}
