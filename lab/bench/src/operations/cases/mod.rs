//! The benchmark cases, by name.

mod acp;
mod bandwidth;
mod blocks;
mod containers;
mod crowd;
mod dynamics;
mod exchange;
mod fmpl;
mod fmpl_collectives;
mod fmpl_four;
mod fmpl_long;
mod fmpl_parts;
mod locks;
mod machine;
mod notices;
mod oversubscribed;
mod pair;
mod reflect;
mod reflect_four;
mod views;
mod words;

pub(super) use containers::RANKS as FOUR;
pub(super) use oversubscribed::RANKS as OVERSUBSCRIBED;

use super::{
    ranks::{JobPlan, Ranks},
    sampling::{Measured, Takes},
};
use crate::{
    goal::{Fault, Goal},
    outside::bare::Bare,
};
use crowd::Crowd;
use rdma_fabric::{Fabric, ProgramResult};

/// A case that is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) takes: Takes,
    /// The number of operations in one repetition of its shapes.
    pub(super) operations: u64,
    /// The goal, and the part of ours that is at fault for a miss.
    pub(super) goal: Option<(Goal, Fault)>,
}

impl Case {
    const fn new(name: &'static str, what: &'static str, takes: Takes) -> Self {
        Case { name, what, takes, operations: 1, goal: None }
    }

    /// Sets the goal: at most this many times the limit.
    const fn at_most(self, ratio: f64, fault: Fault) -> Self {
        Case { goal: Some((Goal::Ratio(ratio), fault)), ..self }
    }

    const fn operations(self, operations: u64) -> Self {
        Case { operations, ..self }
    }
}

/// Returns all cases, in the order of the table.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    let lists = [
        words::CASES,
        notices::CASES,
        notices::QUEUE_CASES,
        locks::CASES,
        locks::BOTH_CASES,
        exchange::CASES,
        reflect::CASES,
        reflect_four::CASES,
        blocks::CASES,
        dynamics::CASES,
        views::CASES,
        acp::CASES,
        fmpl::CASES,
        fmpl_collectives::CASES,
        fmpl_four::CASES,
        fmpl_long::CASES,
        fmpl_parts::CASES,
        containers::CASES,
        bandwidth::CASES,
        machine::CASES,
        oversubscribed::CASES,
    ];
    lists.into_iter().flatten()
}

/// Returns the case of this name.
pub(super) fn find(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

/// Returns the ranks that measure the case.
pub(super) fn ranks_of(case: &Case) -> Ranks {
    let is_one_of = |cases: &[Case]| cases.iter().any(|known| known.name == case.name);
    match () {
        () if [containers::CASES, fmpl_four::CASES, reflect_four::CASES].into_iter().any(is_one_of) => Ranks::Four,
        () if is_one_of(oversubscribed::CASES) => Ranks::Oversubscribed,
        () => Ranks::Pair,
    }
}

/// Measures all cases of the plan; rank 0 has the results.
pub(super) async fn measure(fabric: &Fabric, bare: &Bare, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    match plan.ranks {
        Ranks::Pair => pair::measure(fabric, bare, plan).await,
        Ranks::Four => measure_four(fabric, bare, plan).await,
        Ranks::Oversubscribed => oversubscribed::measure(fabric, bare, plan).await,
    }
}

async fn measure_four(fabric: &Fabric, bare: &Bare, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    let mut job = Crowd::new(fabric, bare, plan)?;
    let collectives = fmpl_four::measure(&mut job, fabric, plan).await?;
    let reflects = reflect_four::measure(&mut job, fabric, plan).await?;
    let containers = containers::measure(&mut job, fabric, plan).await?;
    Ok(collectives.into_iter().chain(reflects).chain(containers).collect())
}
