//! Deaths as moves: when they may come, and what they do.

use crate::{
    act::Act,
    automaton::LocalId,
    loss::{Ranks, bit},
    state::{ALL, State},
    world::{Halt, Move, World},
};
use rdma_fabric::Rank;

impl World<'_> {
    /// Deaths, and their becoming known.
    pub(crate) fn losses(&self, state: &State, into: &mut Vec<Move>) {
        let ranks = || (0..state.ranks.len() as u32).map(Rank::new);
        let number = |rank: Rank| rank.number() as u8;
        for rank in ranks().filter(|rank| self.automaton.job.mortal & bit(*rank) != 0) {
            if !state.losses.is_dead(rank) {
                if !state.losses.has_ended(rank) {
                    into.push(Move::Die(number(rank)));
                }
                continue;
            }
            // Who has come to its end asks for nothing any more.
            let goes_on = |other: &Rank| !state.losses.is_dead(*other) && !self.is_over(state, *other);
            let learns = ranks().filter(|other| goes_on(other) && state.losses.may_learn(*other, rank));
            into.extend(learns.map(|other| Move::Learn(number(other), number(rank))));
            if !ranks().any(|other| goes_on(&other)) && state.items.iter().any(|item| item.by == rank) {
                into.push(Move::Vanish(number(rank)));
            }
        }
    }

    pub(crate) fn lose(&mut self, state: &mut State, which: Move) -> Result<(), Halt> {
        let never = |what: &str| Err(Halt::Failure(format!("the schedule {what}")));
        let rank = |number: u8| Rank::new(number.into());
        match which {
            Move::Die(number) => {
                let rank = rank(number);
                let over = state.losses.is_dead(rank) || state.losses.has_ended(rank);
                if over || self.automaton.job.mortal & bit(rank) == 0 {
                    return never(&format!("lets {rank} die, which can't"));
                }
                if let Some(timeline) = &mut self.timeline {
                    timeline.dies(rank);
                }
                state.die(rank);
                Ok(())
            }
            Move::Learn(by, lost) => {
                let (by, lost) = (rank(by), rank(lost));
                if by.index() >= state.ranks.len() || !state.losses.may_learn(by, lost) {
                    return never(&format!("lets {by} learn of the loss of {lost}, which it can't"));
                }
                if let Some(timeline) = &mut self.timeline {
                    timeline.learns(by, lost);
                }
                state.learn(by, lost);
                self.go_on_at_once(state, by)
            }
            Move::Vanish(number) => {
                let rank = rank(number);
                if let Some(timeline) = &mut self.timeline {
                    timeline.vanishes(rank);
                }
                state.vanish(rank);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn is_over(&self, state: &State, rank: Rank) -> bool {
        self.automaton.local(state.ranks[rank.index()].local).act == Act::Done
    }

    /// Whether a rank that may die has nothing more to do but to end, before which it may still die.
    pub(crate) fn is_about_to_end(&self, state: &State, rank: Rank) -> bool {
        self.automaton.job.mortal & bit(rank) != 0 && !state.losses.has_ended(rank) && self.is_over(state, rank)
    }

    pub(crate) fn end(&mut self, state: &mut State, rank: Rank) {
        state.losses.end(rank);
        if let Some(timeline) = &mut self.timeline {
            timeline.done(rank);
        }
    }

    /// Whether a rank that awaits an operation goes on as soon as that has happened: it waits for nothing else, and the operation's target
    /// can't be lost before it hears, nor can what is under way to it fail.
    pub(crate) fn is_told_at_once(&mut self, state: &State, rank: Rank, local: LocalId) -> bool {
        if !self.is_sole(local) {
            return false;
        }
        let mortal: Ranks = self.automaton.job.mortal;
        let &Act::Await(slot) = &self.automaton.local(local).act else { return false };
        if self.may_hear_more(state, rank, slot) {
            return false;
        }
        let lasts = |target: Rank| {
            target == rank
                || target == ALL
                || mortal & bit(target) == 0
                || state.losses.has_ended(target)
                || state.losses.known_to(rank) & bit(target) != 0
        };
        mortal == 0 || state.items.iter().filter(|i| i.by == rank && i.slot == slot).all(|i| lasts(i.target))
    }
}
