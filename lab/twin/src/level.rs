//! The level of nodes below a lock that counts readers. The steps are those of
//! `docs/systems/locks.md`, except for giving up.

use crate::{
    model::{Model, Violation},
    op::{Flushed, Op, Pending},
    state::{Goal, Pc, Slot, State},
    turn::{StepResult, Turn, wake},
    words::{HELD, LEVEL_COUNT, LEVEL_WAITING, READER, Word},
};
use rdma_fabric::Amo;

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AtLevel {
    N1,
    N3,
    N3Sweep,
    N3Wake,
    N5,
    N6,
    N8,
    N8Store,
    N9,
    N10,
    N10Wake,
    N11,
    N11Retire,
    N12,
}

/// Never set in this model, because no leader gives up.
const ORPHAN: u64 = 2;

impl Model {
    /// Returns the pending operation of `me`.
    pub(crate) fn level(&self, at: AtLevel, s: &State, me: usize) -> Pending {
        let rank = &s.ranks[me];
        let node = self.nodes[me];
        let [count, waiting] = [LEVEL_COUNT, LEVEL_WAITING].map(|word| Word::Level { node, word });
        let op = match at {
            AtLevel::N1 => Op::Atomic(count, Amo::Add(READER)),
            AtLevel::N3 => Op::Atomic(count, Amo::Add(HELD)),
            AtLevel::N3Sweep | AtLevel::N10 => Op::Atomic(waiting, Amo::Swap(0)),
            AtLevel::N3Wake | AtLevel::N10Wake => wake(self, rank.other, true),
            AtLevel::N5 => Op::Atomic(count, Amo::Add(READER.wrapping_neg())),
            AtLevel::N6 => Op::Atomic(count, Amo::CompareSwap { expected: HELD, new: 0 }),
            AtLevel::N8 => Op::Atomic(waiting, Amo::Swap(self.own_id(s, me))),
            AtLevel::N8Store => Op::Store(rank.next_word(me), rank.link),
            AtLevel::N9 => Op::Get(count),
            AtLevel::N11 => rank.wait(me),
            AtLevel::N11Retire => rank.retire(me),
            AtLevel::N12 => wake(self, rank.link, true),
        };
        Pending { op, after: if at == AtLevel::N5 { Flushed::All } else { Flushed::Nothing } }
    }
}

impl Turn<'_> {
    fn up(&mut self, at: AtLevel) -> StepResult {
        self.go(Pc::Level(at))
    }

    fn inside(&mut self) -> StepResult {
        let rank = self.rank();
        (rank.link, rank.other) = (0, 0);
        self.go(Pc::Look)
    }

    /// Continues after the step `at` has found `found`.
    pub(crate) fn level(&mut self, at: AtLevel, found: u64) -> StepResult {
        match at {
            AtLevel::N1 | AtLevel::N9 if found & ORPHAN != 0 => Err(Violation::Corrupt { what: "node", bits: found }),
            AtLevel::N1 if found & HELD != 0 => self.inside(),
            AtLevel::N1 if found == 0 => self.acquire(),
            AtLevel::N1 => self.take_node(Goal::N8),
            AtLevel::N3 => {
                self.rank().cell = 1;
                if found > READER { self.up(AtLevel::N3Sweep) } else { self.inside() }
            }
            AtLevel::N3Sweep => {
                let top = self.decode("waiting", found)?;
                self.rank().other = top;
                if top == 0 { self.inside() } else { self.up(AtLevel::N3Wake) }
            }
            AtLevel::N3Wake | AtLevel::N12 => self.inside(),
            AtLevel::N5 if found == READER + HELD => self.up(AtLevel::N6),
            AtLevel::N6 if found == HELD => self.release(),
            AtLevel::N5 | AtLevel::N6 => self.end_round(),
            AtLevel::N8 => {
                let below = self.decode("waiting", found)?;
                self.rank().link = below;
                self.up(if below == 0 { AtLevel::N9 } else { AtLevel::N8Store })
            }
            AtLevel::N8Store => self.up(AtLevel::N9),
            AtLevel::N9 => self.up(if found & HELD == 0 { AtLevel::N11 } else { AtLevel::N10 }),
            AtLevel::N10 => {
                let top = self.decode("waiting", found)?;
                self.rank().other = top;
                self.up(if top == 0 { AtLevel::N11 } else { AtLevel::N10Wake })
            }
            AtLevel::N10Wake => {
                self.rank().other = 0;
                self.up(AtLevel::N11)
            }
            AtLevel::N11 => self.up(AtLevel::N11Retire),
            AtLevel::N11Retire => {
                self.node_is(Slot::Dirty);
                if self.rank().link == 0 { self.inside() } else { self.up(AtLevel::N12) }
            }
        }
    }
}
