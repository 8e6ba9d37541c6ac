//! What breaks a protocol on its way to a fabric.
//!
//! A check proves something only if it can fail. A protocol has no switches for its own mutation;
//! what a mutated line would do differently is seen at the fabric: a flush that is missing, a
//! result that is ignored, a store that comes late. A [`mutant`] does that to every rank alike, on
//! any fabric.

mod operation;
mod spoiled;

use rdma_fabric::{Amo, Fabric, Rank, RemoteAddr};
use std::fmt;

/// One rank's `fabric` under one rank's `mutation`. It has nothing armed.
#[must_use]
pub fn mutant(fabric: Fabric, mutation: impl Mutation) -> Fabric {
    fabric.clone().under(spoiled::Spoiled::new(fabric, mutation))
}

/// What a [`mutant`] does differently. Addresses are of 8-byte words, which is whatever is accessed
/// by exactly 8 bytes; everything else passes unchanged. Provided methods change nothing.
pub trait Mutation: fmt::Debug + 'static {
    /// Returns whether a flush of `target` (`None`: of all) happens.
    fn flushes(&self, _target: Option<Rank>) -> bool {
        true
    }
    /// Returns whether a flush of `target` (`None`: of all) is awaited; if not, it is begun, and
    /// taken for done.
    fn awaits_flush(&self, _target: Option<Rank>) -> bool {
        true
    }
    /// Returns what a get of a word yields.
    fn got(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// Returns the atomic that is executed.
    fn atomic(&self, _addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        amo
    }
    /// Returns what the poster of `amo` is told.
    fn result(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64) -> u64 {
        old
    }
    /// An atomic that is executed, to its end, before `amo` is posted.
    fn first(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// An atomic that is executed, to its end, after `amo`, which found `old`; what that finds goes
    /// to [`Mutation::after`]. If that one [goes on](Mutation::goes_on), too, this is asked again
    /// for it.
    fn then(&self, _addr: RemoteAddr, _amo: Amo<u64>, _old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// Returns what the poster of `amo` is told if another one came [after](Mutation::then) it.
    fn after(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64, _found: u64) -> u64 {
        old
    }
    /// Returns whether [`Mutation::then`] is to be asked for this `amo`.
    fn goes_on(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// A word that is put, and not flushed, before `amo` is posted.
    fn puts(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        None
    }
    /// Returns whether an own store waits until this rank's next atomic is complete.
    fn late(&self, _addr: RemoteAddr, _bits: u64) -> bool {
        false
    }
    /// Returns whether what a dropped future owes is done.
    fn detaches(&self) -> bool {
        true
    }
    /// Returns whether a comparison falls apart into a get and a put.
    fn tears(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// Returns whether an own word is waited for; if not, it is [taken for](Mutation::taken_for)
    /// something else.
    fn waits(&self, _addr: RemoteAddr) -> bool {
        true
    }
    /// Returns what an own word that is not waited for is taken for: something that ends the wait.
    fn taken_for(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// A word is being put.
    fn sees_put(&self, _addr: RemoteAddr, _bits: u64) {}
    /// Returns what a word that is put becomes; `None` if it is lost.
    fn put(&self, _addr: RemoteAddr, bits: u64) -> Option<u64> {
        Some(bits)
    }
    /// A word that is put, and not flushed, before this one.
    fn puts_before(&self, _addr: RemoteAddr, _bits: u64) -> Option<(RemoteAddr, u64)> {
        None
    }
    /// Returns the bits that are put in place of an atomic, whose poster is told 0.
    fn as_put(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<u64> {
        None
    }
    /// Returns whether a put from registered memory, taken for complete, is held back until a word
    /// [lets it go](Mutation::lets_go).
    fn holds(&self, _to: RemoteAddr, _bytes: usize) -> bool {
        false
    }
    /// Returns whether what is held leaves behind this word, which is put or changed.
    fn lets_go(&self, _addr: RemoteAddr) -> bool {
        false
    }
    /// Returns what an own word seems to be.
    fn seen(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// Returns whether a nop seems to be over when it is posted, if it is.
    fn nop_at_once(&self) -> bool {
        true
    }
}
