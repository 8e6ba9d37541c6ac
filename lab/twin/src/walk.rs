//! The locks' own tables of steps ([`rma_lock::steps`]), executed by a rank of a model.

use crate::{
    model::{Lock, Model, Role, Violation},
    mutant::Mutant,
    op::{Flushed, Op, Pending},
    state::{Goal, Pc, Rank, Slot},
    turn::{StepResult, Turn},
    words::{WRITER_ACTIVE, Word},
};
use rma_lock::{
    LockError,
    locks::{Barging, Flat, Packed, Scheme, WritersFirst},
    steps::{
        self, Class, CountedAt, CountedSteps, CountedTable, End, FairAt, FairSteps, FairTable, Node, NodeId, Table,
        Wait, wake_word,
    },
};
use std::hash::{Hash, Hasher};
use xxhash_rust::xxh3::Xxh3;

/// The steps of an acquisition or release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Walk {
    None,
    Counted(CountedSteps),
    Fair(FairSteps),
}

/// The table that the ranks of a lock execute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tables {
    Counted(CountedTable),
    Fair(FairTable),
}

impl Tables {
    /// Returns the table of a lock, with the weakest capabilities.
    pub(crate) fn of(lock: Lock, ranks: usize) -> Tables {
        let rules = match lock {
            Lock::Flat | Lock::Aggregated => &Flat::RULES,
            Lock::Packed => &Packed::RULES,
            Lock::Barging | Lock::Passing => &Barging::RULES,
            Lock::WritersFirst => &WritersFirst::RULES,
            Lock::Fair => return Tables::Fair(FairTable { ranks }),
        };
        Tables::Counted(CountedTable { rules, ranks, ordered_here: false, passing: lock == Lock::Passing, looks: 0 })
    }

    fn pending(&self, walk: &Walk) -> Option<steps::Op> {
        let pending = match (self, walk) {
            (Tables::Counted(table), Walk::Counted(steps)) => table.pending(steps),
            (Tables::Fair(table), Walk::Fair(steps)) => table.pending(steps),
            _ => None,
        };
        pending.map(|pending| pending.op)
    }

    fn resume(&self, walk: &mut Walk, found: u64) -> Result<(), Violation> {
        let went = match (self, walk) {
            (Tables::Counted(table), Walk::Counted(steps)) => table.resume(steps, found),
            (Tables::Fair(table), Walk::Fair(steps)) => table.resume(steps, found),
            _ => Ok(None),
        };
        match went {
            Ok(_) => Ok(()),
            Err(LockError::Corrupt(word)) => Err(Violation::Corrupt { what: word.word, bits: word.value }),
            Err(_) => Err(Violation::NoRoom("an error that is no corrupt word")),
        }
    }
}

impl Walk {
    /// Returns the position in a lock that counts readers.
    pub(crate) fn counted(&self) -> Option<CountedAt> {
        if let Walk::Counted(steps) = self { Some(steps.at) } else { None }
    }

    /// Returns the position in the fair lock.
    pub(crate) fn fair(&self) -> Option<FairAt> {
        if let Walk::Fair(steps) = self { Some(steps.at) } else { None }
    }

    /// Returns whether this is a release that has not admitted another rank yet.
    pub(crate) fn still_inside(&self, role: Role) -> bool {
        match self {
            Walk::None => false,
            Walk::Counted(steps) => match (steps.ends, steps.at) {
                (End::Out, CountedAt::Flush | CountedAt::U1) => true,
                (
                    End::Out,
                    CountedAt::Known
                    | CountedAt::HandOver
                    | CountedAt::X2
                    | CountedAt::XB
                    | CountedAt::XQ
                    | CountedAt::Downgrade,
                ) => role == Role::Write,
                _ => false,
            },
            Walk::Fair(steps) => match (steps.leaves, steps.at) {
                (true, FairAt::Flush | FairAt::G1Load | FairAt::G1 | FairAt::G1Mark) => true,
                (true, FairAt::G1Unsay | FairAt::G3) => role == Role::Read,
                _ => false,
            },
        }
    }

