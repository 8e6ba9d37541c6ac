//! One state of a job: memory, operations in flight, and the state of each rank.

use crate::{
    acknowledged::Unwritten,
    act::{HandleId, NO_HANDLE, Op},
    automaton::LocalId,
    cell::CellPart,
    dropped::{Drops, Holding},
    loss::Losses,
    mix::Mix,
};
use rdma_fabric::{Amo, Notice, Rank, RegionKey};

/// A part of a posted operation: at most one cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    pub(crate) by: Rank,
    /// The target; [`ALL`] for a flush of all targets.
    pub(crate) target: Rank,
    /// The handle that waits for it, or [`NO_HANDLE`].
    pub(crate) slot: HandleId,
    pub(crate) phase: Phase,
    /// Whether the poster's next notice comes after it or, for a notice, whether bytes come before
    /// it.
    pub(crate) tied: bool,
    /// Distinguishes a put that arrives in order from the ones before and after it to the same
    /// target: it is 1 or 2, alternating from put to put; 0 for all other items.
    pub(crate) turn: u8,
    /// The target's region.
    pub(crate) region: u32,
    /// The region of local memory that is written.
    pub(crate) sink: u32,
    pub(crate) at: CellPart,
    /// Local memory that is read or written.
    pub(crate) own: CellPart,
    pub(crate) operand: Operand,
    /// The value that is put or was got.
    pub(crate) bits: u64,
}

pub(crate) const ALL: Rank = Rank::new(u32::MAX);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ItemKind {
    Atomic,
    /// An atomic that has read its word (`bits`) and not written it yet.
    Begun,
    /// An atomic that has been executed in a network interface (`bits` is the previous value), and
    /// whose word is not yet written.
    Executed,
    Get,
    /// A get into registered memory.
    GetInto,
    /// A get into registered memory that has been read at its target but not written yet.
    Landing,
    /// Bytes that have not arrived.
    Put,
    /// Bytes that have not been read from the poster's own memory.
    PutFrom,
    /// A notice; `bits` is its data.
    Notice,
    Flush,
    /// A completed item whose poster has not been notified yet.
    Complete,
    /// An item that failed because its target is lost, and whose poster has not been notified yet.
    Lost,
    /// An item that came too late for a region (`bits`), and whose poster has not been notified
    /// yet.
    Stale,
}

/// The operation of an atomic, or the contents of a notice besides its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    None,
    Amo(Amo<u64>),
    Notice { region: RegionKey, end: u64 },
}

impl Operand {
    /// Returns three numbers that encode it.
    #[inline]
    fn words(self) -> (u8, u64, u64) {
        match self {
            Operand::None => (0, 0, 0),
            Operand::Amo(Amo::Add(value)) => (0, value, 0),
            Operand::Amo(Amo::Swap(value)) => (1, value, 0),
            Operand::Amo(Amo::CompareSwap { expected, new }) => (2, expected, new),
            Operand::Amo(Amo::Or(value)) => (3, value, 0),
            Operand::Amo(Amo::And(value)) => (4, value, 0),
            Operand::Amo(Amo::Xor(value)) => (5, value, 0),
            Operand::Notice { region, end } => (0, region.to_bits(), end),
        }
    }
}

/// The progress of a part of an operation, as its poster sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    Posted,
    /// It has happened.
    Happened,
    /// The poster's handle has been notified.
    Complete,
}

impl Item {
    /// Returns whether it is a put of any kind that has not arrived.
    pub(crate) fn is_put(&self) -> bool {
        matches!(self.kind, ItemKind::Put | ItemKind::PutFrom)
    }

    /// Returns the region that it addresses.
    pub(crate) fn there(&self) -> Holding {
        Holding { rank: self.target, index: self.region }
    }

