//! Breaking a protocol on its way to a fabric.
//!
//! A check proves something only if it can fail. A protocol has no switches for its own mutants,
//! but the effect of a mutated line is visible at the fabric: a missing flush, an ignored result, a
//! late store. [`mutated`] applies such a change equally to every rank, on any fabric.

mod layer;
mod operation;

use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use std::fmt;

/// Mutates one rank's `fabric` by one rank's `mutant`.
#[must_use]
pub fn mutated(fabric: Fabric, mutant: impl Mutant) -> Fabric {
    fabric.clone().layered(layer::Mutated::new(fabric, mutant))
}

/// The changes that [`mutated`] makes. Addresses are those of 8-byte words: any access of exactly
/// 8 bytes. Everything else passes unchanged. Provided methods change nothing.
pub trait Mutant: fmt::Debug + 'static {
    /// Returns whether a flush of `target` (`None`: of all targets) happens.
    fn flushes(&self, _target: Option<Rank>) -> bool {
        true
    }
    /// Returns whether a flush of `target` (`None`: of all targets) is awaited; if not, it is
    /// started and treated as complete.
    fn awaits_flush(&self, _target: Option<Rank>) -> bool {
        true
    }
    /// Returns the value that a get of a word yields.
    fn got(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// Returns the atomic that is executed.
    fn atomic(&self, _addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        amo
    }
    /// Returns the result that the poster of `amo` receives.
    fn result(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64) -> u64 {
        old
    }
    /// Returns an atomic to execute, to completion, before `amo` is posted.
    fn first(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// Returns an atomic to execute, to completion, after `amo`, which found `old`. The value found
    /// by the returned atomic is passed to [`Mutant::after`]. If [`Mutant::continues`] returns
    /// true for the returned atomic, this method is called again for it.
    fn then(&self, _addr: RemoteAddr, _amo: Amo<u64>, _old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// Returns the result that the poster of `amo` receives if another atomic was executed
    /// [after](Mutant::then) it.
    fn after(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64, _found: u64) -> u64 {
        old
    }
    /// Returns whether [`Mutant::then`] is to be called for this `amo`.
    fn continues(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// Returns a word to put, without a flush, before `amo` is posted.
    fn puts(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        None
    }
    /// Returns whether a store to local memory is delayed until this rank's next atomic is
    /// complete.
    fn late(&self, _addr: RemoteAddr, _bits: u64) -> bool {
        false
    }
    /// Returns whether a store to local memory of any other length is delayed as by
    /// [`late`](Mutant::late).
    fn late_bytes(&self, _addr: RemoteAddr) -> bool {
        false
    }
    /// Returns whether the remaining work of a dropped future is executed.
    fn detaches(&self) -> bool {
        true
    }
    /// Returns whether a compare-and-swap is torn into a get and a put.
    fn tears(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// Returns whether a wait for a word of local memory takes place; if not, the word is [taken
    /// for](Mutant::taken_for) another value.
    fn waits(&self, _addr: RemoteAddr) -> bool {
        true
    }
    /// Returns the value that is assumed for a word of local memory whose wait is skipped: one that
    /// ends the wait.
    fn taken_for(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// Observes a word that is being put.
    fn sees_put(&self, _addr: RemoteAddr, _bits: u64) {}
    /// Returns the bits to put in place of a word that is put; `None` if the put is lost.
    fn put(&self, _addr: RemoteAddr, bits: u64) -> Option<u64> {
        Some(bits)
    }
    /// Returns a word to put, without a flush, before this one.
    fn puts_before(&self, _addr: RemoteAddr, _bits: u64) -> Option<(RemoteAddr, u64)> {
        None
    }
    /// Returns the bits to put in place of an atomic, whose poster receives 0 as the result.
    fn as_put(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<u64> {
        None
    }
    /// Returns whether a put from registered memory is treated as complete but held back until a
    /// word [lets it go](Mutant::releases_held).
    fn holds(&self, _to: RemoteAddr, _bytes: usize) -> bool {
        false
    }
    /// Returns whether held-back puts are released after an access to this word, which is being put
    /// or changed.
    fn releases_held(&self, _addr: RemoteAddr) -> bool {
        false
    }
    /// Returns whether multicasts can be addressed to these ranks: whether they count as a box of the
    /// network.
    fn reaches(&self, _members: &[Rank]) -> bool {
        true
    }
    /// Returns whether a multicast reaches the member whose memory this is.
    fn multicasts_to(&self, _to: RemoteAddr) -> bool {
        true
    }
    /// Returns the value that a word of local memory appears to have.
    fn seen(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// Returns whether a nop that completes immediately is reported as complete.
    fn nop_at_once(&self) -> bool {
        true
    }
}