    /// Returns a number that encodes everything but the nodes referred to, and the identifiers of
    /// these nodes.
    pub(crate) fn parts(&self) -> (u64, [u64; NAMES], u64) {
        let bits = |node: Option<NodeId>| node.map_or(0, NodeId::bits);
        let mut nameless = *self;
        let (names, word) = match &mut nameless {
            Walk::None => return (0, [0; NAMES], 0),
            Walk::Counted(s) => {
                let nodes =
                    [&mut s.me, &mut s.link, &mut s.node, &mut s.next, &mut s.reader, &mut s.writer, &mut s.done];
                s.left = 0;
                (nodes.map(|node| bits(node.take())), std::mem::take(&mut s.word))
            }
            Walk::Fair(s) => {
                let linked = |next: &mut Option<(NodeId, Class)>| {
                    let node = next.map(|(node, _)| node);
                    *next = next.map(|(_, class)| (NodeId::of_bits(0), class));
                    bits(node)
                };
                let (node, next) = (linked(&mut s.node), linked(&mut s.next));
                ([bits(s.me.take()), node, next, bits(s.done.take()), 0, 0, 0], 0)
            }
        };
        let mut hash = Xxh3::new();
        nameless.hash(&mut hash);
        (hash.finish(), names, word)
    }
}

/// The largest number of nodes to which a walk refers.
pub(crate) const NAMES: usize = 7;

fn word(word: steps::Word) -> Word {
    let at = |node: NodeId| (node.rank().number() as u8, node.slot() as u8);
    match word {
        steps::Word::Home(number) => Word::Home(number),
        steps::Word::Wake(node) => Word::Wake(at(node).0, at(node).1),
        steps::Word::Next(node) => Word::Next(at(node).0, at(node).1),
    }
}

impl Model {
    /// Returns the pending operation of `me`, after the puts that are flushed before it have
    /// arrived.
    pub(crate) fn walks(&self, rank: &Rank, me: usize) -> Option<Pending> {
        let mut walk = rank.walk;
        let after = self.flush(&mut walk);
        let mine = |node: NodeId| node.rank().index() == me;
        let op = match self.tables.pending(&walk)? {
            steps::Op::Atomic(at, amo) => Op::Atomic(word(at), amo),
            steps::Op::Get(at @ steps::Word::Next(node)) if mine(node) => Op::Load(word(at)),
            steps::Op::Get(at) | steps::Op::Look(at) => Op::Get(word(at)),
            steps::Op::Put(at, bits) => Op::Put(word(at), bits),
            steps::Op::Store(at, bits) => Op::Store(word(at), bits),
            steps::Op::Retire(node) | steps::Op::GiveBack(node) => {
                Op::Store(word(steps::Word::Wake(node)), wake_word(Wait::Blocked, node.next_turn()))
            }
            steps::Op::Wait(node) => Op::Watch(word(steps::Word::Wake(node)), wake_word(Wait::Blocked, node)),
            steps::Op::Take | steps::Op::FlushData | steps::Op::FlushHome => return None,
        };
        Some(Pending { op, after })
    }

    /// Skips a flush, and returns the puts that it waits for.
    pub(crate) fn flush(&self, walk: &mut Walk) -> Flushed {
        let after = match self.tables.pending(walk) {
            Some(steps::Op::FlushData) => Flushed::All,
            Some(steps::Op::FlushHome) => Flushed::Head,
            _ => return Flushed::Nothing,
        };
        let went = self.tables.resume(walk, 0);
        debug_assert!(went.is_ok());
        after
    }
}

