//! What a random run does to memory, access by access: for comparing a protocol with a model of it.

use crate::{
    act::{Act, Answer},
    cell::{CellPart, Cells, Home},
    state::{ItemKind, State},
};
use rdma_fabric::{Amo, Rank, RemoteAddr};

/// What is done to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A remote atomic takes effect.
    Atomic(Amo<u64>),
    /// A get reads it.
    Get,
    /// A put arrives.
    Put,
    /// Its owner reads it.
    Load,
    /// Its owner writes it.
    Store,
    /// Its owner, who waits for it, looks at it.
    Watch,
}

/// One access to one word of registered memory (or a part of it), at the moment it happens. Posting
/// and completion leave none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Whose program did it.
    pub by: Rank,
    /// The word.
    pub at: RemoteAddr,
    /// What was done.
    pub access: Access,
    /// What was found there; of a put or store, what is there from now on.
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
    /// Of the item at `place`, which is about to happen.
    pub(crate) fn of_item(cells: &Cells, state: &State, place: usize) -> Option<Effect> {
        let item = &state.items[place];
        let (access, bits) = match item.kind {
            _ if state.too_late(place).is_some() => return None,
            ItemKind::Atomic => (Access::Atomic(item.amo()), state.read(item.at)),
            ItemKind::Begun => (Access::Atomic(item.amo()), item.at.place(item.bits)),
            ItemKind::Get | ItemKind::GetInto => (Access::Get, state.read(item.at)),
            ItemKind::Put => (Access::Put, item.bits),
            _ => return None,
        };
        Some(Effect { by: item.by, at: address(cells, item.at)?, access, bits: item.at.get(bits) })
    }

    /// Of what `rank` asks.
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
