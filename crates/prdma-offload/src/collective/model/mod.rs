//! Plans executed by [session queues](crate::session_model): the memory of the members, and the
//! invariants.
//!
//! No member leaves a barrier before all have started it; a member that has waited has the correct
//! data, and keeps them until it starts again; nothing is written at a member that has not started,
//! nor over data that have yet to be folded; no member blocks forever; credit is not created.
//!
//! [`cases`] tries many plans in random orders and small ones in all orders. Both are also applied
//! to wrong plans, each of which must be detected.

mod cases;

use super::{
    making::Operation,
    plan::{Area, Plan, Put, Span},
    tree::{Load, Shape, Tree},
};
use crate::{
    Form,
    session_model::{Arrival, Model, Queue, Rounds, Slot, Violation},
};

/// A collective whose queues are filled.
struct World {
    operation: Operation,
    plans: Vec<Plan>,
    iterations: u8,
    prompt: bool,
    /// Members that may be late; all if it is empty.
    slow: Vec<usize>,
    /// Whether all iterations of an alternating plan use the first area, which is wrong.
    single: bool,
    queues: Vec<Queue>,
    /// The member of each queue, and the queue's number there.
    places: Vec<(usize, usize)>,
    /// Elements of each area of a member.
    areas: [usize; 2],
}

/// Returns the value of one element of a member's block in an iteration.
fn value(member: usize, k: u8, at: usize) -> u16 {
    (u16::from(k) * 24 + member as u16) * 24 + at as u16
}

impl World {
    fn new(operation: Operation, plans: Vec<Plan>, iterations: u8) -> Self {
        let first = |member: usize| plans[..member].iter().map(|plan| plan.queues.len()).sum::<usize>();
        let slot = |slot: &Option<Put>| match slot {
            None => Slot::default(),
            Some(put) => Slot { to: Some(first(put.to.0) + put.to.1), sps: put.sps, notice: put.notice },
        };
        let (mut queues, mut places) = (Vec::new(), Vec::new());
        for (member, plan) in plans.iter().enumerate() {
            for (number, queue) in plan.queues.iter().enumerate() {
                queues.push(Queue {
                    member,
                    slots: queue.slots.iter().map(slot).collect(),
                    ahead: Some(queue.ahead),
                    // Without the limit, credit would accumulate to a whole ring.
                    left: queue.ahead.min(1),
                    depth: queue.depth() as u32,
                    notices: queue.notices as usize,
                    early: queue.notices as usize,
                });
                places.push((member, number));
            }
        }
        let areas = match operation {
            Operation::Barrier => [0, 0],
            Operation::Tree { load, .. } => [load.up as usize * plans.len(), load.down as usize],
        };
        World { operation, plans, iterations, prompt: false, slow: Vec::new(), single: false, queues, places, areas }
    }

    /// Returns the index of an area of a member.
    fn at(&self, member: usize, area: Area) -> usize {
        member * (self.areas[0] + self.areas[1]) + if area == Area::Gather { 0 } else { self.areas[0] }
    }

    /// Returns the area of an iteration of an alternating plan.
    fn area(&self, k: u8) -> Area {
        Area::alternating(if self.single { 1 } else { k.into() })
    }

    /// Returns the bytes of a block, if areas alternate.
    fn alternating(&self) -> Option<usize> {
        match self.operation {
            Operation::Tree { load, .. } if self.plans[0].alternating => Some(load.up as usize),
            _ => None,
        }
    }

    /// Returns the data of a put in iteration `k`.
    fn span(&self, of: (usize, usize), k: u8) -> Option<(Put, Span)> {
        let (member, number) = self.places[of.0];
        let put = self.plans[member].queues[number].slots[of.1]?;
        let other = self.plans[member].alternating && self.area(k) != self.area(1);
        let put = if other { put.other() } else { put };
        Some((put, put.span?))
    }

    /// Checks that `member` has the data of iteration `k`, in the first `blocks` of its blocks if
    /// areas alternate.
    fn check(&self, memory: &[u16], member: usize, k: u8, blocks: usize) -> Result<(), Violation> {
        let Operation::Tree { tree, load } = self.operation else { return Ok(()) };
        let (members, up) = (self.plans.len(), load.up as usize);
        if load.up > 0 && members == 1 {
            // No data are in flight.
            return Ok(());
        }
        let wanted = |at: usize| match self.alternating() {
            Some(block) => value((member + at / block) % members, k, at % block),
            None if up > 0 => value(at / up, k, at % up),
            None => value(tree.root, k, at),
        };
        let (area, many) = match self.alternating() {
            Some(block) => (self.area(k), blocks * block),
            None => (Area::Result, self.areas[1]),
        };
        let first = self.at(member, area);
        match (0..many).find(|at| memory[first + at] != wanted(*at)) {
            None => Ok(()),
            Some(at) => Err(Violation::Memory(format!("member {member} has the wrong data in {k}, at {at}"))),
        }
    }
}

