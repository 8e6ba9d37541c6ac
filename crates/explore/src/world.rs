//! The possible moves of a job, and their execution.
//!
//! A *move* is one of these: an operation takes effect at its target (each cell separately), a
//! notice arrives, a handle is notified that its operation is complete, a clock reaches a deadline,
//! a rank dies, another rank learns of a death, or a rank runs. A running rank executes all acts
//! that no other rank can observe, and stops before its next act that others could distinguish from
//! the same act done later, where a different order could matter.

use crate::{
    acknowledged::Unread,
    act::{Act, Answer},
    automaton::{Automaton, LocalId},
    cell::Cells,
    loss::bit,
    state::{At, State},
    timeline::Timeline,
};
use rdma_fabric::{PutOrder, Rank};
use std::rc::Rc;

/// The number of acts of one rank in one move after which it is assumed never to wait.
const SPINNING: u32 = 20_000;

/// A possible move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Move {
    /// A rank's CPU runs.
    Go(u8),
    /// One task of a rank's CPU runs.
    GoWith(u8, u8),
    /// The n-th part of the operations that a rank has in flight takes effect.
    Happen(u8, u8),
    /// The n-th part of them, an atomic, reads its word and will write it later.
    Begin(u8, u8),
    /// The n-th word that atomics have changed in a rank's network interface is written to memory.
    Write(u8, u8),
    /// A rank's clock reaches its next deadline.
    Tick(u8),
    /// A rank that may die dies.
    Die(u8),
    /// The first learns that the second is lost.
    Learn(u8, u8),
    /// The operations that a dead rank has in flight are lost, when no rank is left to learn of the
    /// death.
    Vanish(u8),
}

/// The reason why a move was not completed.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Something is wrong.
    Failure(String),
    /// This rank's step is longer than the explorer's patience.
    Endless(Rank, LocalId),
    /// A cell was wrongly treated as private: explore again.
    Again,
}

pub(crate) struct World<'a> {
    pub(crate) automaton: Automaton<'a>,
    pub(crate) order: PutOrder,
    /// Whether atomics are also atomic with respect to puts and stores.
    pub(crate) coherent: bool,
    /// Whether a rank's atomics on its own memory are executed by its CPU, and so may occur in the
    /// middle of atomics of the network.
    pub(crate) own_by_cpu: bool,
    /// Whether network interfaces execute atomics before they have written their words.
    pub(crate) acknowledged: bool,
    /// The operations that wait for acknowledgements only.
    pub(crate) unread: Option<Unread>,
    /// Whether acts that no other rank can observe happen immediately. Otherwise there are more
    /// states, but the same outcomes.
    pub(crate) reduced: bool,
    /// The first of the facts by which ranks declare the end of their set-up, if one order of the
    /// set-up is enough.
    pub(crate) set_up: Option<u32>,
    /// The timeline of the run, if one is wanted.
    pub(crate) timeline: Option<Timeline>,
}

