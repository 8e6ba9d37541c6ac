//! Hardware barriers by colour, between crossbars.
//!
//! A node's signal goes to the crossbar of its row, which signals all crossbars of columns once its
//! row is complete; each of these signals its nodes once all rows are complete. So a barrier takes
//! `colour_barrier` from the last member's signal on, for any number of members, and the host sees
//! the end one polling time later. Starting one keeps the CPU busy for as long as posting. Signals
//! have dedicated wires and take up no bandwidth on links.
//!
//! A colour belongs to the nodes of a barrier, so barriers of other nodes may have the same colour,
//! even in the same row (an assumption).

use super::super::{
    core::{Core, Machine},
    provider::{Keys, Me, VirtRank},
    ranks::Watched,
    waits,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    barrier::ColourError,
    provider::{Colours, WaitState},
};
use std::{
    collections::HashMap,
    mem,
    task::{Context, Poll},
};

/// The hardware barriers of all nodes.
#[derive(Debug, Default)]
pub(crate) struct ColourBarriers {
    /// The barriers that members hold, with their numbers, in the order created.
    barriers: Vec<(u64, Barrier)>,
    created: u64,
    /// The holder of each colour of a node. Never iterated.
    held: HashMap<(u32, u32), Held>,
}

/// A rank's share of a barrier.
#[derive(Clone, Copy, Debug)]
struct Held {
    rank: u32,
    barrier: u64,
    /// The number of rounds that the rank has entered, and of those whose end it has seen.
    entered: u64,
    seen: u64,
}

#[derive(Debug)]
struct Barrier {
    colour: u32,
    members: Vec<Rank>,
    /// The number of members that hold it.
    holders: usize,
    /// The first member that has released it.
    freed: Option<Rank>,
    /// The number of members that have entered the current round, and the time at which the last
    /// signal leaves.
    entered: usize,
    latest: u64,
    /// The number of completed rounds, and the time at which members see the end of the last one.
    over: u64,
    over_at: u64,
    /// Lanes to wake when the round completes.
    waiting: Vec<u32>,
}

impl ColourBarriers {
    /// Claims a colour of the rank's node.
    fn claim(&mut self, machine: &Machine, rank: Rank, colour: u32, members: &[Rank]) -> Result<()> {
        let colours = machine.timing.barrier_colours;
        if colour >= colours {
            return Err(ColourError::NoSuchColour { colour, colours }.into());
        }
        if !members.contains(&rank) {
            return Err(FabricError::NotInGroup { rank, members: members.len() });
        }
        let mut on: HashMap<u32, Rank> = HashMap::new();
        for &second in members {
            if let Some(first) = on.insert(machine.node_of(second.number()), second) {
                return Err(ColourError::SharedNode { first, second }.into());
            }
        }
        if !machine.map.fills_box(&on.into_keys().collect::<Vec<_>>()) {
            return Err(ColourError::NoBox { members: members.len() }.into());
        }
        let place = (machine.node_of(rank.number()), colour);
        if self.held.contains_key(&place) {
            return Err(ColourError::Taken { colour, rank }.into());
        }
        let with_room =
            |barrier: &Barrier| barrier.colour == colour && barrier.freed.is_none() && barrier.members == members;
        let barrier = match self.barriers.iter_mut().find(|(_, barrier)| with_room(barrier)) {
            Some((number, barrier)) => {
                barrier.holders += 1;
                *number
            }
            None => {
                self.created += 1;
                let (members, waiting) = (members.to_vec(), Vec::new());
                let (freed, holders, entered, latest, over, over_at) = (None, 1, 0, 0, 0, 0);
                let new = Barrier { colour, members, holders, freed, entered, latest, over, over_at, waiting };
                self.barriers.push((self.created, new));
                self.created
            }
        };
        self.held.insert(place, Held { rank: rank.number(), barrier, entered: 0, seen: 0 });
        Ok(())
    }

    /// Returns a rank's share of the barrier of a colour, and the barrier.
    fn of(&mut self, machine: &Machine, rank: u32, colour: u32) -> Option<(&mut Held, &mut Barrier)> {
        let held = self.held.get_mut(&(machine.node_of(rank), colour)).filter(|held| held.rank == rank)?;
        let at = self.barriers.binary_search_by_key(&held.barrier, |(number, _)| *number).ok()?;
        Some((held, &mut self.barriers[at].1))
    }
}

