//! The possible moves of a job: the acts of resting ranks, and the conditions that they wait for.

use crate::{
    act::{Act, Answer},
    cell::{CellPart, Home},
    rules::overlap,
    state::{ItemKind, State},
    words,
    world::{Halt, Move, World},
};
use rdma_fabric::Rank;

/// The possible acts of a resting rank.
pub(crate) struct Outlook {
    pub(crate) goes_on: bool,
    /// The word to which it would store first.
    pub(crate) stores: Option<CellPart>,
    /// The next deadline that it waits for.
    deadline: Option<u64>,
}

impl World<'_> {
    /// Collects the possible moves in `state`, in a fixed order.
    pub(crate) fn moves(&mut self, state: &State, into: &mut Vec<Move>) -> Result<(), Halt> {
        into.clear();
        for r in 0..state.ranks.len() as u8 {
            self.moves_of_cpu(state, r, into)?;
            let mut number = 0;
            for place in 0..state.items.len() {
                if state.items[place].by.index() == r as usize {
                    if state.may_happen(place, self.order)
                        || self.is_by_own_cpu(state, place)
                        || self.is_flush_without_read(state, place)
                    {
                        into.push(Move::Happen(r, number));
                        if self.may_begin(state, place)? {
                            into.push(Move::Begin(r, number));
                        }
                    }
                    number += 1;
                }
            }
        }
        self.losses(state, into);
        self.writes(state, into)?;
        self.one_order_of_set_up(state, into);
        Ok(())
    }

    fn moves_of_cpu(&mut self, state: &State, r: u8, into: &mut Vec<Move>) -> Result<(), Halt> {
        let rank = Rank::new(r.into());
        if state.losses.is_dead(rank) {
            return Ok(());
        }
        if self.is_about_to_end(state, rank) {
            into.push(Move::Go(r));
            return Ok(());
        }
        let local = self.automaton.local(state.ranks[r as usize].local);
        if let Some(tasks) = local.choices() {
            let mut deadline = false;
            for task in (0..64).filter(|task| tasks >> task & 1 == 1) {
                let outlook = self.outlook(state, r, Some(task))?;
                deadline |= outlook.deadline.is_some();
                if outlook.goes_on {
                    into.push(Move::GoWith(r, task));
                }
            }
            if deadline {
                into.push(Move::Tick(r));
            }
        } else {
            let outlook = self.outlook(state, r, None)?;
            if outlook.goes_on {
                into.push(Move::Go(r));
            }
            if outlook.deadline.is_some() {
                into.push(Move::Tick(r));
            }
        }
        Ok(())
    }

    pub(crate) fn next_deadline(&mut self, state: &State, rank: u8) -> Result<Option<u64>, Halt> {
        let local = self.automaton.local(state.ranks[rank as usize].local);
        let Some(tasks) = local.choices() else { return Ok(self.outlook(state, rank, None)?.deadline) };
        let mut next = None::<u64>;
        for task in (0..64).filter(|task| tasks >> task & 1 == 1) {
            if let Some(deadline) = self.outlook(state, rank, Some(task))?.deadline {
                next = Some(next.map_or(deadline, |next| next.min(deadline)));
            }
        }
        Ok(next)
    }

    /// Evaluates all conditions that the rank waits for, without changing anything.
    pub(crate) fn outlook(&mut self, state: &State, rank: u8, task: Option<u8>) -> Result<Outlook, Halt> {
        self.request_ahead(state, rank, task, |_| {})
    }

    /// Evaluates all conditions that the rank waits for, without changing anything, and calls
    /// `requested` with each question.
    pub(crate) fn request_ahead(
        &mut self,
        state: &State,
        rank: u8,
        mut task: Option<u8>,
        mut requested: impl FnMut(&Act),
    ) -> Result<Outlook, Halt> {
        let mut outlook = Outlook { goes_on: false, stores: None, deadline: None };
        let first = state.ranks[rank as usize].local;
        let (mut local, me) = (first, Rank::new(rank.into()));
        loop {
            requested(&self.automaton.local(local).act);
            let answer = match &self.automaton.local(local).act {
                Act::Done => return Ok(outlook),
                Act::Choose | Act::Detach => match task.take() {
                    Some(task) => Answer::Task(task),
                    None => {
                        // A task that has stopped in the middle of its acts lets others run.
                        outlook.goes_on = local != first;
                        return Ok(outlook);
                    }
                },
                Act::Watch(part) => Answer::Value(state.read(*part)),
                Act::Await(slot) => {
                    let slot = *slot;
                    let at_once = self.is_notified_immediately(state, me, local);
                    state.result(me, slot, at_once)
                }
                Act::NextNotice => state.notice_for(me),
                Act::LostAmong(ranks) => Answer::Value(u64::from(state.losses.known_to(me) & ranks)),
                Act::Sleep(until) => {
                    if state.ranks[rank as usize].clock >= *until {
                        Answer::Done
                    } else {
                        outlook.deadline = Some(outlook.deadline.map_or(*until, |next| next.min(*until)));
                        Answer::Pending
                    }
                }
                act => {
                    outlook.goes_on = true;
                    outlook.stores = if let Act::Store(part, _) = act { Some(*part) } else { None };
                    return Ok(outlook);
                }
            };
            let edge = self.automaton.edge(local, &answer);
            let (moves, to) = (edge.moves(), edge.to);
            self.check()?;
            match to {
                _ if moves => {
                    outlook.goes_on = true;
                    return Ok(outlook);
                }
                None => return Ok(outlook),
                Some(next) => local = next,
            }
        }
    }

    /// Returns whether it matters if the atomic at `place`, which may happen, reads now and writes
    /// later.
    pub(crate) fn may_begin(&mut self, state: &State, place: usize) -> Result<bool, Halt> {
        let item = &state.items[place];
        // An atomic that is written later has read its word no later than a store that it loses.
        let begins = item.kind == ItemKind::Atomic && !self.coherent && !self.acknowledged;
        if !begins || self.is_by_own_cpu(state, place) || state.too_late(place).is_some() {
            return Ok(false);
        }
        let of_cpu = |other| self.is_by_own_cpu(state, other) && overlap(state.items[other].at, item.at);
        if !self.reduced || state.is_arriving(item.at) || (0..state.items.len()).any(of_cpu) {
            return Ok(true);
        }
        let stored = self.automaton.job.cells.borrow().is_stored(item.at.cell);
        Ok(stored && self.may_store_next(state, item.target, item.at)?)
    }

    /// Returns whether the item at `place` is an atomic that does not wait for the network's.
    pub(crate) fn is_by_own_cpu(&self, state: &State, place: usize) -> bool {
        let item = &state.items[place];
        self.own_by_cpu && item.kind == ItemKind::Atomic && item.by == item.target
    }

    /// Returns the choices of the next move of `rank`; only `None` if it has no choice.
    pub(crate) fn next_tasks(&self, state: &State, rank: Rank) -> Vec<Option<u8>> {
        match self.automaton.local(state.ranks[rank.index()].local).choices() {
            Some(tasks) if tasks != 0 => (0..64).filter(|task| tasks >> task & 1 == 1).map(Some).collect(),
            _ => vec![None],
        }
    }

    /// Returns whether the next act of `rank` may be a store to `word`.
    fn may_store_next(&mut self, state: &State, rank: Rank, word: CellPart) -> Result<bool, Halt> {
        if state.losses.is_dead(rank) {
            return Ok(false);
        }
        for task in self.next_tasks(state, rank) {
            let outlook = self.outlook(state, rank.number() as u8, task)?;
            if outlook.stores.is_some_and(|part| overlap(part, word)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// While any rank is setting up, leaves only one of `moves`: the write of a word that atomics
    /// have changed, or one of such a rank if there is any, or otherwise one by which something
    /// arrives.
    pub(crate) fn one_order_of_set_up(&self, state: &State, moves: &mut Vec<Move>) {
        let Some(first) = self.set_up else { return };
        let cells = self.automaton.job.cells.borrow();
        let said = |rank: Rank| {
            let fact = cells.find(Home::Fact(first + rank.number()));
            fact.is_some_and(|cell| state.cell(cell) != 0)
        };
        let sets_up = |rank: Rank| !said(rank) && !state.losses.is_dead(rank) && !self.has_ended(state, rank);
        if !(0..state.ranks.len() as u32).map(Rank::new).any(sets_up) {
            return;
        }
        let of_set_up = |which: &&Move| match which {
            Move::Go(rank) | Move::GoWith(rank, _) | Move::Happen(rank, _) => sets_up(Rank::new((*rank).into())),
            _ => false,
        };
        let write = moves.iter().find(|which| matches!(which, Move::Write(..)));
        let one = write
            .or_else(|| moves.iter().find(of_set_up))
            .or(moves.iter().find(|which| matches!(which, Move::Happen(..))));
        if let Some(one) = one.copied() {
            moves.clear();
            moves.push(one);
        }
    }

    /// Returns all unsatisfied questions of `rank`; `None` if it can continue or has ended.
    fn awaits(&mut self, state: &State, rank: Rank) -> Result<Option<Vec<Act>>, Halt> {
        if state.losses.is_dead(rank) || self.has_ended(state, rank) {
            return Ok(None);
        }
        let mut acts = Vec::new();
        for task in self.next_tasks(state, rank) {
            if self.request_ahead(state, rank.number() as u8, task, |act| acts.push(act.clone()))?.goes_on {
                return Ok(None);
            }
        }
        Ok(Some(acts))
    }

    /// Records in the timeline that `rank` waits, if it does; except if it waits only for its own
    /// operations, most of which complete by themselves.
    pub(crate) fn report_wait(&mut self, state: &State, rank: Rank) -> Result<(), Halt> {
        if self.timeline.is_none() {
            return Ok(());
        }
        let acts = self.awaits(state, rank)?.unwrap_or_default();
        if acts.iter().any(|act| matches!(act, Act::Watch(_) | Act::NextNotice | Act::Sleep(_))) {
            let what = words::awaited(&self.automaton.job.cells.borrow(), state, rank, &acts);
            self.timeline.iter_mut().for_each(|timeline| timeline.waits(rank, &what));
        }
        Ok(())
    }

    /// Describes, when no move is left, the conditions that `rank` waits for.
    pub(crate) fn waits_for(&mut self, state: &State, rank: Rank) -> Result<Option<String>, Halt> {
        let acts = self.awaits(state, rank)?;
        Ok(acts.map(|acts| {
            let what = words::awaited(&self.automaton.job.cells.borrow(), state, rank, &acts);
            format!("{rank} waits for {what}")
        }))
    }
}
