//! The moves that are possible next, and their effects.
//!
//! # What happens at once
//! Other ranks cannot observe some of a rank's moves, or can no longer influence them.
//! [`Model::settle`] makes such moves as soon as they are possible. This does not lose any order,
//! because each of them commutes with every step of other ranks, stays possible until it is made,
//! and makes no change visible to others:
//! * Posting a put; stores to the rank's own words of a node that is in no queue, or that only its
//!   owner reads there.
//! * Continuing after a wait: only its owner changes a wake word that holds *granted*.
//! * Loading a next word that identifies a successor: the word was written once, and is not written
//!   again until its owner has finished using it.
//! * Reading the data. Its version changes only while a writer is inside, and if another rank is
//!   inside as well, [`Violation::Exclusion`] is reported anyway.
//! * The arrival of a put to the data that its writer is flushing: no other rank is inside to read
//!   it.
//!
//! With [mutants](crate::Mutant) these conditions need not hold. The search then tries fewer
//! orders, but every path that it finds is still a run.

use crate::{
    canonical,
    level::AtLevel,
    model::{Lock, Model, Role, Violation},
    mutant::Mutant,
    op::{Done, Flushed, Move, Op, Pending},
    state::{MOST_RANKS, Pc, State, Taking},
    words::{HEAD, INSIDE, PASSED, Word},
};

/// The possible moves of a state, as bits: steps of ranks, arrivals at the head, arrivals at the
/// data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moves(u32);

impl Moves {
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Iterator for Moves {
    type Item = Move;

    fn next(&mut self) -> Option<Move> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        let rank = bit % MOST_RANKS;
        Some(match bit / MOST_RANKS {
            0 => Move::Step(rank),
            1 => Move::Arrive(rank, HEAD),
            _ => Move::Arrive(rank, Word::Data),
        })
    }
}

impl Model {
    /// Returns the pending operation of `me`; `None` if it has ended.
    pub fn pending(&self, s: &State, me: usize) -> Option<Pending> {
        let right = self.right(s, me)?;
        Some(if self.mutant.is_some() { self.mutated_pending(&s.ranks[me], right) } else { right })
    }

    /// Returns the [fingerprint](crate#states-that-count-as-one) of a state.
    pub fn fingerprint(&self, s: &State) -> u128 {
        canonical::fingerprint(self, &canonical::classes(self), s)
    }

    /// Returns whether the pending operation of `me` is possible now.
    pub fn can_step(&self, s: &State, me: usize) -> bool {
        self.pending(s, me).is_some_and(|pending| is_possible(s, me, &pending))
    }

    pub(crate) fn moves(&self, s: &State) -> Moves {
        let mut bits = 0;
        for me in 0..self.ranks() {
            bits |= u32::from(self.can_step(s, me)) << me;
            bits |= u32::from(s.ranks[me].head_put != 0) << (MOST_RANKS + me);
            bits |= u32::from(s.ranks[me].data_put != 0) << (2 * MOST_RANKS + me);
        }
        Moves(bits)
    }

    /// Makes the move `next`, which must be possible. Returns its outcome, and the violation that
    /// it causes, if any.
    pub fn take(&self, s: &mut State, next: Move) -> (Done, Result<(), Violation>) {
        match next {
            Move::Arrive(rank, word) => {
                let from = &mut s.ranks[rank];
                let bits = if word == HEAD {
                    std::mem::take(&mut from.head_put)
                } else {
                    u64::from(std::mem::take(&mut from.data_put))
                };
                s.write(word, bits);
                (Done { rank, op: None, word, bits }, Ok(()))
            }
            Move::Step(me) => {
                let pending = self.pending(s, me).expect("it has not ended");
                let (op, word) = (pending.op, pending.op.word());
                let bits = s.read(word);
                let done = Done { rank: me, op: Some(op), word, bits };
                match op {
                    Op::Atomic(_, amo) => s.write(word, amo.apply(bits)),
                    Op::Store(_, value) => s.write(word, value),
                    Op::Put(word, value) => {
                        let from = &mut s.ranks[me];
                        let occupied = if word == HEAD { from.head_put != 0 } else { from.data_put != 0 };
                        if occupied {
                            return (done, Err(Violation::NoRoom("a second put of a rank to the same word")));
                        }
                        if word == HEAD { from.head_put = value } else { from.data_put = value as u8 }
                    }
                    Op::Get(_) | Op::Load(_) | Op::Watch(..) => {}
                }
                let found = if self.mutant.is_some() { self.mutated_result(&s.ranks[me], op, bits) } else { bits };
                if let Some(remembered) = self.remembers(&s.ranks[me].walk, bits) {
                    s.ranks[me].other = remembered;
                }
                let went = self.turn(s, me).resume(found);
                (done, went.and_then(|()| self.exclusion(s)))
            }
        }
    }

