//! The division of packing and unpacking among threads of the CPU.
//!
//! A request that [packs](crate::Options::packs) copies blocks to contiguous memory at start, and
//! back at wait. A [`Packing`] divides each such copy into shares of whole blocks, one for each
//! thread. What executes the shares is injected as a [`Packer`], since the protocol starts no
//! threads; [`Packing::cost`] is the time of the same shares in virtual time.
//!
//! # Source
//! H. Murai, M. Sato: An efficient implementation of stencil communication for the XcalableMP PGAS
//! parallel programming language, PGAS 2013, section 4.3 and figure 6.

use crate::{PrdmaError, Result, cost};
use core::{fmt, ops::Range};
use rdma_fabric::Fabric;
use std::sync::{Arc, OnceLock};

/// Executes the shares of a copy.
pub trait Packer: fmt::Debug + Send + Sync {
    /// Returns the number of threads among which copies are divided; 0 counts as 1.
    fn threads(&self) -> usize;

    /// Calls `share` with each number below `shares`, once each, and returns after all calls have
    /// returned. The calls may be made by different threads at the same time.
    fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync));
}

/// The options of packing: the threads, and the size from which they are used.
#[derive(Clone, Debug)]
pub struct Packing {
    /// `None` for the calling thread alone.
    packer: Option<Arc<dyn Packer>>,
    above: u64,
}

/// The division of one copy among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The number of threads that copy, at least 1.
    pub threads: usize,
    /// The number of blocks of the largest share.
    pub blocks: u64,
    /// The bytes of the largest share: those that the copy takes the time of.
    pub bytes: u64,
}

/// The work of copies in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackingCost {
    /// The number of copies that are divided: for each, threads start and end.
    pub forks: u32,
    /// The bytes of the largest share of each copy, added up.
    pub bytes: u64,
}

impl PackingCost {
    /// Charges the time in virtual time; in wall-clock time it is free.
    pub async fn charge(self, fabric: &Fabric) {
        for _ in 0..self.forks {
            fabric.charge(cost::FORK).await;
        }
        if self.bytes > 0 {
            fabric.charge_bytes(cost::PACK, self.bytes as usize).await;
        }
    }
}

impl Default for Packing {
    fn default() -> Self {
        Packing::serial()
    }
}

impl Packing {
    /// Returns packing by the calling thread.
    pub const fn serial() -> Self {
        Packing { packer: None, above: u64::MAX }
    }

    /// Returns packing that divides each copy of more than `above` bytes among the threads of a
    /// packer.
    ///
    /// ```
    /// use prdma_offload::{Packer, Packing, Shares};
    /// use std::{sync::Arc, thread};
    ///
    /// /// Starts threads for each copy; a pool of threads is faster.
    /// #[derive(Debug)]
    /// struct Scoped(usize);
    ///
    /// impl Packer for Scoped {
    ///     fn threads(&self) -> usize {
    ///         self.0
    ///     }
    ///
    ///     fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync)) {
    ///         thread::scope(|scope| {
    ///             for number in 0..shares {
    ///                 scope.spawn(move || share(number));
    ///             }
    ///         });
    ///     }
    /// }
    ///
    /// let packing = Packing::by(Arc::new(Scoped(4)), 4096);
    /// assert_eq!(packing.shares(1000, 8000), Shares { threads: 4, blocks: 250, bytes: 2000 });
    /// assert_eq!(packing.shares(500, 4000).threads, 1);
    /// ```
    pub fn by(packer: Arc<dyn Packer>, above: u64) -> Self {
        Packing { packer: Some(packer), above }
    }

    /// Returns packing for virtual time: copies of more than `above` bytes are divided into shares
    /// for this many threads, which the calling thread executes one after another, and whose time
    /// is [charged](Packing::cost) as that of threads. The machine's `copy_threads`, which divides
    /// the time of all copies, should be 1.
    pub fn modelled(threads: usize, above: u64) -> Self {
        Packing::by(Arc::new(InTurn(threads)), above)
    }

