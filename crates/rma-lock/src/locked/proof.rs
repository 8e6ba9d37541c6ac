//! Creates references from a held lock: all the `unsafe` code of this crate.
//!
//! # Safety
//! A reference into a rank's memory is created from a [`Mapped`](rdma_fabric::Mapped), whose
//! validity the fabric guarantees, under a guard, whose exclusion the lock guarantees
//! ([`Excludes`]). This crate's part of the argument:
//!
//! * The memory and the lock's words are allocated under access policies that allow references here
//!   and
//!   nowhere else. The access policies' names encode the discipline, the lock's home and the element's size,
//!   and for the words also the memory that they protect. So all ranks that have a part of one
//!   region protect it by one lock of one kind, regardless of the order in which they create
//!   several regions.
//! * The handles, regions and places stay in [`super::Memory`] and in the lock, which users cannot
//!   access: [`Locked`](super::Locked) does not lend any of them. The operations of guards complete
//!   when they are posted ([`rdma_fabric::Mapped::new`]), and the guards are borrowed in the
//!   meantime.
//! * A guard of this module exists only together with the lock's own guard, of the same lock, and
//!   is not cloned. References borrow the guard; `&mut` references borrow it exclusively, with at
//!   most one for each rank. Releasing consumes the guard; a leaked guard holds the lock forever.
//! * The header, which operations may write at any time, is outside all references.

#![allow(unsafe_code)]

use super::{
    Element,
    guard::{LockedReadGuard, LockedWriteGuard},
    memory::HEADER,
};
use crate::{
    Result, RmaLock,
    locks::{BackOffLock, FairLock, PackedLock, RpLock, WindowLock, WritersFirstLock},
};
use core::slice;
use rdma_fabric::{AccessPolicy, Mapped, Rank, RegionKey};

/// A lock on which references to memory may rely.
///
/// [`crate::Locked`] provides `&mut` to memory of other ranks solely because it holds this lock.
///
/// # Safety
/// If all ranks have created the lock with the same fabric memory, home and kind, then, over a
/// fabric that fulfils its contract, and regardless of actions of safe code and deaths of ranks:
/// * while a value of `Exclusive` exists, or has been forgotten, no other value of `Shared` or
///   `Exclusive` exists at any rank; nor after its holder has been lost: a lock that revokes a hold
///   must know that the holder no longer runs;
/// * everything that a holder did before it released the lock happens before everything that the
///   next holder does;
/// * all its words are in symmetric memory of the fabric with which it was created, and that fabric
///   and those words are accessible only through a value of the lock or a guard;
/// * no other lock has its [`Excludes::DISCIPLINE`].
pub unsafe trait Excludes: RmaLock {
    /// The lock's number. This crate's numbers are below 1000.
    const DISCIPLINE: u32;
}

// SAFETY: `docs/evidence/verification.md`: exclusion and visibility are explored in every order of
// delivery, with dropped futures and lost ranks; a lost holder's lock is never passed on. Its
// words, and the clone of its fabric, are private except through `RpLock::fabric` and
// `guard.lock()`.
unsafe impl Excludes for RpLock {
    const DISCIPLINE: u32 = 1;
}

// SAFETY: as for `RpLock`; the word cannot be taken back from a lost holder.
unsafe impl Excludes for BackOffLock {
    const DISCIPLINE: u32 = 2;
}

// SAFETY: as for `BackOffLock`. As an `RmaLock` it takes its home exclusively, and all ranks
// shared; the two exclude each other.
unsafe impl Excludes for WindowLock {
    const DISCIPLINE: u32 = 3;
}

// SAFETY: as for `RpLock`, whose steps it executes with another home word.
unsafe impl Excludes for PackedLock {
    const DISCIPLINE: u32 = 4;
}

// SAFETY: as for `PackedLock`.
unsafe impl Excludes for WritersFirstLock {
    const DISCIPLINE: u32 = 5;
}

// SAFETY: explored in the same way as `RpLock`; a lost holder's lock is never passed on.
unsafe impl Excludes for FairLock {
    const DISCIPLINE: u32 = 6;
}