    /// Makes all moves that [happen immediately](self), and calls `note` for each.
    pub(crate) fn settle(&self, s: &mut State, mut note: impl FnMut(Done)) -> Result<(), Violation> {
        let mut me = 0;
        let mut quiet = 0;
        while quiet < self.ranks() {
            match self.at_once(s, me) {
                Some(next) => {
                    let (done, went) = self.take(s, next);
                    note(done);
                    went?;
                    quiet = 0;
                }
                None => {
                    quiet += 1;
                    me = if me + 1 == self.ranks() { 0 } else { me + 1 };
                }
            }
        }
        Ok(())
    }

    fn at_once(&self, s: &State, me: usize) -> Option<Move> {
        let pending = self.pending(s, me)?;
        if pending.after == Flushed::All && s.ranks[me].data_put != 0 {
            return Some(Move::Arrive(me, Word::Data));
        }
        if !is_possible(s, me, &pending) {
            return None;
        }
        let settled = match pending.op {
            Op::Put(..) | Op::Watch(..) | Op::Get(Word::Data) => true,
            Op::Store(..) => !self.does(Mutant::LateInitialisation),
            Op::Load(word) => is_final(s.ranks[me].pc, s.read(word)),
            Op::Atomic(..) | Op::Get(_) => false,
        };
        settled.then_some(Move::Step(me))
    }

    /// Returns whether `me` is inside: from the moment it knows that it is until the operation that
    /// admits others.
    fn is_inside(&self, s: &State, me: usize) -> bool {
        let by_level = self.second_is_levels(me) && self.has_level(me);
        match s.ranks[me].pc {
            Pc::Look | Pc::Write => true,
            Pc::Walk => !by_level && s.ranks[me].walk.still_inside(self.roles[me]),
            Pc::Level(AtLevel::N5) => true,
            _ => false,
        }
    }

    /// Checks that a writer is alone inside.
    fn exclusion(&self, s: &State) -> Result<(), Violation> {
        let (mut readers, mut writers) = (0, 0);
        for me in 0..self.ranks() {
            if self.is_inside(s, me) {
                match self.roles[me] {
                    Role::Read => readers += 1,
                    Role::Write => writers += 1,
                }
            }
        }
        if writers > 1 || writers == 1 && readers > 0 { Err(Violation::Exclusion) } else { Ok(()) }
    }

    /// Returns whether all readers are inside at the same time.
    pub(crate) fn all_readers_inside(&self, s: &State) -> bool {
        (0..self.ranks()).all(|me| self.roles[me] == Role::Write || self.is_inside(s, me))
    }

    /// Checks that `s`, a state without further moves, is a proper end.
    pub(crate) fn end(&self, s: &State) -> Result<(), Violation> {
        if let Some(rank) = (0..self.ranks()).find(|me| s.ranks[*me].pc != Pc::End) {
            return Err(Violation::Deadlock { rank });
        }
        let at_rest: &[&str] = if self.lock == Lock::Fair { &["state", "tail"] } else { &["count", "readers", "tail"] };
        let home = at_rest.iter().zip(s.home).map(|(word, bits)| (*word, bits));
        let levels = s.level.as_flattened().iter().map(|bits| ("a word of a node", *bits));
        if let Some((word, bits)) = home.chain(levels).find(|(_, bits)| *bits != 0) {
            return Err(Violation::Residue { word, bits });
        }
        for cell in s.ranks[..self.ranks()].iter().flat_map(|rank| rank.cells) {
            if cell.wake & 0xff != 0 {
                return Err(Violation::Residue { word: "wake", bits: cell.wake });
            }
            if cell.next == PASSED {
                return Err(Violation::Residue { word: "next", bits: cell.next });
            }
        }
        Ok(())
    }
}

fn is_possible(s: &State, me: usize, pending: &Pending) -> bool {
    let rank = &s.ranks[me];
    let flushed = match pending.after {
        Flushed::Nothing => true,
        Flushed::Head => rank.head_put == 0,
        Flushed::All => rank.head_put == 0 && rank.data_put == 0,
    };
    flushed
        && match pending.op {
            Op::Watch(word, bits) => s.read(word) != bits,
            _ => true,
        }
}

/// Returns whether a load that finds `bits` in the rank's own next word would find the same value
/// at any later time.
fn is_final(pc: Pc, bits: u64) -> bool {
    match pc {
        Pc::Take(Taking::Load) => bits != PASSED,
        _ => bits != 0 && bits != INSIDE,
    }
}