impl Turn<'_> {
    /// Begins an acquisition.
    pub(crate) fn acquire(&mut self) -> StepResult {
        let (lock, role, barges) = (self.model.lock, self.role(), self.model.barges());
        let left = std::mem::take(&mut self.rank().left);
        self.rank().walk = match (lock, role) {
            // A writer that has handed the lock over joins the queue.
            (_, Role::Write) if barges && left & WRITER_ACTIVE != 0 => Walk::Counted(CountedSteps::line_up()),
            (_, Role::Write) if barges => Walk::Counted(CountedSteps::barge(false, left)),
            (Lock::Fair, Role::Read) => Walk::Fair(FairSteps::acquire(Class::Reader, false)),
            (Lock::Fair, Role::Write) => Walk::Fair(FairSteps::acquire(Class::Writer, false)),
            (_, Role::Read) => Walk::Counted(CountedSteps::read(false)),
            (_, Role::Write) => Walk::Counted(CountedSteps::write(false)),
        };
        self.walk()
    }

    /// Begins a release.
    pub(crate) fn release(&mut self) -> StepResult {
        let (lock, role) = (self.model.lock, self.role());
        let (node, woken) = (NodeId::of_bits(self.model.own_id(self.s, self.me) as u32), self.rank().woken);
        let (barges, word) = (self.model.barges(), std::mem::take(&mut self.rank().word));
        self.rank().walk = match (lock, role) {
            (_, Role::Write) if barges => Walk::Counted(CountedSteps::release_barging(word)),
            (Lock::Fair, Role::Read) => Walk::Fair(FairSteps::release(Class::Reader, node, woken)),
            (Lock::Fair, Role::Write) => Walk::Fair(FairSteps::release(Class::Writer, node, woken)),
            (_, Role::Read) => Walk::Counted(CountedSteps::release_read()),
            (_, Role::Write) => Walk::Counted(CountedSteps::release_write(node, woken)),
        };
        self.walk()
    }

    /// Continues with the walk's next step.
    fn walk(&mut self) -> StepResult {
        let (walk, barges) = (self.rank().walk, self.model.barges());
        let (end, woken, node) = match &walk {
            Walk::None => return Ok(()),
            Walk::Counted(s) => {
                (if let CountedAt::End(end) = s.at { Some(end) } else { None }, s.woken, s.node_after())
            }
            Walk::Fair(s) => (if let FairAt::End(end) = s.at { Some(end) } else { None }, s.woken, s.node_after()),
        };
        match end {
            Some(End::Inside) => {
                let rank = self.rank();
                (rank.walk, rank.woken) = (Walk::None, woken);
                rank.word = if let (true, Walk::Counted(s)) = (barges, &walk) { s.word } else { 0 };
                self.enter()
            }
            Some(End::Out) => {
                if node == Some(Node::Clean) {
                    self.node_is(Slot::Clean);
                }
                if let (true, Walk::Counted(s)) = (barges, &walk) {
                    self.rank().left = s.left;
                }
                self.rank().walk = Walk::None;
                self.end_round()
            }
            Some(_) => Err(Violation::NoRoom("an acquisition that gives up")),
            None if self.model.tables.pending(&walk) == Some(steps::Op::Take) => self.take_node(Goal::Walk),
            None => self.go(Pc::Walk),
        }
    }

    /// Continues with the node that was taken.
    pub(crate) fn walk_with_node(&mut self) -> StepResult {
        let id = self.model.own_id(self.s, self.me);
        self.model.tables.resume(&mut self.s.ranks[self.me].walk, id)?;
        self.walk()
    }

    /// Continues after the walk's operation has found `found`.
    pub(crate) fn walked(&mut self, found: u64) -> StepResult {
        let (model, me) = (self.model, self.me);
        let walk = &mut self.s.ranks[me].walk;
        model.flush(walk);
        let op = model.tables.pending(walk);
        // The kind of the wake-up.
        let found = if let Some(steps::Op::Wait(_)) = op { found & 0xff } else { found };
        model.tables.resume(walk, found)?;
        if let Some(steps::Op::Retire(_) | steps::Op::GiveBack(_)) = op {
            self.node_is(Slot::Dirty);
        }
        self.walk()
    }
}

impl Model {
    /// Returns the node that a mutated rank has stored after a step.
    pub(crate) fn remembers(&self, walk: &Walk, found: u64) -> Option<u64> {
        let Walk::Counted(steps) = walk else { return None };
        match (self.mutant, steps.at) {
            (Some(Mutant::RememberedNext), CountedAt::X5Flush | CountedAt::X6) => {
                Some(steps.next.map_or(0, NodeId::bits))
            }
            (Some(Mutant::ToldTooLate), CountedAt::X3Forget | CountedAt::R5Forget) => Some(found),
            _ => None,
        }
    }
}
