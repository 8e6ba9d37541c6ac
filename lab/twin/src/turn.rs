//! A rank's turn, the part that is common to all locks: rounds, the data, taking a node, waking.

use crate::{
    level::AtLevel,
    model::{Lock, Model, Role, Violation},
    mutant::Mutant,
    op::{Flushed, Op, Pending},
    state::{Goal, Pc, Rank, Slot, State, Taking},
    words::{BLOCKED, GRANTED, Id, PASSED, TURNS, Word, wake_word},
};
use rdma_fabric::Amo;

/// A rank that makes its next move.
pub(crate) struct Turn<'a> {
    pub(crate) model: &'a Model,
    pub(crate) s: &'a mut State,
    pub(crate) me: usize,
}

/// The result of a function that ends a step.
pub(crate) type StepResult = Result<(), Violation>;

/// Returns the operation that wakes the node identified by `bits`.
pub(crate) fn wake(model: &Model, bits: u64, of_level: bool) -> Op {
    // Only nodes that were decoded are woken, so the conversion cannot fail.
    let id = Id::of(bits, model.ranks()).expect("a node");
    let cell = if of_level { 1 } else { id.slot() };
    let word = Word::Wake(id.rank() as u8, cell);
    Op::Atomic(word, Amo::CompareSwap { expected: wake_word(BLOCKED, id.turn()), new: wake_word(GRANTED, id.turn()) })
}

impl Rank {
    pub(crate) fn turn(&self) -> u8 {
        self.turns[self.cell as usize]
    }

    pub(crate) fn next_word(&self, me: usize) -> Word {
        Word::Next(me as u8, self.cell)
    }

    pub(crate) fn wake_word(&self, me: usize) -> Word {
        Word::Wake(me as u8, self.cell)
    }

    /// Returns the wait of R6, W7, F6, N11.
    pub(crate) fn wait(&self, me: usize) -> Op {
        Op::Watch(self.wake_word(me), wake_word(BLOCKED, self.turn()))
    }

    /// Returns the store that begins the node's next turn.
    pub(crate) fn retire(&self, me: usize) -> Op {
        Op::Store(self.wake_word(me), wake_word(BLOCKED, self.turn() + 1))
    }
}

impl Model {
    pub(crate) fn turn<'a>(&'a self, s: &'a mut State, me: usize) -> Turn<'a> {
        Turn { model: self, s, me }
    }

    /// Returns the identifier of the node that `me` uses, as stored in words.
    pub(crate) fn own_id(&self, s: &State, me: usize) -> u64 {
        let rank = &s.ranks[me];
        let slot = if self.second_is_levels(me) { 0 } else { rank.cell };
        Id::new(me, slot, rank.turn()).bits()
    }

    /// Returns the pending operation of `me` according to the lock; `None` if it has ended.
    pub(crate) fn right(&self, s: &State, me: usize) -> Option<Pending> {
        let rank = &s.ranks[me];
        let now = |op| Some(Pending { op, after: Flushed::Nothing });
        match rank.pc {
            Pc::End => None,
            Pc::Take(Taking::Load) => now(Op::Load(Word::Next(me as u8, rank.cell))),
            Pc::Take(Taking::Clear | Taking::ClearLate) => now(Op::Store(rank.next_word(me), 0)),
            Pc::Look => now(Op::Get(Word::Data)),
            Pc::Write => now(Op::Put(Word::Data, u64::from(s.writes) + 1)),
            Pc::Walk => self.walks(rank, me),
            Pc::Level(at) => Some(self.level(at, s, me)),
        }
    }
}

