//! Exchanges without control queues over a network that delivers in any order, and their
//! invariants.
//!
//! The explorer lets a rank read its received data both immediately and as late as possible.

use super::{Case, Member};
use crate::exploration::Run;
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
};
use prdma_offload::{Buffer, PrdmaError};
use rdma_fabric::{Caps, Fabric, FabricError, ProgramResult, Rank};
use std::error::Error;

/// The first of a series of facts, one for each rank: whether its set-up has completed.
const SET_UP: u32 = 0;
/// The first of a series of facts, one for each rank: the number of its last iteration that has
/// ended.
const ENDED: u32 = 100;
/// The fact that counts the neighbours of a dead rank that received an error naming it.
const NAMED: u32 = 300;

/// Runs one member. Its blocks are in `memory`, another handle of its rank. Calls `begun` when the
/// set-up has completed.
pub(super) async fn exchange(
    fabric: Fabric,
    memory: Fabric,
    probe: Probe,
    case: Case,
    begun: impl FnOnce(),
) -> ProgramResult<()> {
    let mut member = Member::new(&fabric, case, |words| Buffer::new(&memory, words)).await?;
    begun();
    let me = member.number() as u32;
    probe.set(SET_UP + me, 1);
    probe.step(0);
    for iteration in 1..=case.iterations {
        member.begin(iteration).await?;
        member.end().await?;
        probe.set(ENDED + me, iteration);
        probe.step(iteration);
    }
    member.look(case.iterations)
}

/// The mutant after which operations never complete when they are posted.
#[derive(Debug)]
struct Slow;

impl Mutant for Slow {
    fn nop_at_once(&self) -> bool {
        false
    }
}

/// Returns the program of a case. A rank that receives an error naming a dead neighbour has ended
/// as expected.
pub fn job(case: Case) -> impl Fn(Fabric) -> Run {
    move |fabric| {
        let (me, probe, memory) = (fabric.rank().index(), Probe::of(&fabric), fabric.clone());
        let fabric = if case.slow { mutated(fabric, Slow) } else { fabric };
        Box::pin(async move {
            match (exchange(fabric, memory, probe.clone(), case, || {}).await, case.mortal) {
                (Err(error), Some(lost)) if case.are_neighbours(me, lost) && names_the_loss(&*error, lost) => {
                    probe.add(NAMED, 1);
                    Ok(())
                }
                (ended, _) => ended,
            }
        })
    }
}

fn names_the_loss(error: &(dyn Error + 'static), lost: usize) -> bool {
    let loss = FabricError::PeerLost { rank: Rank::new(lost as u32) };
    error.downcast_ref() == Some(&PrdmaError::Fabric(loss.clone())) || error.downcast_ref() == Some(&loss)
}

/// Returns an explorer with the invariants of a case.
pub fn explorer(case: &Case) -> Explorer<'static> {
    let (ranks, last) = (case.ranks() as u32, case.iterations);
    let mut caps = Caps::weakest();
    (caps.put_order, caps.puts_in_order) = (case.order, case.puts_in_order);
    let mut explorer = Explorer::new(case.ranks()).leave_together().caps(caps).set_up(SET_UP);
    let edges = case.edges.iter().enumerate();
    let edges = edges.flat_map(|(from, to)| to.iter().map(move |to| [from, *to])).filter(|[from, to]| from != to);
    let edges: Vec<[u32; 2]> = edges.map(|edge| edge.map(|rank| ENDED + rank as u32)).collect();
    if let Some([from, to]) = edges.first().copied() {
        let ahead = "a sender is one iteration ahead";
        explorer = explorer.possible(ahead, move |view| view.fact(from) == view.fact(to) + 1);
    }
    if let Some(lost) = case.mortal {
        let (rank, case) = (Rank::new(lost as u32), *case);
        let named = (0..case.ranks()).any(|me| me != lost && case.are_neighbours(me, lost));
        explorer = explorer
            .mortal(rank)
            .possible("it dies", move |view| view.is_lost(rank))
            .possible("a neighbour gets its loss", move |view| !named || view.fact(NAMED) > 0);
    }
    explorer
        .always("a sender is no more than one iteration ahead", move |view| {
            edges.iter().all(|[from, to]| view.fact(*from) <= view.fact(*to) + 1)
        })
        .at_end("all iterations have ended", move |view| {
            let any_lost = (0..ranks).any(|rank| view.is_lost(Rank::new(rank)));
            any_lost || (0..ranks).all(|rank| view.fact(ENDED + rank) == last)
        })
}
