//! The fair lock. Steps are those of `docs/systems/queued-locks.md`.

use crate::{
    model::{Model, Role, Violation},
    op::{Flushed, Op, Pending},
    state::{Pc, Slot, State},
    turn::{StepResult, Turn, wake},
    words::{FAIR_TAIL, INSIDE, Id, PASSED, STATE, WRITES},
};
use rdma_fabric::Amo;

/// The next step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum AtFair {
    F1,
    F2,
    F3,
    F4,
    F5,
    F5Back,
    F6,
    F7,
    F7Count,
    F7Wake,
    G1Load,
    G1,
    G1Mark,
    /// G1 of the queue's last, if nobody woke it: what the node said is taken back.
    G1Unsay,
    G1Retire,
    G2,
    G3,
    G4,
    G5,
}

/// One reader, in the state.
const ONE: u64 = 1;
const WRITER: u32 = 32;

impl Model {
    /// Returns what the node of `me` says while `me` is inside.
    fn says(&self, me: usize) -> u64 {
        if self.roles[me] == Role::Read { INSIDE } else { 0 }
    }

    /// Returns what G3 adds.
    fn uncounts(link: u64) -> u64 {
        let writer = if link & WRITES == 0 { 0 } else { link & !WRITES };
        (writer << WRITER).wrapping_sub(ONE)
    }

    /// Returns what `me` is about to do.
    pub(crate) fn fair(&self, at: AtFair, s: &State, me: usize) -> Pending {
        let rank = &s.ranks[me];
        let id = self.own_id(s, me);
        let says = self.says(me);
        let state = |amo| Op::Atomic(STATE, amo);
        let op = match at {
            AtFair::F1 => Op::Atomic(FAIR_TAIL, Amo::Swap(id)),
            AtFair::F2 => {
                let class = if self.roles[me] == Role::Write { WRITES } else { 0 };
                Op::Atomic(self.next_of(rank.other), Amo::Swap(id | class))
            }
            AtFair::F3 | AtFair::F7Count | AtFair::G2 => state(Amo::Add(ONE)),
            AtFair::F4 => Op::Get(STATE),
            AtFair::F5 => state(Amo::Add(id << WRITER)),
            AtFair::F5Back => state(Amo::Add((id << WRITER).wrapping_neg())),
            AtFair::F6 => rank.wait(me),
            AtFair::F7 => Op::Atomic(rank.next_word(me), Amo::CompareSwap { expected: 0, new: INSIDE }),
            AtFair::F7Wake | AtFair::G5 => wake(self, rank.other, false),
            AtFair::G1Load => Op::Load(rank.next_word(me)),
            AtFair::G1 => Op::Atomic(FAIR_TAIL, Amo::CompareSwap { expected: id, new: 0 }),
            AtFair::G1Mark => Op::Atomic(rank.next_word(me), Amo::CompareSwap { expected: says, new: PASSED }),
            AtFair::G1Unsay => Op::Store(rank.next_word(me), 0),
            AtFair::G1Retire => rank.retire(me),
            AtFair::G3 => state(Amo::Add(Model::uncounts(rank.link))),
            AtFair::G4 => state(Amo::Add((rank.other << WRITER).wrapping_neg())),
        };
        Pending { op, after: if at == AtFair::G1Load { Flushed::All } else { Flushed::Nothing } }
    }
}

impl Turn<'_> {
    fn at(&mut self, at: AtFair) -> StepResult {
        self.go(Pc::Fair(at))
    }

    /// Returns the node and class of a link; 0 if nobody is linked.
    fn link_of(&self, link: u64) -> Result<u64, Violation> {
        Id::decode("next", link & !WRITES, self.model.ranks()).map(|id| id.map_or(0, |_| link))
    }

    /// Continues after the step `at` has found `found`.
    pub(crate) fn fair(&mut self, at: AtFair, found: u64) -> StepResult {
        let (model, me, reads) = (self.model, self.me, self.role() == Role::Read);
        let says = model.says(me);
        match at {
            AtFair::F1 => {
                self.rank().other = self.decode("tail", found)?;
                if found == 0 { self.ahead() } else { self.at(AtFair::F2) }
            }
            AtFair::F2 => {
                self.rank().other = 0;
                match found {
                    0 => self.at(AtFair::F6),
                    PASSED => self.ahead(),
                    INSIDE if reads => self.ahead(),
                    INSIDE => self.at(AtFair::F6),
                    bits => Err(Violation::Corrupt { what: "next", bits }),
                }
            }
            AtFair::F3 => self.at(AtFair::F7),
            AtFair::F4 if found == 0 => self.enter(),
            AtFair::F4 => self.at(AtFair::F5),
            AtFair::F5 => self.at(if found == 0 { AtFair::F5Back } else { AtFair::F6 }),
            AtFair::F5Back => self.enter(),
            AtFair::F6 => {
                self.rank().woken = true;
                if reads { self.at(AtFair::F7) } else { self.enter() }
            }
            AtFair::F7 => match self.link_of(found)? {
                reader if reader != 0 && reader & WRITES == 0 => {
                    self.rank().other = reader;
                    self.at(AtFair::F7Count)
                }
                _ => self.enter(),
            },
            AtFair::F7Count => self.at(AtFair::F7Wake),
            AtFair::F7Wake => self.enter(),
            AtFair::G1Load if found == says => self.at(AtFair::G1),
            AtFair::G1Load => self.out_before(found),
            AtFair::G1 if found != model.own_id(self.s, me) => self.at(AtFair::G1Mark),
            AtFair::G1 if self.rank().woken => self.at(AtFair::G1Retire),
            AtFair::G1 if reads => self.at(AtFair::G1Unsay),
            AtFair::G1 => {
                self.node_is(Slot::Fresh);
                self.out()
            }
            AtFair::G1Mark if found == says => self.at(AtFair::G1Retire),
            AtFair::G1Mark => self.out_before(found),
            AtFair::G1Unsay => {
                self.node_is(Slot::Fresh);
                self.out()
            }
            AtFair::G1Retire => {
                self.node_is(Slot::Worn);
                self.out()
            }
            AtFair::G2 => self.at(AtFair::G5),
            AtFair::G3 => {
                let left = found.wrapping_add(Model::uncounts(self.rank().link));
                self.rank().link = 0;
                let first = left >> WRITER;
                if left as u32 != 0 || first == 0 {
                    return self.end_round();
                }
                self.rank().other = self.decode("state", first)?;
                self.at(AtFair::G4)
            }
            AtFair::G4 => self.at(AtFair::G5),
            AtFair::G5 => self.end_round(),
        }
    }

    /// Continues as the queue's first, or behind a reader inside.
    fn ahead(&mut self) -> StepResult {
        let at = if self.role() == Role::Read { AtFair::F3 } else { AtFair::F4 };
        self.at(at)
    }

    /// Continues after G1 with a successor.
    fn out_before(&mut self, link: u64) -> StepResult {
        let next = self.link_of(link)?;
        if next == 0 {
            return Err(Violation::Corrupt { what: "next", bits: link });
        }
        self.rank().link = next;
        self.at(AtFair::G1Retire)
    }

    fn out(&mut self) -> StepResult {
        if self.role() == Role::Read {
            return self.at(AtFair::G3);
        }
        let link = self.rank().link;
        let rank = self.rank();
        (rank.link, rank.other) = (0, link & !WRITES);
        match link {
            0 => self.end_round(),
            _ if link & WRITES == 0 => self.at(AtFair::G2),
            _ => self.at(AtFair::G5),
        }
    }
}