impl Model for World {
    /// The areas of all members.
    type Memory = Vec<u16>;
    type Data = Vec<u16>;

    fn queues(&self) -> &[Queue] {
        &self.queues
    }

    fn members(&self) -> usize {
        self.plans.len()
    }

    fn iterations(&self) -> u8 {
        self.iterations
    }

    fn memory(&self) -> Vec<u16> {
        vec![0; self.at(self.plans.len(), Area::Gather)]
    }

    fn prompt(&self) -> bool {
        self.prompt
    }

    fn slow(&self, member: usize) -> bool {
        self.slow.is_empty() || self.slow.contains(&member)
    }

    fn start(&self, memory: &mut Vec<u16>, me: usize, k: u8) -> Result<(), Violation> {
        if k > 1 && self.alternating().is_none() {
            self.check(memory, me, k - 1, 0)?;
        }
        let (area, many) = match self.operation {
            Operation::Tree { load, .. } if load.up > 0 => {
                (self.alternating().map_or(Area::Gather, |_| self.area(k)), load.up as usize)
            }
            Operation::Tree { tree, load } if tree.root == me => (Area::Result, load.down as usize),
            _ => return Ok(()),
        };
        let first = self.at(me, area);
        (0..many).for_each(|at| memory[first + at] = value(me, k, at));
        Ok(())
    }

    fn leave(&self, memory: &mut Vec<u16>, of: (usize, usize), k: u8) -> Result<Vec<u16>, Violation> {
        let Some((_, span)) = self.span(of, k) else { return Ok(Vec::new()) };
        let me = self.places[of.0].0;
        if let Some(block) = self.alternating() {
            // The expected data are then known.
            self.check(memory, me, k, span.bytes as usize / block)?;
            return Ok(Vec::new());
        }
        let from = self.at(me, span.from.0) + span.from.1 as usize;
        Ok(memory[from..from + span.bytes as usize].to_vec())
    }

    fn arrive(&self, memory: &mut Vec<u16>, rounds: &[Rounds], put: Arrival<'_, Vec<u16>>) -> Result<(), Violation> {
        let Some((Put { to: (to, _), .. }, span)) = self.span(put.of, put.k) else { return Ok(()) };
        match self.alternating() {
            Some(_) if rounds[to].ended + 2 < put.k && !self.single => {
                return Err(Violation::Memory(format!(
                    "data of {} at member {to}, which has not ended the one before",
                    put.k
                )));
            }
            None if span.at.0 == Area::Result && rounds[to].started < put.k => {
                return Err(Violation::Memory(format!("data of {} at member {to}, which has not begun", put.k)));
            }
            _ => {}
        }
        let at = self.at(to, span.at.0) + span.at.1 as usize;
        match self.alternating() {
            Some(block) => {
                let from = self.places[put.of.0].0;
                let data = |at: usize| value((from + at / block) % self.plans.len(), put.k, at % block);
                (0..span.bytes as usize).for_each(|byte| memory[at + byte] = data(byte));
            }
            None => memory[at..at + put.data.len()].copy_from_slice(put.data),
        }
        Ok(())
    }

    fn end(&self, memory: &mut Vec<u16>, rounds: &[Rounds], me: usize, k: u8) -> Result<(), Violation> {
        if let Some(late) = rounds.iter().position(|member| member.started < k)
            && matches!(self.operation, Operation::Barrier)
        {
            return Err(Violation::Memory(format!("member {me} left barrier {k}, which {late} has not begun")));
        }
        self.check(memory, me, k, self.plans.len())
    }
}

fn plans(operation: Operation, form: Form, members: usize) -> Option<Vec<Plan>> {
    (0..members).map(|me| operation.plan(form, members, me)).collect()
}

/// Returns an allreduce with blocks of this many elements over a binomial tree with this root.
fn allreduce(members: usize, root: usize, block: u64) -> Operation {
    let tree = Tree { members, root, shape: Shape::Binomial };
    Operation::Tree { tree, load: Load { up: block, down: block * members as u64, segments: 1 } }
}
