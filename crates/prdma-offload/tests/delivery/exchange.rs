//! Exchanges under exploration, and what must hold.
//!
//! The explorer lets a rank read what it has received at once and as late as can be.

use super::member::{Case, Member};
use explore::{
    Explorer, Probe,
    mutant::{Mutation, mutant},
};
use prdma_offload::Buffer;
use rdma_fabric::{Caps, Fabric, ProgramResult, Rank};
use std::pin::Pin;

pub(crate) type Run = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// Facts, the first of a row by rank: whether the set-up is over, and iterations that have ended.
const SET_UP: u32 = 0;
const ENDED: u32 = 100;

/// One member's part, with blocks in `memory`, another handle of its rank. `begun` is told when the set-up is over.
pub(crate) async fn exchange(
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

/// A fabric on which nothing is over when it is posted.
#[derive(Debug)]
struct Slow;

impl Mutation for Slow {
    fn nop_at_once(&self) -> bool {
        false
    }
}

/// [`exchange`] for each rank.
pub(crate) fn job(case: Case) -> impl Fn(Fabric) -> Run {
    move |fabric| {
        let probe = Probe::of(&fabric);
        let memory = fabric.clone();
        let fabric = if case.slow { mutant(fabric, Slow) } else { fabric };
        Box::pin(exchange(fabric, memory, probe, case, || {}))
    }
}

/// What must hold of it.
pub(crate) fn explorer(case: &Case) -> Explorer<'static> {
    let (ranks, last) = (case.ranks() as u32, case.iterations);
    let mut caps = Caps::weakest();
    caps.put_order = case.order;
    let explorer = Explorer::new(case.ranks()).leave_together().caps(caps).set_up(SET_UP);
    let edges = case.edges.iter().enumerate();
    let edges = edges.flat_map(|(from, to)| to.iter().map(move |to| [from, *to])).filter(|[from, to]| from != to);
    let edges: Vec<[u32; 2]> = edges.map(|edge| edge.map(|rank| ENDED + rank as u32)).collect();
    let first = edges.first().copied();
    let explorer = explorer
        .always("a sender is no more than one iteration ahead", move |view| {
            edges.iter().all(|[from, to]| view.fact(*from) <= view.fact(*to) + 1)
        })
        .at_end("all iterations have ended", move |view| {
            let any_lost = (0..ranks).any(|rank| view.is_lost(Rank::new(rank)));
            any_lost || (0..ranks).all(|rank| view.fact(ENDED + rank) == last)
        });
    match first {
        Some([from, to]) => {
            explorer.possible("a sender is one iteration ahead", move |view| view.fact(from) == view.fact(to) + 1)
        }
        None => explorer,
    }
}