/// The distinguishing part of this crate's access policies.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// The memory, with elements of this number of bytes.
    Data { element: usize },
    /// The words of the lock of that memory.
    Words { data: RegionKey },
}

/// Returns the access policy under which the ranks allocate.
pub(super) fn access_policy<L: Excludes>(home: Rank, role: Role) -> AccessPolicy {
    let (role, of) = match role {
        Role::Data { element } => (1, element as u64),
        Role::Words { data } => (2, data.to_bits()),
    };
    let name = [role << 62 | u64::from(L::DISCIPLINE & 0x3fff_ffff) << 32 | u64::from(home.number()), of];
    // SAFETY: see the module's documentation.
    unsafe { AccessPolicy::references(name) }
}

impl<T: Element, L: Excludes> LockedReadGuard<'_, T, L> {
    /// Returns `rank`'s part in place: a pointer, without copying.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotMapped`], [`rdma_fabric::FabricError::NoSuchRank`];
    /// [`rdma_fabric::FabricError::PeerLost`] after a call of the lock has reported the loss of a
    /// rank.
    #[inline]
    pub fn part(&self, rank: Rank) -> Result<&[T]> {
        let memory = &self.locked.memory;
        let part = self.locked.part(rank)?;
        // SAFETY: no writer holds the lock as long as `self` is borrowed.
        unsafe { part.slice(HEADER, memory.len()) }.ok_or_else(|| memory.not_mapped(rank))
    }
}

impl<T: Element, L: Excludes> LockedWriteGuard<'_, T, L> {
    /// Returns `rank`'s part in place, as [`LockedReadGuard::part`] does.
    ///
    /// # Errors
    /// As [`LockedReadGuard::part`].
    #[inline]
    pub fn part(&self, rank: Rank) -> Result<&[T]> {
        let memory = &self.locked.memory;
        let part = self.locked.part(rank)?;
        // SAFETY: there is no other holder, and this holder does not write while `self` is borrowed
        // in this way.
        unsafe { part.slice(HEADER, memory.len()) }.ok_or_else(|| memory.not_mapped(rank))
    }

    /// Returns `rank`'s part in place, for writing. Stores to it are visible to the next holder.
    ///
    /// # Errors
    /// As [`LockedReadGuard::part`].
    #[inline]
    pub fn part_mut(&mut self, rank: Rank) -> Result<&mut [T]> {
        let memory = &self.locked.memory;
        let part = self.locked.part(rank)?;
        // SAFETY: there is no other holder, and this holder has no other reference while `self` is
        // borrowed in this way.
        unsafe { part.slice_mut(HEADER, memory.len()) }.ok_or_else(|| memory.not_mapped(rank))
    }

    /// Returns all ranks' parts at once, for writing, in order of rank.
    ///
    /// # Errors
    /// As [`LockedReadGuard::part`].
    pub fn parts_mut(&mut self) -> Result<PartsMut<'_, T>> {
        let memory = &self.locked.memory;
        self.locked.part(Rank::new(0))?;
        Ok(PartsMut { parts: memory.parts().iter(), len: memory.len(), element: core::marker::PhantomData })
    }
}

/// All ranks' parts, each once: see [`LockedWriteGuard::parts_mut`].
#[derive(Debug)]
pub struct PartsMut<'g, T> {
    /// The parts not yet returned: distinct bytes. Created from a write guard that is borrowed
    /// exclusively for `'g`.
    parts: slice::Iter<'g, Mapped>,
    len: usize,
    element: core::marker::PhantomData<&'g mut [T]>,
}

impl<'g, T: Element> Iterator for PartsMut<'g, T> {
    type Item = &'g mut [T];

    fn next(&mut self) -> Option<&'g mut [T]> {
        let part: &'g Mapped = self.parts.next()?;
        // SAFETY: as in `part_mut`; each part is returned once, and the parts are of distinct
        // ranks.
        unsafe { part.slice_mut(HEADER, self.len) }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.parts.size_hint()
    }
}

impl<T: Element> ExactSizeIterator for PartsMut<'_, T> {}