    #[inline]
    fn mix(&self, mix: &mut Mix) {
        let (code, a, b) = self.operand.words();
        mix.add(
            self.kind as u64
                | (self.phase as u64) << 8
                | u64::from(self.tied) << 12
                | u64::from(self.turn) << 13
                | u64::from(self.slot) << 16
                | u64::from(code) << 24
                | u64::from(self.target.number()) << 32,
        );
        mix.add(u64::from(self.at.cell) | u64::from(self.own.cell) << 32);
        mix.add(self.at.mask);
        mix.add(self.bits);
        match self.kind {
            ItemKind::Atomic | ItemKind::Begun | ItemKind::Notice => {
                mix.add(a);
                mix.add(b);
            }
            ItemKind::GetInto | ItemKind::Landing | ItemKind::PutFrom => mix.add(self.own.mask),
            ItemKind::Executed
            | ItemKind::Get
            | ItemKind::Put
            | ItemKind::Flush
            | ItemKind::Complete
            | ItemKind::Lost
            | ItemKind::Stale => {}
        }
    }

    /// Records that it has happened and left `bits`; only the notification of its poster remains.
    pub(crate) fn happened(&mut self, bits: u64) {
        let blank = CellPart::default();
        *self = Item {
            kind: ItemKind::Complete,
            phase: Phase::Happened,
            turn: 0,
            at: blank,
            own: blank,
            operand: Operand::None,
            bits,
            ..*self
        };
    }

    /// Returns the atomic that this is, has begun or was; for any other item, one that changes
    /// nothing.
    pub(crate) fn amo(&self) -> Amo<u64> {
        if let Operand::Amo(amo) = self.operand { amo } else { Amo::Or(0) }
    }

    /// For a notice, returns the notice that the target receives.
    pub(crate) fn notice(&self) -> Notice {
        let Operand::Notice { region, end } = self.operand else { panic!("{:?} is no notice", self.kind) };
        Notice { from: self.by, data: self.bits, region, end }
    }
}

/// The state of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct At {
    pub(crate) local: LocalId,
    /// Its clock, in picoseconds.
    pub(crate) clock: u64,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    cells: Vec<u64>,
    /// The items in flight, each rank's in posting order.
    pub(crate) items: Vec<Item>,
    pub(crate) ranks: Vec<At>,
    /// Notices not yet taken, by target, in order of arrival.
    pub(crate) notices: Vec<(Rank, Notice)>,
    pub(crate) losses: Losses,
    pub(crate) drops: Drops,
    /// Words that atomics have changed and not yet written, by cell.
    pub(crate) unwritten: Vec<Unwritten>,
}

impl Clone for State {
    fn clone(&self) -> Self {
        let mut new = State::default();
        new.clone_from(self);
        new
    }
    /// Clones from another value, keeping the allocations.
    fn clone_from(&mut self, from: &Self) {
        self.cells.clone_from(&from.cells);
        self.items.clone_from(&from.items);
        self.ranks.clone_from(&from.ranks);
        self.notices.clone_from(&from.notices);
        self.losses.assign(&from.losses);
        self.drops.assign(&from.drops);
        self.unwritten.clone_from(&from.unwritten);
    }
}

impl State {
    pub(crate) fn read(&self, part: CellPart) -> u64 {
        self.cells.get(part.cell as usize).copied().unwrap_or(0) & part.mask
    }

    pub(crate) fn cell(&self, cell: u32) -> u64 {
        self.cells.get(cell as usize).copied().unwrap_or(0)
    }

    pub(crate) fn cells(&self) -> &[u64] {
        &self.cells
    }

