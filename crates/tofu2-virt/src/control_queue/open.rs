//! Opening and closing of queues.

use super::{
    super::core::{Core, Machine},
    Queues, Slot,
    node::{self, NodeQueues, asked_for},
    state::QueueState,
    tags::Space,
};
use rdma_fabric::{
    FabricError, Result,
    control_queue::{QueueError, QueueId, QueueLimits, QueueMode, QueueSpec},
};

/// Ranks from this number on have no queue ids.
const MOST_RANKS: u32 = 1 << 24;

impl Queues {
    /// Returns the limits of the queues that a rank may open now.
    pub(super) fn limits(&self, machine: &Machine, rank: u32) -> QueueLimits {
        let table = &machine.timing.queues;
        table.limits(self.free_on(machine.node_of(rank), table))
    }

    /// Opens a queue for a rank, which already has the queue `sibling` open if there is one.
    /// Returns its slot, the slot's generation, and its id.
    fn open(
        &mut self,
        machine: &Machine,
        rank: u32,
        sibling: Option<u32>,
        spec: &QueueSpec,
        context: Option<u8>,
    ) -> Result<(u32, u32, QueueId)> {
        if rank >= MOST_RANKS {
            return Err(FabricError::Unsupported { feature: &"control queues of ranks above 16777215" });
        }
        let node = machine.node_of(rank);
        let table = &machine.timing.queues;
        if self.nodes.len() <= node as usize {
            self.nodes.resize_with(node as usize + 1, || None);
        }
        let here = self.nodes[node as usize].get_or_insert_with(|| Box::new(NodeQueues::new(table)));
        check_spec(rank, spec, table.depth)?;
        let id = here.choose(rank, spec, context, table)?;
        let space = match sibling.filter(|_| table.shared_tags) {
            Some(sibling) => self.get(sibling).space,
            None => self.new_space(),
        };
        self.spaces[space as usize].users += 1;
        let (slot, generation) = self.insert(QueueState::new(id, rank, node, space, spec));
        let next = match &mut self.nodes[node as usize] {
            Some(here) => here.open(id, spec.mode, slot),
            None => node::NONE,
        };
        self.get_mut(slot).next_context = next;
        Ok((slot, generation, id))
    }

    /// Closes a queue without a handle. Returns the number of its commands that were never started.
    fn close(&mut self, queue: u32) -> u64 {
        self.note_peak();
        let state = self.get_mut(queue);
        let (id, node, space, next) = (state.id, state.node, state.space, state.next_context);
        state.closed = true;
        let left = state.toq.clear();
        (state.tcq, state.mrq) = Default::default();
        // Repair the list of the queues that share the CQ.
        let here = self.nodes[node as usize].as_deref_mut();
        let mut at = here.and_then(|here| if here.close(id, queue, next) { None } else { here.first(id) });
        while let Some(before) = at {
            let state = self.get_mut(before);
            if state.next_context == queue {
                state.next_context = next;
                break;
            }
            at = Some(state.next_context).filter(|next| *next != node::NONE);
        }
        let there = &mut self.spaces[space as usize];
        there.users -= 1;
        if there.users == 0 {
            *there = Space::default();
            self.free_spaces.push(space);
        }
        let slot = &mut self.slots[queue as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.retire(queue);
        left
    }

    fn new_space(&mut self) -> u32 {
        if let Some(space) = self.free_spaces.pop() {
            return space;
        }
        self.spaces.push(Space::default());
        self.spaces.len() as u32 - 1
    }

    fn insert(&mut self, state: QueueState) -> (u32, u32) {
        let state = Some(Box::new(state));
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].state = state;
            return (slot, self.slots[slot as usize].generation);
        }
        self.slots.push(Slot { generation: 0, state });
        (self.slots.len() as u32 - 1, 0)
    }

    /// Returns whether a handle's queue is still open.
    #[inline]
    pub(super) fn is_open(&self, queue: u32, generation: u32) -> bool {
        self.slots[queue as usize].generation == generation
    }

    /// Frees the slot of a closed queue to which no references remain.
    #[inline]
    pub(super) fn retire(&mut self, queue: u32) {
        let state = self.get(queue);
        if state.closed && !state.due && state.flights == 0 {
            self.slots[queue as usize].state = None;
            self.free.push(queue);
        }
    }

    fn note_peak(&mut self) {
        // The number of queues is at its peak only while no slot is free. Counting takes linear
        // time; this way it is done once when many queues are closed together.
        if self.free.is_empty() {
            self.peak = self.peak.max(self.bytes());
        }
    }
}

impl Core {
    /// Opens a queue, as context `context` of its CQ if that is given. Returns its slot, the slot's
    /// generation, and its id.
    pub(crate) fn open_queue(
        &mut self,
        rank: u32,
        spec: &QueueSpec,
        context: Option<u8>,
    ) -> Result<(u32, u32, QueueId)> {
        let sibling = self.ranks.queues(rank).first().copied();
        let opened = self.queues.open(&self.machine, rank, sibling, spec, context)?;
        self.ranks.queues(rank).push(opened.0);
        Ok(opened)
    }

    /// Closes a queue. Returns the number of its commands that were never started.
    pub(crate) fn close_queue(&mut self, queue: u32) -> u64 {
        let rank = self.queues.rank_of(queue);
        self.ranks.forget_queue(rank, queue);
        self.queues.close(queue)
    }
}

/// Checks that a spec's numbers are in range.
#[deny(clippy::arithmetic_side_effects)]
fn check_spec(rank: u32, spec: &QueueSpec, most: u32) -> Result<()> {
    let queue = asked_for(rank, spec);
    let limit = |what, value: u32, limit: u32| {
        Err(QueueError::Limit { queue, what, value: value.into(), limit: limit.into() }.into())
    };
    if !spec.depth.is_power_of_two() || spec.depth < 2 || spec.depth > most {
        return limit("the depth of the TOQ, a power of two and at least 2,", spec.depth, most);
    }
    if !spec.mrq_depth.is_power_of_two() || spec.mrq_depth > most {
        return limit("the depth of the MRQ, a power of two,", spec.mrq_depth, most);
    }
    match spec.mode {
        QueueMode::Session if spec.initial_offset >= spec.depth => {
            limit("the initial session offset", spec.initial_offset, spec.depth.saturating_sub(1))
        }
        QueueMode::Normal | QueueMode::Exclusive if spec.initial_offset > 0 => {
            limit("the initial session offset of a queue without one", spec.initial_offset, 0)
        }
        _ => Ok(()),
    }
}
