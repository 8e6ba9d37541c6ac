//! The memory accesses of a random run, one by one, so that a protocol can be compared with a model
//! of it.

use crate::{
    act::{Act, Answer},
    cell::{CellPart, Cells, Home},
    state::{ItemKind, State},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};

/// A kind of access to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A remote atomic takes effect.
    Atomic(Amo<u64>),
    /// A get reads the word.
    Get,
    /// A put arrives.
    Put,
    /// The word's owner reads it.
    Load,
    /// The word's owner writes it.
    Store,
    /// The word's owner, waiting for it, checks it.
    Watch,
}

/// One access to one word of registered memory (or a part of it), at the moment it happens. Posting
/// and completion have no effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The rank whose program made the access.
    pub by: Rank,
    /// The word.
    pub at: RemoteAddr,
    /// The kind of access.
    pub access: Access,
    /// The value found at the word or, for a put or store, the new value.
    pub bits: u64,
}

fn address(cells: &Cells, part: CellPart) -> Option<RemoteAddr> {
    match cells.home(part.cell) {
        Home::Memory(addr) => {
            Some(RemoteAddr { offset: addr.offset + u64::from(part.mask.trailing_zeros() / 8), ..addr })
        }
        Home::Fact(_) => None,
    }
}

impl Effect {
    /// Returns the effect of the item at `place`, which is about to happen.
    pub(crate) fn of_item(cells: &Cells, state: &State, place: usize) -> Option<Effect> {
        let item = &state.items[place];
        let (access, bits) = match item.kind {
            _ if state.too_late(place).is_some() => return None,
            ItemKind::Atomic => (Access::Atomic(item.amo()), state.found_by_atomics(item.at)),
            ItemKind::Begun => (Access::Atomic(item.amo()), item.at.place(item.bits)),
            ItemKind::Get | ItemKind::GetInto => (Access::Get, state.read(item.at)),
            ItemKind::Put => (Access::Put, item.bits),
            _ => return None,
        };
        Some(Effect { by: item.by, at: address(cells, item.at)?, access, bits: item.at.get(bits) })
    }

    /// Returns the effect of an act of `rank`, if it has one.
    pub(crate) fn of_act(cells: &Cells, rank: Rank, act: &Act, answer: &Answer) -> Option<Effect> {
        let (part, access, bits) = match (act, answer) {
            (Act::Load(part), Answer::Value(bits)) => (*part, Access::Load, *bits),
            (Act::Watch(part), Answer::Value(bits)) => (*part, Access::Watch, *bits),
            (Act::Store(part, bits), _) => (*part, Access::Store, *bits),
            _ => return None,
        };
        Some(Effect { by: rank, at: address(cells, part)?, access, bits: part.get(bits) })
    }
}