impl World<'_> {
    /// Returns the first state: every rank has reached its first act that others could observe.
    pub(crate) fn start(&mut self, state: &mut State) -> Result<(), Halt> {
        for rank in 0..self.automaton.job.facts.ranks as u32 {
            let local = self.automaton.start(Rank::new(rank));
            state.ranks.push(At { local, clock: 0 });
        }
        for rank in (0..self.automaton.job.facts.ranks as u32).map(Rank::new) {
            let local = state.ranks[rank.index()].local;
            let reported = self.automaton.local(local).reported().clone();
            self.report(state, rank, &reported)?;
            self.proceed(state, rank, None, true)?;
            if state.ranks[rank.index()].local == local {
                self.report_wait(state, rank)?;
            }
        }
        Ok(())
    }

    /// Executes `which`, which is one of [`World::moves`].
    pub(crate) fn act(&mut self, state: &mut State, which: Move) -> Result<(), Halt> {
        match which {
            Move::Go(rank) | Move::GoWith(rank, _) | Move::Tick(rank)
                if state.losses.is_dead(Rank::new(rank.into())) =>
            {
                Err(Halt::Failure(format!("the schedule lets rank {rank} go on, which is dead")))
            }
            Move::Go(rank) if self.is_about_to_end(state, Rank::new(rank.into())) => {
                self.end(state, Rank::new(rank.into()));
                Ok(())
            }
            Move::Go(rank) => self.proceed(state, Rank::new(rank.into()), None, false).map(drop),
            Move::GoWith(rank, task) => self.proceed(state, Rank::new(rank.into()), Some(task), false).map(drop),
            Move::Die(_) | Move::Learn(..) | Move::Vanish(_) => self.lose(state, which),
            Move::Tick(rank) => {
                if let Some(deadline) = self.next_deadline(state, rank)? {
                    state.ranks[rank as usize].clock = deadline;
                    self.note(|timeline, _| timeline.tick(Rank::new(rank.into()), deadline));
                }
                Ok(())
            }
            Move::Begin(rank, number) => {
                let place = World::place_of(state, rank, number)?;
                self.note(|timeline, cells| timeline.begins(cells, state, place));
                state.begin(place);
                Ok(())
            }
            Move::Happen(rank, number) => {
                let place = World::place_of(state, rank, number)?;
                let rank = Rank::new(rank.into());
                self.notice_lateness(state, place)?;
                self.note(|timeline, cells| timeline.happens(cells, state, place));
                let execution = self.execution(state, place);
                state.happen(place, execution);
                self.resume_immediately(state, rank)
            }
            Move::Write(rank, number) => self.write_out(state, Rank::new(rank.into()), number),
        }
    }

    /// Returns the index of the n-th part of the operations of a rank.
    fn place_of(state: &State, rank: u8, number: u8) -> Result<usize, Halt> {
        let rank = Rank::new(rank.into());
        let mut mine = (0..state.items.len()).filter(|place| state.items[*place].by == rank);
        let none = || Halt::Failure(format!("the schedule names operation {number} of {rank}: there is none"));
        mine.nth(number as usize).ok_or_else(none)
    }

    /// Lets a rank that waits for nothing else continue immediately: no other rank can observe its
    /// acts up to its next observable one.
    pub(crate) fn resume_immediately(&mut self, state: &mut State, rank: Rank) -> Result<(), Halt> {
        if state.losses.is_dead(rank) {
            return Ok(());
        }
        let local = state.ranks[rank.index()].local;
        if let Act::Await(slot) = self.automaton.local(local).act
            && self.is_sole(local)
            && state.result(rank, slot, self.is_notified_immediately(state, rank, local)) != Answer::Pending
        {
            self.proceed(state, rank, None, true)?;
        }
        Ok(())
    }

    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.automaton.job.cells.borrow().grown { Err(Halt::Again) } else { Ok(()) }
    }

    /// Runs a rank through one act that others could observe, or none if it has already `moved`,
    /// and then through all acts that they could not.
    fn proceed(&mut self, state: &mut State, rank: Rank, mut task: Option<u8>, mut moved: bool) -> Result<(), Halt> {
        let mut local = state.ranks[rank.index()].local;
        let mut acts = 0;
        loop {
            acts += 1;
            let at_once = self.is_notified_immediately(state, rank, local);
            let here = self.automaton.local(local);
            let alone = here.is_alone();
            let answer = match &here.act {
                Act::Done => break,
                Act::Failed(what) => return Err(Halt::Failure(format!("{rank}: {what}"))),
                Act::Endless => return Err(Halt::Endless(rank, local)),
                _ if acts > SPINNING => return Err(Halt::Endless(rank, local)),
                Act::Choose | Act::Detach if moved => break,
                Act::Choose | Act::Detach => match task.take() {
                    Some(task) => Answer::Task(task),
                    None => break,
                },
                act if moved && self.is_noticed(state, rank, act) => break,
                act => state.request(rank, act, at_once),
            };
            if moved && alone && answer == Answer::Pending {
                break;
            }
            let edge = self.automaton.edge(local, &answer);
            let (moves, ready, reported, to) = (edge.moves(), edge.ready, edge.reported.clone(), edge.to);
            self.check()?;
            if moved && alone && !moves {
                break;
            }
            let act = &self.automaton.local(local).act;
            if let Some(timeline) = &mut self.timeline {
                timeline.acts(&self.automaton.job.cells.borrow(), rank, act, &answer, ready);
            }
            state.answered(rank, act, &answer);
            self.report(state, rank, &reported)?;
            moved |= moves;
            match to {
                Some(next) => local = next,
                // The rank waits as before.
                None => return Ok(()),
            }
        }
        self.rest(state, rank, local)
    }

    /// Records an event in the timeline, if there is one.
    pub(crate) fn note(&mut self, report: impl FnOnce(&mut Timeline, &Cells)) {
        if let Some(timeline) = &mut self.timeline {
            report(timeline, &self.automaton.job.cells.borrow());
        }
    }

    fn rest(&mut self, state: &mut State, rank: Rank, local: LocalId) -> Result<(), Halt> {
        let before = std::mem::replace(&mut state.ranks[rank.index()].local, local);
        if before != local {
            self.report_wait(state, rank)?;
        }
        if let Some(timeline) = &mut self.timeline
            && self.automaton.local(local).act == Act::Done
            && self.automaton.job.mortal & bit(rank) == 0
        {
            timeline.done(rank);
        }
        Ok(())
    }

    pub(crate) fn is_sole(&mut self, local: LocalId) -> bool {
        self.reduced && self.automaton.is_sole(local)
    }

    /// Returns whether it could make a difference to others if `act` is done now or later.
    pub(crate) fn is_noticed(&self, state: &State, rank: Rank, act: &Act) -> bool {
        match act {
            Act::Load(part) | Act::Watch(part) | Act::Store(part, _) => {
                !self.reduced || self.automaton.job.cells.borrow().is_shared(part.cell)
            }
            // Invariants depend on facts, no matter which rank changes them.
            Act::Fact(..) | Act::TryNotice | Act::NextNotice | Act::Test(_) | Act::Yield => true,
            // True only as long as the answer can still change.
            Act::IsLost(other) => {
                !self.reduced || state.losses.known_to(rank) & bit(*other) == 0 && !state.losses.has_ended(*other)
            }
            Act::Drop(_) => true,
            Act::IsDropped(holding) => !self.reduced || !state.drops.contains(*holding),
            // It belongs to the moment of the check of the awaited condition.
            Act::LostAmong(_) => false,
            _ => !self.reduced,
        }
    }

    fn report(&mut self, state: &mut State, rank: Rank, reported: &Rc<[Act]>) -> Result<(), Halt> {
        for act in reported.iter() {
            match act {
                Act::Reach(holding) if state.drops.contains(*holding) => return Err(self.contest(*holding)),
                Act::Drop(holding) if self.is_being_reached(state, *holding) => return Err(self.contest(*holding)),
                _ => {}
            }
            self.note(|timeline, cells| timeline.record(cells, rank, act));
            state.report(rank, act);
        }
        Ok(())
    }
}
