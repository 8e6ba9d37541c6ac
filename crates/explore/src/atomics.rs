//! Atomics that are atomic against each other only: where [`Caps::coherent_atomics`](rdma_fabric::Caps::coherent_atomics) is not promised.
//!
//! Such an atomic reads its word at one moment and writes it at a later one. No other atomic on the word comes between; a put or its
//! owner's store may, and is lost. As an atomic that reads earlier than it must is of interest only if something is lost by that, it
//! reads where such a write could come next, and else when it writes.

use crate::{
    cell::CellPart,
    state::{ItemKind, State},
};
use rdma_fabric::Amo;

pub(crate) fn overlap(one: CellPart, other: CellPart) -> bool {
    one.cell == other.cell && one.mask & other.mask != 0
}

impl State {
    /// Whether an atomic on this word has read it and not written it yet.
    pub(crate) fn is_held(&self, word: CellPart) -> bool {
        self.items.iter().any(|item| item.kind == ItemKind::Begun && overlap(item.at, word))
    }

    /// Whether the network is about to write this word.
    pub(crate) fn is_arriving(&self, word: CellPart) -> bool {
        self.items.iter().any(|item| match item.kind {
            ItemKind::Put => overlap(item.at, word),
            ItemKind::Landing => overlap(item.own, word),
            _ => false,
        })
    }

    /// The atomic at `place` reads its word.
    pub(crate) fn begin(&mut self, place: usize) {
        let at = self.items[place].at;
        let old = at.get(self.read(at));
        let item = &mut self.items[place];
        (item.kind, item.bits) = (ItemKind::Begun, old);
    }

    /// The atomic at `place` writes its word. A comparison that failed writes nothing.
    pub(crate) fn finish(&mut self, place: usize) {
        let item = self.items[place];
        let fails = matches!(item.rmw.amo(), Amo::CompareSwap { expected, .. } if expected != item.bits);
        if !fails {
            self.write(item.at, item.at.place(item.rmw.apply(item.bits)));
        }
    }
}
