//! Operations of a rank on the short path: what is short, and in a segment.
//!
//! What is not goes by [`detour`], in functions of their own that are given everything by value: so the compiler keeps short
//! operations in registers.

use super::Endpoint;
use crate::shm::{detour, place::Place};
use rdma_fabric::{
    Amo, AtomicWord, FabricError, GetSink, Location, Pod, PutSource, Result,
    op::{SinkView, SourceView},
};

/// The longest copy that is not announced, in bytes: those take few instructions.
pub(super) const SHORT: usize = 64;

impl Endpoint {
    /// Copy a short source to its target and ring. Whether that was possible on the short path.
    #[inline(always)]
    pub(super) fn put_shortly(to: &Place, from: SourceView<'_, Place>) -> bool {
        match from {
            SourceView::Bytes(bytes) if bytes.len() <= SHORT && to.piece.copy_in(bytes).is_some() => {
                to.piece.ring();
                true
            }
            SourceView::Registered(own) if own.len() <= SHORT && to.piece.copy_from(&own.piece).is_some() => {
                to.piece.ring();
                true
            }
            _ => false,
        }
    }

    /// Any put without a notice.
    #[cold]
    #[inline(never)]
    pub(super) fn put_slowly<T: Pod, S: PutSource<Self, T>>(&self, to: &Place, from: S) -> Result<S, (FabricError, S)> {
        match detour::put(self, to, from.view(), align_of::<T>()) {
            Ok(()) => {
                to.piece.ring();
                Ok(from)
            }
            Err(error) => Err((error, from)),
        }
    }

    /// Copy from a target to a short sink. Whether that was possible on the short path.
    #[inline(always)]
    pub(super) fn get_shortly(from: &Place, to: SinkView<'_, Place>) -> bool {
        match to {
            SinkView::Bytes(bytes) if bytes.len() <= SHORT => from.piece.copy_out(bytes).is_some(),
            _ => false,
        }
    }

    /// Any get.
    #[cold]
    #[inline(never)]
    pub(super) fn get_slowly<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &Place,
        mut to: D,
    ) -> Result<D, (FabricError, D)> {
        match detour::get(self, from, to.view(), align_of::<T>()) {
            Ok(()) => {
                if let SinkView::Registered(own) = to.view() {
                    own.piece.ring();
                }
                Ok(to)
            }
            Err(error) => Err((error, to)),
        }
    }

    #[inline(always)]
    pub(super) fn modify<W: AtomicWord>(&self, place: &Place, amo: Amo<W>) -> Result<W> {
        let old = if W::BYTES == 4 {
            place.piece.rmw4(bits(amo, |value| value.to_bits() as u32)).map(u64::from)
        } else {
            place.piece.rmw8(bits(amo, W::to_bits))
        };
        match old {
            Some(old) => Ok(W::from_bits(old)),
            None => detour::modify(self, place, amo),
        }
    }

    #[inline(always)]
    pub(super) fn load_word<W: AtomicWord>(&self, place: &Place) -> Result<W> {
        match place.piece.load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            None => detour::load(self, place),
        }
    }

    #[inline(always)]
    pub(super) fn store_word<W: AtomicWord>(&self, place: &Place, value: W) -> Result<()> {
        match place.piece.store(W::BYTES, value.to_bits()) {
            Some(()) => Ok(()),
            None => detour::store(self, place, value),
        }
    }
}

pub(in super::super) fn check_lengths(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::LengthMismatch { have, want }) }
}

/// The same operation on other bits.
#[inline(always)]
pub(in super::super) fn bits<W, V>(amo: Amo<W>, f: impl Fn(W) -> V) -> Amo<V> {
    match amo {
        Amo::Add(v) => Amo::Add(f(v)),
        Amo::Swap(v) => Amo::Swap(f(v)),
        Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: f(expected), new: f(new) },
        Amo::Or(v) => Amo::Or(f(v)),
        Amo::And(v) => Amo::And(f(v)),
        Amo::Xor(v) => Amo::Xor(f(v)),
    }
}