impl Turn<'_> {
    pub(crate) fn rank(&mut self) -> &mut Rank {
        &mut self.s.ranks[self.me]
    }

    pub(crate) fn go(&mut self, pc: Pc) -> StepResult {
        self.rank().pc = pc;
        Ok(())
    }

    pub(crate) fn decode(&self, what: &'static str, bits: u64) -> Result<u64, Violation> {
        Id::decode(what, bits, self.model.ranks()).map(|id| id.map_or(0, Id::bits))
    }

    pub(crate) fn role(&self) -> Role {
        self.model.roles[self.me]
    }

    pub(crate) fn begin_round(&mut self) {
        let begun = match (self.model.lock, self.role()) {
            (Lock::Aggregated, Role::Read) if self.model.has_level(self.me) => self.go(Pc::Level(AtLevel::N1)),
            _ => self.acquire(),
        };
        debug_assert!(begun.is_ok());
    }

    pub(crate) fn end_round(&mut self) -> StepResult {
        let rank = self.rank();
        (rank.link, rank.other, rank.woken) = (0, 0, false);
        (rank.goal, rank.cell) = (Goal::Walk, 0);
        rank.rounds -= 1;
        if rank.rounds == 0 {
            return self.go(Pc::End);
        }
        self.begin_round();
        Ok(())
    }

    /// Sets the state of the node in use.
    pub(crate) fn node_is(&mut self, slot: Slot) {
        let rank = self.rank();
        rank.slots[rank.cell as usize] = slot;
    }

    /// R2, W1: takes a node and continues to `goal`.
    pub(crate) fn take_node(&mut self, goal: Goal) -> StepResult {
        let cell = u8::from(goal == Goal::N8);
        let rank = self.rank();
        (rank.goal, rank.cell) = (goal, cell);
        match rank.slots[cell as usize] {
            Slot::Clean => self.taken(),
            Slot::Dirty => self.go(Pc::Take(Taking::Load)),
            Slot::Taken => Err(Violation::NoRoom("two acquisitions of a rank")),
        }
    }

    fn taken(&mut self) -> StepResult {
        self.node_is(Slot::Taken);
        match self.rank().goal {
            Goal::Walk => self.walk_with_node(),
            Goal::N8 => self.go(Pc::Level(AtLevel::N8)),
        }
    }

    fn took(&mut self, taking: Taking, found: u64) -> StepResult {
        let late = self.model.does(Mutant::LateInitialisation);
        let levels = self.model.second_is_levels(self.me);
        let rank = self.rank();
        match taking {
            Taking::Load if found == PASSED => {
                // A successor is about to link itself to the first node; the second was never used.
                if levels || rank.cell != 0 || rank.slots[1] != Slot::Clean {
                    return Err(Violation::NoRoom("a third node of a rank"));
                }
                rank.cell = 1;
                self.taken()
            }
            Taking::Load => {
                let cell = rank.cell as usize;
                let turn = (rank.turns[cell] + 1) % TURNS;
                if rank.cells[cell].wake != wake_word(BLOCKED, turn) {
                    return Err(Violation::Corrupt { what: "wake", bits: rank.cells[cell].wake });
                }
                rank.turns[cell] = turn;
                if found == 0 {
                    return self.taken();
                }
                if late {
                    rank.late = true;
                    return self.taken();
                }
                self.go(Pc::Take(Taking::Clear))
            }
            Taking::Clear => self.taken(),
            Taking::ClearLate => {
                let found = std::mem::take(&mut rank.other);
                match rank.goal {
                    Goal::Walk => self.walked(found),
                    Goal::N8 => self.level(AtLevel::N8, found),
                }
            }
        }
    }

    /// Continues inside: the lock is held.
    pub(crate) fn enter(&mut self) -> StepResult {
        let rank = self.rank();
        (rank.link, rank.other) = (0, 0);
        if self.role() == Role::Read && self.model.has_level(self.me) {
            return self.go(Pc::Level(AtLevel::N3));
        }
        self.go(Pc::Look)
    }

    fn leave(&mut self) -> StepResult {
        match self.role() {
            Role::Read if self.model.has_level(self.me) => self.go(Pc::Level(AtLevel::N5)),
            _ => self.release(),
        }
    }

    /// Continues after the pending operation has found `found`.
    pub(crate) fn resume(&mut self, found: u64) -> StepResult {
        let pc = self.rank().pc;
        if self.rank().late && !matches!(pc, Pc::Take(_)) {
            let rank = self.rank();
            (rank.late, rank.other) = (false, found);
            return self.go(Pc::Take(Taking::ClearLate));
        }
        match pc {
            Pc::End => Ok(()),
            Pc::Take(taking) => self.took(taking, found),
            Pc::Look => {
                let writes = u64::from(self.s.writes);
                if found != writes {
                    return Err(Violation::Missed { version: found, writes });
                }
                if self.role() == Role::Write { self.go(Pc::Write) } else { self.leave() }
            }
            Pc::Write => {
                self.s.writes += 1;
                self.leave()
            }
            Pc::Walk => self.walked(found),
            Pc::Level(at) => self.level(at, found),
        }
    }
}