impl Core {
    fn free_colour(&mut self, rank: u32, colour: u32) {
        let Some((held, barrier)) = self.colours.of(&self.machine, rank, colour) else { return };
        let number = held.barrier;
        barrier.freed.get_or_insert(Rank::new(rank));
        barrier.holders -= 1;
        for lane in mem::take(&mut barrier.waiting) {
            self.clock.wake_at(lane, self.clock.now());
        }
        if barrier.holders == 0 {
            self.colours.barriers.retain(|(other, _)| *other != number);
        }
        self.colours.held.remove(&(self.machine.node_of(rank), colour));
    }

    fn enter_colour(&mut self, lane: u32, rank: u32, colour: u32) -> Result<()> {
        let timing = &self.machine.timing;
        let (post, takes) = (timing.post, timing.colour_barrier);
        let now = self.clock.now();
        let left = now.max(self.ranks.cpu_until(lane)).saturating_add(post).saturating_add(self.clock.extra());
        let Some((held, barrier)) = self.colours.of(&self.machine, rank, colour) else {
            return Err(ColourError::Idle(colour).into());
        };
        if held.entered > held.seen {
            return Err(ColourError::Outstanding(colour).into());
        }
        held.entered += 1;
        barrier.entered += 1;
        barrier.latest = barrier.latest.max(left);
        if barrier.entered == barrier.members.len() {
            (barrier.entered, barrier.over) = (0, barrier.over + 1);
            barrier.over_at = mem::take(&mut barrier.latest).saturating_add(takes + post);
            for lane in mem::take(&mut barrier.waiting) {
                self.clock.wake_at(lane, barrier.over_at);
            }
        }
        self.ranks.occupy_cpu(lane, now, post);
        Ok(())
    }
}

impl<K: Keys> Colours for VirtRank<K> {
    fn count(&self) -> u32 {
        self.me.world.core().machine.timing.barrier_colours
    }

    fn claim(&self, colour: u32, members: &[Rank]) -> Result<()> {
        let core = &mut *self.me.world.core();
        core.colours.claim(&core.machine, Rank::new(self.me.rank), colour, members)
    }

    fn free(&self, colour: u32) {
        self.me.world.core().free_colour(self.me.rank, colour);
    }

    fn start(&self, colour: u32) -> Result<()> {
        let lane = self.me.lane();
        self.me.world.core().enter_colour(lane, self.me.rank, colour)
    }

    fn poll(&self, wait_state: &mut WaitState, colour: u32, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let me = &*self.me;
        let stands = me.colour_over(wait_state, colour, deps);
        if stands.is_pending() {
            me.world.listen(me.lane(), cx);
        }
        stands
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        let WaitState([wait, ..]) = wait_state;
        self.me.unwatch(&mut self.me.world.core(), wait);
    }
}

impl Me {
    /// Polls whether the barrier that this rank has entered has completed. The slot's second word
    /// is the lane to wake, plus 1, once that is known.
    fn colour_over(&self, wait_state: &mut WaitState, colour: u32, deps: Deps<'_>) -> Poll<Result<()>> {
        let lane = self.lane();
        let WaitState([wait, woken, ..]) = wait_state;
        let core = &mut *self.world.core();
        let now = core.now_of(lane);
        let idle = ColourError::Idle(colour);
        let Some((held, barrier)) = core.colours.of(&core.machine, self.rank, colour) else {
            return Poll::Ready(Err(idle.into()));
        };
        if held.entered == held.seen {
            return Poll::Ready(Err(idle.into()));
        }
        if barrier.over >= held.entered {
            if barrier.over_at <= now {
                held.seen = held.entered;
                return Poll::Ready(Ok(()));
            }
            if mem::replace(woken, u64::from(lane) + 1) != u64::from(lane) + 1 {
                core.clock.wake_at(lane, barrier.over_at);
            }
            return Poll::Pending;
        }
        if let Some(rank) = barrier.freed {
            held.seen = held.entered;
            // A lost rank has released its colours.
            let error = match core.ranks.hopeless(lane, waits::NO_WAIT, deps) {
                Some(lost @ FabricError::PeerLost { .. }) => lost,
                _ => ColourError::Freed { colour, rank }.into(),
            };
            return Poll::Ready(Err(error));
        }
        if !barrier.waiting.contains(&lane) {
            barrier.waiting.push(lane);
        }
        match self.advance(core, lane, wait, Watched::Gate, deps) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
