//! Memory for containers: any rank allocates from, and frees in, any rank's heap.
//!
//! # Words
//! A heap is [`Options::heap_bytes`](crate::Options::heap_bytes) long. Offsets in bytes:
//! ```text
//!   0  lock word
//!   8  first free block   } the free list is a ring: a block at 0 without a mark, which has
//!  16  last free block    } links only
//!  24  fence: the mark of a used block of 8 bytes; 0 before the first use
//!  32  blocks, each with its mark at both ends
//! end  fence
//! ```
//! A free block has its links, next and previous, behind its first mark; a used block has the
//! caller's bytes there. Two free blocks are never adjacent: a freed block is merged with its free
//! neighbours.
//!
//! # Concurrent use
//! Any rank may call at any time. Each call holds the lock word of the heap that it changes, so
//! calls on one heap run one after another, and calls on different heaps concurrently.
//!
//! # Deaths
//! If a rank is lost inside a call, the list may be half changed: from then on every call on that
//! heap returns [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost) of that rank.
//! Existing allocations in it are unchanged and can be used.

#![deny(clippy::arithmetic_side_effects)]

mod blocks;
mod boundary_tag;

use super::{lock::locked, mapped::MappedHeap};
use crate::{Acp, AcpError, GlobalAddress, Result, address::Tag};
pub(super) use blocks::Heap;
use core::pin::pin;
use rdma_fabric::{Rank, provider::Boxed};

impl Acp {
    /// Allocates `bytes` bytes in a rank's heap, which need not be this rank's. They are aligned to
    /// 8 bytes and not cleared; each allocation, even one of 0 bytes, has its own address. Any rank
    /// that knows the address may [free](Acp::free) it. Neighbouring allocations in the heap are at
    /// least 16 bytes apart.
    ///
    /// If the future is dropped, its allocation is freed by the next call of this rank on that
    /// heap.
    ///
    /// # Errors
    /// [`AcpError::HeapExhausted`]; [`AcpError::NoSuchRank`]; [`AcpError::Damaged`] if a write
    /// beyond an allocation has damaged the heap; [`AcpError::Fabric`] with
    /// [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost) of the rank itself, or of one
    /// that was lost while it changed the heap.
    pub async fn malloc(&self, bytes: usize, rank: Rank) -> Result<GlobalAddress> {
        match self.malloc_now(bytes, rank) {
            Some(allocated) => allocated,
            None => self.malloc_later(bytes, rank).await,
        }
    }

    fn malloc_now(&self, bytes: usize, rank: Rank) -> Option<Result<GlobalAddress>> {
        let heap = self.heap(rank).ok()?;
        self.mapped(heap.lock_word(), |mapped| heap.malloc_now(mapped, bytes))
    }

    fn malloc_later(&self, bytes: usize, rank: Rank) -> Boxed<'_, Result<GlobalAddress>> {
        Box::pin(async move {
            let heap = self.heap(rank)?;
            let exhausted = AcpError::HeapExhausted { rank, bytes: bytes as u64 };
            let need = heap.block_for(bytes).ok_or(exhausted.clone())?;
            let taken = locked(self, heap.lock_word(), |acp, unawaited| async move {
                heap.give_unclaimed(&acp).await?;
                let taken = heap.take(&acp, need).await?;
                if let Some(block) = taken {
                    acp.with(|state| state.unclaimed.push((block, unawaited)))?;
                }
                Ok(taken)
            });
            let taken = taken.await?.ok_or(exhausted)?;
            self.with(|state| state.unclaimed.retain(|(block, _)| *block != taken))?;
            Ok(taken)
        })
    }

    /// Frees an allocation of [`Acp::malloc`], in the heap of any rank. If the future is dropped,
    /// either the bytes are freed, or nothing has changed.
    ///
    /// # Errors
    /// [`AcpError::NotAllocated`], in which case nothing has changed; otherwise as [`Acp::malloc`].
    pub async fn free(&self, address: GlobalAddress) -> Result<()> {
        match self.free_now(address) {
            Some(freed) => freed,
            None => self.free_later(address).await,
        }
    }

    fn free_now(&self, address: GlobalAddress) -> Option<Result<()>> {
        let heap = self.heap(address.rank()).ok()?;
        let is_possible = address.tag() == Tag::HEAP && heap.may_start_at(address);
        is_possible.then_some(())?;
        self.mapped(heap.lock_word(), |mapped| match mapped.unclaimed {
            1.. => None,
            0 => mapped.locked(heap.lock_word(), pin!(heap.give(&mapped, address))),
        })
    }

    fn free_later(&self, address: GlobalAddress) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let heap = self.heap(address.rank())?;
            if address.tag() != Tag::HEAP || !heap.may_start_at(address) {
                return Err(AcpError::NotAllocated { address });
            }
            locked(self, heap.lock_word(), |acp, _| async move {
                heap.give_unclaimed(&acp).await?;
                heap.give(&acp, address).await
            })
            .await
        })
    }

    pub(super) fn heap(&self, rank: Rank) -> Result<Heap> {
        Ok(Heap::new(self.reserved(rank, Tag::HEAP)?, self.options().heap_bytes))
    }
}

impl Heap {
    /// Allocates without waiting. Returns `None`, with no effect, where only [`Acp::malloc`] can
    /// allocate or report the error.
    pub(super) fn malloc_now(&self, mapped: MappedHeap<'_>, bytes: usize) -> Option<Result<GlobalAddress>> {
        let need = self.block_for(bytes).filter(|_| mapped.unclaimed == 0)?;
        mapped.locked(self.lock_word(), pin!(self.take(&mapped, need)))?.transpose()
    }
}
