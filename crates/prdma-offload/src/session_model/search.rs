//! All orders of events, or one at random.

use super::{Event, Job, StateOf, Wrong, start};
use std::collections::HashSet;

/// Go through all orders; how many states there are.
pub(crate) fn explore<J: Job>(job: &J) -> Result<usize, Wrong> {
    let start = start(job);
    let (mut seen, mut open): (HashSet<StateOf<J>>, Vec<StateOf<J>>) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = open.pop() {
        let events = state.events(job);
        if events.is_empty() {
            state.rest(job)?;
        }
        for event in events {
            let mut next = state.clone();
            next.happen(job, event)?;
            if !seen.contains(&next) {
                seen.insert(next.clone());
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

/// Numbers that come again with their seed.
struct Chance(u64);

impl Chance {
    /// A number below `many`.
    fn below(&mut self, many: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % many as u64) as usize
    }
}

/// One order at random, in which one member is slow, and what one queue sends.
pub(crate) fn walk<J: Job>(job: &J, seed: u64) -> Result<(), Wrong> {
    let mut chance = Chance(seed);
    let (slow, lame) = (chance.below(job.members()), chance.below(job.queues().len().max(1)) as u16);
    let mut state = start(job);
    loop {
        let events = state.events(job);
        if events.is_empty() {
            return state.rest(job);
        }
        let quick = |event: &&Event| match event {
            Event::Start(member) | Event::End(member) => *member != slow,
            Event::Leave(_) => true,
            Event::Arrive(at) => state.flying[*at].wire.0 != lame,
        };
        let quick: Vec<Event> = events.iter().filter(quick).copied().collect();
        let from = if quick.is_empty() || chance.below(64) == 0 { &events } else { &quick };
        state.happen(job, from[chance.below(from.len())])?;
    }
}
