//! Plans carried out by a network that does what it likes within the contract: queues take turns at random, puts arrive at random (those of
//! one queue to one member in order), members start and wait when they please. Seeded, so a failure comes again.
//!
//! What must hold: a barrier is left by nobody before all have begun; who has waited has the right data, and keeps it until it starts again; nothing is
//! written at who has not begun; nobody is stuck; credit is not made. The mutations show that each of these is looked at.

use super::{
    making::Kind,
    plan::{Area, Plan, Put},
    tree::{Shape, Tree},
    tree_plan::Load,
};
use crate::Form;
use std::collections::VecDeque;

const ITERATIONS: u64 = 6;

struct Chance(u64);

impl Chance {
    /// A number below `many`.
    fn below(&mut self, many: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % many as u64) as usize
    }
}

#[derive(Default)]
struct Queue {
    /// Slots that were posted and have not started.
    posted: VecDeque<(Option<Put>, u64)>,
    credit: u64,
    /// Notices that have come, with their iterations.
    notices: VecDeque<u64>,
}

struct Member {
    queues: Vec<Queue>,
    started: u64,
    ended: u64,
    areas: [Vec<u64>; 2],
    /// The result area when it was last waited for.
    seen: Vec<u64>,
}

/// A put under way, with what it carries.
type Flight = (Put, u64, Vec<u64>);

struct World {
    plans: Vec<Plan>,
    kind: Kind,
    members: Vec<Member>,
    /// By sending member, its queue, and the target: in order.
    wires: Vec<((usize, usize, usize), VecDeque<Flight>)>,
    chance: Chance,
}

/// What a member's block holds in an iteration, element by element.
fn value(member: usize, k: u64, at: usize) -> u64 {
    k * 1_000_000 + member as u64 * 1000 + at as u64
}

impl World {
    fn new(kind: Kind, plans: Vec<Plan>, seed: u64) -> Self {
        let members = plans.len();
        let (gather, result) = match kind {
            Kind::Barrier => (0, 0),
            Kind::Tree { load, .. } => ((load.up * members as u64) as usize, load.down as usize),
        };
        let member = |plan: &Plan| Member {
            queues: plan.queues.iter().map(|queue| Queue { credit: queue.ahead.into(), ..Queue::default() }).collect(),
            started: 0,
            ended: 0,
            areas: [vec![0; gather], vec![0; result]],
            seen: vec![0; result],
        };
        World { members: plans.iter().map(member).collect(), plans, kind, wires: Vec::new(), chance: Chance(seed) }
    }

    fn start(&mut self, me: usize) -> Result<(), String> {
        let member = &mut self.members[me];
        let root = matches!(self.kind, Kind::Tree { tree, load } if load.up == 0 && tree.root == me);
        if !root && !self.plans[me].alternating && member.areas[1] != member.seen {
            return Err(format!("what member {me} had in {} was overwritten", member.ended));
        }
        member.started += 1;
        let k = member.started;
        match self.kind {
            Kind::Tree { load, .. } if load.up > 0 => {
                let area = if self.plans[me].alternating { Area::alternating(k) } else { Area::Gather };
                (0..load.up as usize).for_each(|at| member.areas[area as usize][at] = value(me, k, at));
            }
            Kind::Tree { .. } if root => {
                member.areas[1].iter_mut().enumerate().for_each(|(at, cell)| *cell = value(me, k, at));
            }
            _ => {}
        }
        for (queue, plan) in member.queues.iter_mut().zip(&self.plans[me].queues) {
            queue.posted.extend(plan.slots.iter().map(|slot| (*slot, k)));
        }
        Ok(())
    }

    fn may_end(&self, me: usize) -> bool {
        let member = &self.members[me];
        let over = |(queue, plan): (&Queue, &super::plan::Queue)| {
            queue.posted.is_empty() && queue.notices.len() >= plan.notices as usize
        };
        member.started > member.ended && member.queues.iter().zip(&self.plans[me].queues).all(over)
    }

