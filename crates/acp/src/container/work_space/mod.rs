//! One array of bytes over the memory of all ranks.

#![deny(clippy::arithmetic_side_effects)]

mod stripes;

use crate::{Acp, AcpError, GlobalAddress, Key, Result};
use core::{fmt, future::Future, num::NonZeroU64};
use rdma_fabric::{Pod, Rank, provider::Boxed};
use stripes::{Run, Stripes};

/// The distribution of a [`WorkSpace`] over the ranks: round-robin blocks of `bytes_per_rank`
/// bytes, starting at `first_rank`; rank 0 follows the last rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// The rank that has the first bytes.
    pub first_rank: Rank,
    /// The size of a block, at least 1.
    pub bytes_per_rank: usize,
}

impl Default for Striping {
    /// 1 MiB at each rank, from rank 0 on.
    fn default() -> Self {
        Striping { first_rank: Rank::new(0), bytes_per_rank: 1 << 20 }
    }
}

/// An array of bytes that is distributed over the ranks, each of which may read and write all of
/// it.
///
/// A value of this type takes 8 bytes for each rank. All bytes are initially 0. Calls are not
/// ordered with each other or between ranks, except that each returns when its effect is visible:
/// if several ranks write the same bytes at the same time, each byte is that of one of them. For
/// stronger guarantees, use [atomics](Acp::atomic) on [addresses](WorkSpace::address).
pub struct WorkSpace {
    acp: Acp,
    stripes: Stripes,
    /// The address of each rank's part.
    parts: Box<[Option<GlobalAddress>]>,
    own: Option<Key>,
}

impl fmt::Debug for WorkSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkSpace({:?})", self.stripes)
    }
}

impl WorkSpace {
    /// Creates a work space of `bytes` bytes, with the default [`Striping`]. Collective.
    ///
    /// # Errors
    /// As [`WorkSpace::create_with`].
    pub fn create(acp: &Acp, bytes: usize) -> impl Future<Output = Result<Self>> {
        Self::create_with(acp, bytes, Striping::default())
    }

    /// Creates a work space. Collective: all ranks pass the same arguments. Each rank registers its
    /// part as one region.
    ///
    /// # Errors
    /// At all ranks, with nothing kept: [`AcpError::NoPart`] if another rank could not register its
    /// part or passed other arguments, and at that rank the reason, as of [`Acp::allocate`];
    /// [`AcpError::NoSuchRank`]; [`AcpError::Option`]; the errors of [`Acp::sync`].
    pub fn create_with(acp: &Acp, bytes: usize, striping: Striping) -> impl Future<Output = Result<Self>> {
        let made: Boxed<'_, Result<Self>> = Box::pin(async move {
            let asked = [bytes as u64, u64::from(striping.first_rank.number()), striping.bytes_per_rank as u64];
            let own = allocate(acp, asked);
            let address = match &own {
                Ok(Some(key)) => acp.address(*key, 0)?.to_bits(),
                Ok(None) => 0,
                // Not an address of any rank.
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

    /// Frees the work space once all ranks have called it. Collective.
    ///
    /// # Errors
    /// The errors of [`Acp::sync`]; this rank's part is freed in any case.
    pub fn destroy(self) -> impl Future<Output = Result<()>> {
        let destroyed: Boxed<'static, Result<()>> = Box::pin(async move {
            let met = self.acp.sync().await;
            let freed = self.own.map_or(Ok(()), |key| self.acp.unregister(key));
            met.and(freed)
        });
        destroyed
    }

    /// Frees this rank's part without waiting for the other ranks, whose accesses to it fail from
    /// now on.
    ///
    /// # Errors
    /// As [`Acp::unregister`].
    pub fn release(self) -> Result<()> {
        self.own.map_or(Ok(()), |key| self.acp.unregister(key))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.stripes.bytes as usize
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.stripes.bytes == 0
    }

    /// Returns the address of a byte, and the number of consecutive bytes from it on, itself
    /// included.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`].
    pub fn address(&self, position: usize) -> Result<(GlobalAddress, usize)> {
        self.check(position, 1)?;
        let Run { rank, at, bytes } = self.stripes.run(position as u64);
        let part = self.parts[rank as usize].ok_or(AcpError::NoPart { rank: Rank::new(rank as u32) })?;
        Ok((part.offset_by(at)?, bytes as usize))
    }

    /// Reads, starting at a position in bytes.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], in which case nothing is read; the errors of [`Acp::read`].
    pub fn read<'a, T: Pod>(&'a self, position: usize, into: &'a mut [T]) -> impl Future<Output = Result<()>> + 'a {
        self.read_bytes(position, bytemuck::cast_slice_mut(into))
    }

    /// Writes, starting at a position in bytes.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], in which case nothing is written; the errors of [`Acp::write`].
    pub fn write<'a, T: Pod>(&'a self, position: usize, from: &'a [T]) -> impl Future<Output = Result<()>> + 'a {
        self.write_bytes(position, bytemuck::cast_slice(from))
    }

    /// Copies bytes, starting at a position, to global memory of any rank.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], in which case nothing is copied; as [`Acp::copy`].
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

    #[expect(clippy::arithmetic_side_effects, reason = "inside the work space")]
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

    #[expect(clippy::arithmetic_side_effects, reason = "inside the work space")]
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

    #[expect(clippy::arithmetic_side_effects, reason = "inside the work space")]
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

/// Returns the distribution, if the arguments are valid.
fn stripes(acp: &Acp, [bytes, first, unit]: [u64; 3]) -> Result<Stripes> {
    let ranks = acp.ranks();
    let unit = NonZeroU64::new(unit).ok_or_else(|| AcpError::option("bytes_per_rank", "at least 1", 0))?;
    match NonZeroU64::new(ranks as u64) {
        Some(ranks) if first < ranks.get() => Ok(Stripes { bytes, first, unit, ranks }),
        _ => Err(AcpError::NoSuchRank { rank: Rank::new(first as u32), ranks }),
    }
}

/// Registers this rank's part, if it has one.
fn allocate(acp: &Acp, asked: [u64; 3]) -> Result<Option<Key>> {
    match stripes(acp, asked)?.share(u64::from(acp.rank().number())) {
        0 => Ok(None),
        share => acp.allocate(share as usize, 0).map(Some),
    }
}

/// Returns the addresses of all ranks' parts, if all have passed the same arguments and have
/// registered their parts.
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