    /// Returns the division of a copy of `blocks` blocks with a total of `bytes` bytes into shares
    /// of equally many whole blocks, the last of which may be smaller.
    pub fn shares(&self, blocks: u64, bytes: u64) -> Shares {
        let packer = self.packer.as_ref().filter(|_| bytes > self.above && blocks > 0);
        let Some(packer) = packer else { return Shares { threads: 1, blocks, bytes } };
        let each = blocks.div_ceil((packer.threads() as u64).clamp(1, blocks));
        Shares { threads: blocks.div_ceil(each) as usize, blocks: each, bytes: bytes / blocks * each }
    }

    /// Returns the cost of copies, each given by its number of blocks and of bytes.
    pub fn cost(&self, copies: impl IntoIterator<Item = (u64, u64)>) -> PackingCost {
        copies.into_iter().fold(PackingCost::default(), |PackingCost { forks, bytes }, copy| {
            let shares = self.shares(copy.0, copy.1);
            PackingCost { forks: forks + u32::from(shares.threads > 1), bytes: bytes + shares.bytes }
        })
    }

    /// Copies `blocks` blocks with a total of `bytes` bytes: `copy` receives the numbers of the
    /// blocks of each share.
    ///
    /// # Errors
    /// The error of `copy` that occurred first; the other shares are copied.
    pub(crate) fn copy(&self, blocks: u64, bytes: u64, copy: impl Fn(Range<u64>) -> Result<()> + Sync) -> Result<()> {
        let shares = self.shares(blocks, bytes);
        let Some(packer) = self.packer.as_ref().filter(|_| shares.threads > 1) else { return copy(0..blocks) };
        let failed: OnceLock<PrdmaError> = OnceLock::new();
        packer.run(shares.threads, &|share| {
            // A packer may call it with any number.
            let first = (share as u64).saturating_mul(shares.blocks).min(blocks);
            if let Err(error) = copy(first..blocks.min(first.saturating_add(shares.blocks))) {
                // A second error adds nothing.
                let _ = failed.set(error);
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }
}

/// Executes shares on the calling thread.
#[derive(Debug)]
struct InTurn(usize);

impl Packer for InTurn {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync)) {
        (0..shares).for_each(share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn shares_are_all_blocks_once() {
        for threads in 0..6 {
            for blocks in 0..20 {
                let (packing, taken) = (Packing::modelled(threads, 0), Mutex::new(Vec::new()));
                let copied = packing.copy(blocks, 24 * blocks, |share| {
                    taken.lock().expect("one thread").push(share);
                    Ok(())
                });
                copied.expect("nothing fails");
                let (taken, shares) = (taken.into_inner().expect("one thread"), packing.shares(blocks, 24 * blocks));
                assert_eq!(taken.len(), shares.threads, "{blocks} blocks by {threads}");
                assert!(shares.threads <= threads.max(1) && shares.bytes == 24 * shares.blocks);
                assert_eq!(taken.iter().map(|share| share.end - share.start).max(), Some(shares.blocks));
                assert!(taken.windows(2).all(|two| two[0].end == two[1].start && two[1].start < two[1].end));
                assert_eq!((taken[0].start, taken[taken.len() - 1].end), (0, blocks));
            }
        }
    }

    #[test]
    fn short_copies_are_not_divided() {
        let packing = Packing::modelled(4, 1000);
        assert_eq!(packing.shares(10, 1000), Shares { threads: 1, blocks: 10, bytes: 1000 });
        assert_eq!(packing.shares(10, 1010), Shares { threads: 4, blocks: 3, bytes: 303 });
        assert_eq!(Packing::default().shares(10, 1 << 40).threads, 1);
    }

    #[test]
    fn an_error_of_a_share_is_returned() {
        let packing = Packing::modelled(3, 0);
        let error = || PrdmaError::ElsewhereFailed;
        assert_eq!(packing.copy(9, 9, |share| if share.start == 3 { Err(error()) } else { Ok(()) }), Err(error()));
    }
}