    pub(crate) fn write(&mut self, part: CellPart, bits: u64) {
        let cell = part.cell as usize;
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, 0);
        }
        let word = &mut self.cells[cell];
        *word = *word & !part.mask | bits & part.mask;
    }

    /// Executes `amo` and returns the previous value of the word.
    pub(crate) fn change(&mut self, part: CellPart, amo: Amo<u64>) -> u64 {
        let old = part.get(self.read(part));
        let new = amo.apply(old);
        if new != old {
            self.write(part, part.place(new));
        }
        old
    }

    pub(crate) fn post(&mut self, by: Rank, op: &Op) {
        let item = |kind, slot, target| Item {
            kind,
            by,
            target,
            slot,
            phase: Phase::Posted,
            tied: false,
            turn: 0,
            region: 0,
            sink: 0,
            at: CellPart::default(),
            own: CellPart::default(),
            operand: Operand::None,
            bits: 0,
        };
        let there = |kind, slot, target: &Holding| Item { region: target.index, ..item(kind, slot, target.rank) };
        match op {
            Op::Atomic { slot, target, at, amo } => {
                self.items.push(Item {
                    at: *at,
                    operand: Operand::Amo(*amo),
                    ..there(ItemKind::Atomic, *slot, target)
                });
            }
            Op::Get { slot, target, pieces, sink } => {
                self.items.extend(pieces.iter().map(|(at, own)| match own {
                    None => Item { at: *at, ..there(ItemKind::Get, *slot, target) },
                    Some(own) => Item { at: *at, own: *own, sink: *sink, ..there(ItemKind::GetInto, *slot, target) },
                }));
            }
            Op::Put { target, ordered, pieces, notice } => {
                let turn = if *ordered { self.next_turn(by, target.rank) } else { 0 };
                let put = Item { tied: notice.is_some(), turn, ..there(ItemKind::Put, NO_HANDLE, target) };
                self.items.extend(pieces.iter().map(|(at, bits)| Item { at: *at, bits: *bits, ..put }));
                let tied = !pieces.is_empty();
                self.post_notice(Item { tied, ..there(ItemKind::Notice, NO_HANDLE, target) }, *notice);
            }
            Op::PutFrom { slot, target, ordered, pieces, notice } => {
                let turn = if *ordered { self.next_turn(by, target.rank) } else { 0 };
                let put = Item { tied: notice.is_some(), turn, ..there(ItemKind::PutFrom, *slot, target) };
                self.items.extend(pieces.iter().map(|(at, own)| Item { at: *at, own: *own, ..put }));
                self.post_notice(Item { tied: true, ..there(ItemKind::Notice, NO_HANDLE, target) }, *notice);
            }
            Op::Flush { slot, target } => self.items.push(item(ItemKind::Flush, *slot, target.unwrap_or(ALL))),
        }
    }

    fn post_notice(&mut self, item: Item, notice: Option<Notice>) {
        if let Some(Notice { data, region, end, .. }) = notice {
            self.items.push(Item { bits: data, operand: Operand::Notice { region, end }, ..item });
        }
    }

    /// Returns whether no put that `by` posted to `target` before the item at `before` is still in
    /// flight.
    pub(crate) fn flushed(&self, by: Rank, target: Rank, before: usize) -> bool {
        !self.items[..before]
            .iter()
            .any(|item| item.by == by && item.is_put() && (target == ALL || item.target == target))
    }

    /// Returns a hash of everything. Items of different ranks are not ordered.
    pub(crate) fn hash(&self) -> u128 {
        let mut mix = Mix::new();
        let used = self.cells.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
        mix.add(used as u64 | (self.notices.len() as u64) << 32);
        for bits in &self.cells[..used] {
            mix.add(*bits);
        }
        for (rank, at) in self.ranks.iter().enumerate() {
            let mut items = 0;
            for item in self.items.iter().filter(|item| item.by.index() == rank) {
                item.mix(&mut mix);
                items += 1;
            }
            mix.add(u64::from(at.local) | items << 32);
            mix.add(at.clock);
        }
        for (target, notice) in &self.notices {
            for part in [
                u64::from(target.number()) << 32 | u64::from(notice.from.number()),
                notice.data,
                notice.region.to_bits(),
                notice.end,
            ] {
                mix.add(part);
            }
        }
        self.losses.mix(&mut mix);
        self.drops.mix(&mut mix);
        self.unwritten.iter().for_each(|unwritten| unwritten.mix(&mut mix));
        mix.end()
    }
}