    fn end(&mut self, me: usize) -> Result<(), String> {
        let k = self.members[me].started;
        if let Some(late) = self.members.iter().position(|member| member.started < k)
            && matches!(self.kind, Kind::Barrier)
        {
            return Err(format!("member {me} left barrier {k}, which {late} has not begun"));
        }
        let count = self.members.len();
        let member = &mut self.members[me];
        for (queue, plan) in member.queues.iter_mut().zip(&self.plans[me].queues) {
            if queue.notices.drain(..plan.notices as usize).any(|notice| notice != k) {
                return Err(format!("member {me} has a notice of another iteration than {k}"));
            }
        }
        if let Kind::Tree { tree, load } = self.kind {
            let cell = |at: usize| match load.up as usize {
                0 => value(tree.root, k, at),
                up => value(at / up, k, at % up),
            };
            // The own block is the first where areas alternate.
            let (area, skip) = match self.plans[me].alternating {
                true => (Area::alternating(k), (count - me) * load.up as usize),
                false => (Area::Result, 0),
            };
            let got = |at: usize| member.areas[area as usize][(at + skip) % load.down as usize];
            if (0..load.down as usize).any(|at| got(at) != cell(at)) && (load.up == 0 || count > 1) {
                return Err(format!("member {me} has the wrong data in {k}: {:?}", member.areas));
            }
        }
        member.seen = member.areas[1].clone();
        member.ended = k;
        Ok(())
    }

    fn execute(&mut self, me: usize, number: usize) {
        let queue = &mut self.members[me].queues[number];
        queue.credit -= 1;
        let Some((Some(put), k)) = queue.posted.pop_front() else { return };
        let put = if self.plans[me].alternating && k % 2 == 0 { put.other() } else { put };
        let read = |span: super::plan::Span| {
            let from = span.from.1 as usize;
            self.members[me].areas[span.from.0 as usize][from..from + span.bytes as usize].to_vec()
        };
        let flight = (put, k, put.span.map(read).unwrap_or_default());
        let wire = (me, number, put.to.0);
        match self.wires.iter_mut().find(|(name, _)| *name == wire) {
            Some((_, flights)) => flights.push_back(flight),
            None => self.wires.push((wire, [flight].into())),
        }
    }

    fn arrive(&mut self, wire: usize) -> Result<(), String> {
        let (put, k, data) = self.wires[wire].1.pop_front().expect("one is under way");
        let target = &mut self.members[put.to.0];
        if let Some(span) = put.span {
            let at = span.at.1 as usize;
            if span.at.0 == Area::Result && target.started < k && !self.plans[put.to.0].alternating {
                return Err(format!("data of {k} at member {}, which has not begun", put.to.0));
            }
            target.areas[span.at.0 as usize][at..at + data.len()].copy_from_slice(&data);
        }
        let queue = &mut target.queues[put.to.1];
        queue.notices.extend(put.notice.then_some(k));
        queue.credit += u64::from(put.sps);
        Ok(())
    }

    /// Nothing is left but, where a first slot needs none, its credit. More would pile up to a ring.
    fn at_rest(&self) -> Result<(), String> {
        for (me, (member, plan)) in self.members.iter().zip(&self.plans).enumerate() {
            for (number, (queue, plan)) in member.queues.iter().zip(&plan.queues).enumerate() {
                if queue.credit != u64::from(plan.ahead.min(1)) || !queue.notices.is_empty() {
                    return Err(format!("credit of {} is left in queue {number} of member {me}", queue.credit));
                }
            }
        }
        Ok(())
    }

    /// All iterations of all members, or what goes wrong.
    fn run(mut self) -> Result<(), String> {
        // One member is slow, and one wire.
        let (slow, lame) = (self.chance.below(self.members.len()), self.chance.below(8));
        loop {
            let members = 0..self.members.len();
            let mut may: Vec<(u8, usize, usize)> = Vec::new();
            for me in members {
                let member = &self.members[me];
                if member.started == member.ended && member.started < ITERATIONS {
                    may.push((0, me, 0));
                }
                if self.may_end(me) {
                    may.push((1, me, 0));
                }
                let ready = |(_, queue): &(usize, &Queue)| queue.credit > 0 && !queue.posted.is_empty();
                may.extend(member.queues.iter().enumerate().filter(ready).map(|(number, _)| (2, me, number)));
            }
            let under_way = self.wires.iter().enumerate().filter(|(_, (_, flights))| !flights.is_empty());
            may.extend(under_way.map(|(wire, _)| (3, wire, 0)));
            if may.is_empty() {
                return match self.members.iter().position(|member| member.ended < ITERATIONS) {
                    None => self.at_rest(),
                    Some(stuck) => Err(format!("member {stuck} is stuck in {}", self.members[stuck].started)),
                };
            }
            let quick = |act: &&(u8, usize, usize)| !(act.0 < 2 && act.1 == slow || act.0 == 3 && act.1 == lame);
            let quick: Vec<_> = may.iter().filter(quick).copied().collect();
            let from = if quick.is_empty() || self.chance.below(64) == 0 { &may } else { &quick };
            let (act, who, number) = from[self.chance.below(from.len())];
            match act {
                0 => self.start(who)?,
                1 => self.end(who)?,
                2 => self.execute(who, number),
                _ => self.arrive(who)?,
            }
        }
    }
}

