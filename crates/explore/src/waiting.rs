//! What ranks wait for: where a wait begins, and what a deadlock consists of.

use crate::{
    act::Act,
    state::State,
    words,
    world::{Halt, World},
};
use rdma_fabric::Rank;

impl World<'_> {
    /// All that `rank` asked for in vain; `None` if it goes on, or has ended.
    fn awaits(&mut self, state: &State, rank: Rank) -> Result<Option<Vec<Act>>, Halt> {
        if state.losses.is_dead(rank) || self.is_over(state, rank) {
            return Ok(None);
        }
        let tasks = self.automaton.local(state.ranks[rank.index()].local).choices();
        let tasks = (0..64).filter_map(|task| (tasks? >> task & 1 == 1).then_some(Some(task)));
        let tasks = if tasks.clone().next().is_none() { vec![None] } else { tasks.collect() };
        let mut acts = Vec::new();
        for task in tasks {
            if self.ask_ahead(state, rank.number() as u8, task, |act| acts.push(act.clone()))?.goes_on {
                return Ok(None);
            }
        }
        Ok(Some(acts))
    }

    /// Tell the timeline that `rank` waits, if it does: not for its own operations only, of which most come by themselves.
    pub(crate) fn tell_of_wait(&mut self, state: &State, rank: Rank) -> Result<(), Halt> {
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

    /// Who waits for what, in words, where nothing happens any more.
    pub(crate) fn waits_for(&mut self, state: &State, rank: Rank) -> Result<Option<String>, Halt> {
        let acts = self.awaits(state, rank)?;
        Ok(acts.map(|acts| {
            let what = words::awaited(&self.automaton.job.cells.borrow(), state, rank, &acts);
            format!("{rank} waits for {what}")
        }))
    }
}
