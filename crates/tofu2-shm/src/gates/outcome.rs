//! The result of a gate's operation: the packet of the end half.

use super::{
    fire::NOTHING,
    record::{At, Field, Units, slot, unpack},
};
use crate::memory::word::Word;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use rdma_fabric::barrier::{RoundFault, Values, Wave};

/// Returns whether the end half `end` has fired `round`.
pub(crate) fn is_complete<U: Units>(units: &U, end: At, round: u64) -> bool {
    // Acquire: pairs with F4.
    unpack(units.word(end, Field::State).load(Acquire)).0 == round
}

/// Returns the result of the end half in `round`, once that round has completed.
pub(crate) fn outcome<U: Units>(units: &U, end: At, round: u64) -> Option<Result<Option<Values>, RoundFault>> {
    if !is_complete(units, end, round) {
        return None;
    }
    let word = |index| units.packet(end, slot(round), index).load(Relaxed);
    if word(0) == NOTHING {
        return Some(Ok(None));
    }
    let corrupt = RoundFault::Corrupt(end.rank());
    Some(Wave::decode(word).ok_or(corrupt).and_then(|wave| wave.leave()).map(Some))
}