fn kinds(members: usize) -> Vec<Kind> {
    let mut kinds = vec![Kind::Barrier];
    for shape in [Shape::Binomial, Shape::Chain] {
        for root in [0, members - 1, members / 2] {
            let tree = Tree { members, root, shape };
            kinds.extend([1, 3].map(|segments| Kind::Tree { tree, load: Load { up: 0, down: 24, segments } }));
        }
    }
    let tree = Tree { members, root: 0, shape: Shape::Binomial };
    kinds.push(Kind::Tree { tree, load: Load { up: 8, down: 8 * members as u64, segments: 1 } });
    kinds.push(Kind::Tree { tree, load: Load { up: 8, down: 8 * members as u64, segments: 2 } });
    kinds
}

fn plans(kind: Kind, form: Form, members: usize) -> Option<Vec<Plan>> {
    (0..members).map(|me| kind.plan(form, members, me)).collect()
}

#[test]
fn plans_hold_whatever_the_network_does() {
    let mut runs = 0;
    for members in [1, 2, 3, 4, 5, 8, 13, 20] {
        for kind in kinds(members) {
            // A group of one has no data under way.
            if members == 1 && matches!(kind, Kind::Tree { load, .. } if load.up > 0) {
                continue;
            }
            for form in [Form::Fast, Form::Mrc] {
                let Some(plans) = plans(kind, form, members) else { continue };
                for seed in 0..40 {
                    let ran = World::new(kind, plans.clone(), seed).run();
                    assert_eq!(ran, Ok(()), "{kind:?}, {form}, {members} members, seed {seed}");
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} runs");
}

/// Each way to change the program of one member, one number at a time.
fn mutants(plans: &[Plan]) -> Vec<(String, Vec<Plan>)> {
    let mut mutants = Vec::new();
    let me = 1;
    for (q, queue) in plans[me].queues.iter().enumerate() {
        let mut with = |what: String, change: &dyn Fn(&mut super::plan::Queue)| {
            let mut changed = plans.to_vec();
            change(&mut changed[me].queues[q]);
            mutants.push((what, changed));
        };
        with(format!("queue {q} one slot further ahead"), &|queue| queue.ahead += 1);
        for (at, slot) in queue.slots.iter().enumerate() {
            if slot.is_none() {
                with(format!("queue {q} without NOP {at}"), &|queue| {
                    queue.slots.remove(at);
                });
                with(format!("queue {q} with NOP {at} twice"), &|queue| queue.slots.insert(at, None));
            }
            if let Some(put) = slot {
                with(format!("queue {q}, put {at}: one credit more"), &|queue| {
                    queue.slots[at] = Some(Put { sps: put.sps + 1, ..*put });
                });
                if put.sps > 0 {
                    with(format!("queue {q}, put {at}: one credit less"), &|queue| {
                        queue.slots[at] = Some(Put { sps: put.sps - 1, ..*put });
                    });
                    with(format!("queue {q}, put {at}: credit lost"), &|queue| {
                        queue.slots[at] = Some(Put { sps: 0, ..*put });
                    });
                }
                if put.notice {
                    with(format!("queue {q}, put {at}: notice lost"), &|queue| {
                        queue.slots[at] = Some(Put { notice: false, ..*put });
                    });
                }
            }
        }
    }
    mutants
}

#[test]
fn every_wrong_number_in_a_program_is_noticed() {
    let members = 8;
    let tree = |root| Tree { members, root, shape: Shape::Binomial };
    let kinds = [
        Kind::Barrier,
        // Member 1 in the middle, and at the root.
        Kind::Tree { tree: tree(5), load: Load { up: 0, down: 24, segments: 3 } },
        Kind::Tree { tree: tree(1), load: Load { up: 0, down: 24, segments: 3 } },
        Kind::Tree { tree: tree(1), load: Load { up: 8, down: 8 * members as u64, segments: 1 } },
    ];
    let (mut noticed, mut not) = (0, Vec::new());
    for kind in kinds {
        for form in [Form::Fast, Form::Mrc] {
            let Some(plans) = plans(kind, form, members) else { continue };
            for (what, plans) in mutants(&plans) {
                match (0..300).find_map(|seed| World::new(kind, plans.clone(), seed).run().err()) {
                    Some(_) => noticed += 1,
                    None => not.push(format!("{kind:?}, {form}: {what}")),
                }
            }
        }
    }
    println!("{noticed} mutants noticed");
    assert!(not.is_empty(), "not noticed: {not:#?}");
    assert!(noticed > 150);
}
