//! Set-up that is not of interest: one order of it.

use crate::{
    cell::Home,
    state::State,
    world::{Move, World},
};
use rdma_fabric::Rank;

impl World<'_> {
    /// While some rank sets up, leave one of `moves`: one of such a rank if there is any, or else one by which something arrives.
    pub(crate) fn one_order_of_set_up(&self, state: &State, moves: &mut Vec<Move>) {
        let Some(first) = self.set_up else { return };
        let cells = self.automaton.job.cells.borrow();
        let said = |rank: Rank| {
            let fact = cells.find(Home::Fact(first + rank.number()));
            fact.is_some_and(|cell| state.cell(cell) != 0)
        };
        let sets_up = |rank: Rank| !said(rank) && !state.losses.is_dead(rank) && !self.is_over(state, rank);
        if !(0..state.ranks.len() as u32).map(Rank::new).any(sets_up) {
            return;
        }
        let of_set_up = |which: &&Move| match which {
            Move::Go(rank) | Move::GoWith(rank, _) | Move::Happen(rank, _) => sets_up(Rank::new((*rank).into())),
            _ => false,
        };
        let one = moves.iter().find(of_set_up).or(moves.iter().find(|which| matches!(which, Move::Happen(..))));
        if let Some(one) = one.copied() {
            moves.clear();
            moves.push(one);
        }
    }
}
