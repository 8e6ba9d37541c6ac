//! Atomics that read their word at one moment and write it at a later one.
//!
//! If [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not guaranteed, atomics
//! are atomic only with respect to each other: such an atomic reads its word at one moment and
//! writes it at a later one. No other atomic on the word occurs in between; a put or the owner's
//! store may, and is lost. An early read matters only if a write is lost because of it. So an
//! atomic reads early only where such a write could be next, and otherwise at the moment of its
//! write.

use crate::{
    cell::CellPart,
    rules::overlap,
    state::{ItemKind, State},
};
use rdma_fabric::Amo;

impl State {
    /// Returns whether an atomic on this word has read it and not written it yet.
    pub(crate) fn is_held(&self, word: CellPart) -> bool {
        self.items.iter().any(|item| item.kind == ItemKind::Begun && overlap(item.at, word))
    }

    /// Returns whether the network is about to write this word.
    pub(crate) fn is_arriving(&self, word: CellPart) -> bool {
        self.items.iter().any(|item| match item.kind {
            ItemKind::Put => overlap(item.at, word),
            ItemKind::Landing => overlap(item.own, word),
            _ => false,
        })
    }

    /// Lets the atomic at `place` read its word.
    pub(crate) fn begin(&mut self, place: usize) {
        let at = self.items[place].at;
        let old = at.get(self.read(at));
        let item = &mut self.items[place];
        (item.kind, item.bits) = (ItemKind::Begun, old);
    }

    /// Lets the atomic at `place` write its word. A comparison that failed writes nothing.
    pub(crate) fn finish(&mut self, place: usize) {
        let item = self.items[place];
        let fails = matches!(item.amo(), Amo::CompareSwap { expected, .. } if expected != item.bits);
        if !fails {
            self.write(item.at, item.at.place(item.amo().apply(item.bits)));
        }
    }
}
