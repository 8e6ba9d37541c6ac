//! Making a collective: members compare arguments, agree on a form and exchange addresses.

use super::{
    fast,
    plan::{Area, CpuPlan, Plan, Put, Queue, Span, cpu_barrier, cpu_tree},
    tree::{self, Load, Shape, Tree},
};
use crate::{
    Aggregation, Form, Options, PrdmaError, Result,
    buffer::Memory,
    engine::{AnyEngine, CommandTemplate, CpuEngine, Program, QueueEngine, open_queue, transfer},
    init::{Connections, Made, Outcome, Outgoing, QueueBudget, all_succeed, least, open_everywhere},
    layout::Piece,
    publish::publish,
};
use bytemuck::{Pod, Zeroable};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, Stadd},
    triggered::{Transfer, TriggeredPut},
};
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, RegionKey, RemoteAddr};
use std::collections::HashMap;

/// The requested collective.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Barrier,
    Tree { tree: Tree, load: Load },
}

impl Operation {
    /// Returns the numbers that must be the same at all members, each with its name.
    fn terms(&self) -> [(&'static str, u64); 5] {
        let (operation, root, up, down, way) = match self {
            Operation::Barrier => (0, 0, 0, 0, 0),
            Operation::Tree { tree, load } => {
                let way = 2 * load.segments + u64::from(tree.shape == Shape::Chain);
                (1 + u64::from(load.up > 0), tree.root as u64, load.up, load.down, way)
            }
        };
        [
            ("collectives", operation),
            ("roots", root),
            ("lengths of a block in bytes", up),
            ("lengths in bytes", down),
            ("pipelines (2 x segments, + 1 for a chain)", way),
        ]
    }

    /// Returns the queues of member `me`; `None` if the operation has no such form.
    pub(super) fn plan(&self, form: Form, members: usize, me: usize) -> Option<Plan> {
        match (self, form) {
            (Operation::Barrier, Form::Fast) => Some(fast::barrier(members, me)),
            (Operation::Barrier, _) => {
                let tree = Tree { members, root: 0, shape: Shape::Binomial };
                Some(tree::plan(&tree, &Load { up: 0, down: 0, segments: 1 }, me))
            }
            (Operation::Tree { load, .. }, Form::Fast) if load.up > 0 => Some(fast::allreduce(members, me, load.up)),
            (Operation::Tree { tree, load }, Form::Fast) => fast::broadcast(tree, load, me),
            (Operation::Tree { tree, load }, _) => Some(tree::plan(tree, load, me)),
        }
    }

    fn cpu_plan(&self, members: usize, me: usize) -> CpuPlan {
        match self {
            Operation::Barrier => cpu_barrier(members, me),
            Operation::Tree { tree, load } => cpu_tree(tree, load, me),
        }
    }
}

/// The location of a member's queues and memory: for one of its queues, or for the CPUs of others.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct MemberContact {
    /// The queue; 0 if there is none.
    queue: u64,
    /// Address, or region, of the words.
    words: u64,
    /// Addresses, or regions, of both areas.
    areas: [u64; 2],
    /// The offsets of the data in the areas.
    bases: [u64; 2],
}

/// A collective to be made.
pub(super) struct CollectiveBuilder<'a> {
    pub(super) group: &'a mut Group,
    pub(super) headers: &'a GroupMemory,
    pub(super) operation: Operation,
    /// This member's areas, and the offsets of their data.
    pub(super) areas: [Option<(Memory, u64)>; 2],
    pub(super) options: &'a Options,
}

impl CollectiveBuilder<'_> {
    /// Makes the collective. Itself a collective call.
    pub(super) async fn make(mut self) -> Result<Made> {
        let fabric = self.group.fabric().clone();
        for (what, mine) in self.operation.terms() {
            let (least, most) = (least(self.group, mine).await?, self.group.greatest(mine).await?);
            if least != most {
                return Err(PrdmaError::Disagreement { what, least, most });
            }
        }
        let (members, me) = (self.group.len(), self.group.me());
        let plan = |form| self.operation.plan(form, members, me);
        // A form for which any member has no plan is ruled out.
        let fast = self.group.greatest(plan(Form::Fast).map_or(u64::MAX, |plan| plan.queues.len() as u64)).await?;
        // With more queues than these, the form is the same.
        let enough = if fast == u64::MAX { 1 } else { fast.max(2) };
        let most = u64::from(self.options.form.most().min(self.options.budget)).min(enough);
        let budget =
            QueueBudget { wanted: most, available: most.min(ControlQueue::limits(&fabric).free.into()), needs: most };
        let (may, obstacle) = budget.agree(self.group).await?;
        let form = match may {
            0 => Form::Cpu,
            may if may >= fast.max(2) => Form::Fast,
            _ => Form::Mrc,
        };
        let next = |form| if form == Form::Fast { Form::Mrc } else { Form::Cpu };
        let Outcome { form, obstacle, opened } = open_everywhere(self.group, (form, obstacle), next, |form| {
            let plan = plan(form).unwrap_or_default();
            let open = |(number, queue): (usize, &Queue)| {
                let notices = u64::from(queue.notices);
                open_queue(&fabric, number, QueueMode::Session, queue.depth(), notices, queue.ahead)
            };
            let queues: Vec<ControlQueue> = plan.queues.iter().enumerate().map(open).collect::<Result<_>>()?;
            Ok((plan, queues))
        })
        .await?;
        let ranks = (0..members).map(|member| self.group.rank(member)).collect::<Result<Box<[_]>, _>>()?;
        let areas = self.areas.iter().flatten().map(|(memory, _)| memory.clone()).collect::<Vec<_>>().into_iter();
        let (connections, engine) = match opened {
            Some((plan, queues)) => {
                let connections = Connections::of_words(&fabric, 1, areas);
                let engine = self.queues(&fabric, plan, queues, &connections, ranks).await;
                (connections, engine.map(AnyEngine::Queues))
            }
            None => {
                let cpu_plan = self.operation.cpu_plan(members, me);
                let connections = Connections::of_words(&fabric, cpu_plan.words, areas);
                let engine = self.acting(&fabric, &cpu_plan, &connections, ranks).await;
                (connections, engine.map(AnyEngine::Cpu))
            }
        };
        let engine = all_succeed(self.group, engine).await?;
        Ok(Made {
            engine,
            connections: connections?,
            fabric,
            form,
            obstacle,
            aggregation: Aggregation::None,
            guarded: None,
        })
    }

    /// Publishes this member's contacts and reads those of `targets`. Collective.
    async fn contacts(
        &mut self,
        mine: Result<Vec<MemberContact>>,
        targets: impl Iterator<Item = usize>,
    ) -> Result<HashMap<usize, Vec<MemberContact>>> {
        let mut targets: Vec<usize> = targets.collect();
        targets.sort_unstable();
        targets.dedup();
        let none = Vec::new();
        let tables = publish(self.group, self.headers, mine.as_ref().unwrap_or(&none), &targets).await?;
        mine?;
        Ok(targets.into_iter().zip(tables).collect())
    }

    async fn queues(
        &mut self,
        fabric: &Fabric,
        plan: Plan,
        queues: Vec<ControlQueue>,
        connections: &Result<Connections>,
        ranks: Box<[Rank]>,
    ) -> Result<QueueEngine> {
        let mine = match connections {
            Err(error) => Err(error.clone()),
            Ok(connections) => queues.iter().map(|queue| self.contact(queue, connections)).collect(),
        };
        let puts = || plan.queues.iter().flat_map(|queue| queue.slots.iter().flatten());
        let theirs = self.contacts(mine.clone(), puts().map(|put| put.to.0)).await?;
        let mut running = Vec::with_capacity(queues.len());
        for ((queue, planned), own) in queues.into_iter().zip(&plan.queues).zip(mine?) {
            let slot = |slot: &Option<Put>| match slot {
                None => Ok(CommandTemplate::Fixed(Posting::new(Command::Nop))),
                Some(put) => {
                    let contact = theirs.get(&put.to.0).and_then(|contacts| contacts.get(put.to.1));
                    let posting = |put| contact.and_then(|contact| posting(put, &own, contact, ranks[put.to.0]));
                    let command = match plan.alternating {
                        true => posting(&put.other())
                            .zip(posting(put))
                            .map(|(even, odd)| CommandTemplate::Alternating([even, odd])),
                        false => posting(put).map(CommandTemplate::Fixed),
                    };
                    command.ok_or(PrdmaError::Damaged { member: put.to.0 })
                }
            };
            let mut commands = planned.slots.iter().map(slot).collect::<Result<Vec<_>>>()?;
            match commands.last_mut() {
                Some(CommandTemplate::Fixed(last)) => *last = last.tcq(0),
                Some(CommandTemplate::Alternating(both)) => *both = both.map(|last| last.tcq(0)),
                _ => {}
            }
            let program = Program { commands, completions: 1 };
            running.push((queue, program, planned.notices));
        }
        Ok(QueueEngine::new(fabric, running.into_iter(), ranks))
    }

    /// Returns the contact of one of this member's queues.
    fn contact(&self, queue: &ControlQueue, connections: &Connections) -> Result<MemberContact> {
        let words = queue.register(connections.words.region())? + connections.scratch_word();
        let mut contact =
            MemberContact { queue: queue.id().to_bits(), words: words.to_bits(), areas: [0; 2], bases: [0; 2] };
        for (at, area) in self.areas.iter().enumerate() {
            if let Some((memory, base)) = area {
                contact.areas[at] = queue.register(memory.region())?.to_bits();
                contact.bases[at] = *base;
            }
        }
        Ok(contact)
    }

    async fn acting(
        &mut self,
        fabric: &Fabric,
        plan: &CpuPlan,
        connections: &Result<Connections>,
        ranks: Box<[Rank]>,
    ) -> Result<CpuEngine> {
        let region = |memory: &Memory| memory.region().key().to_bits();
        let area = |at: usize| self.areas[at].as_ref().map_or((0, 0), |(memory, base)| (region(memory), *base));
        let ((gather, first), (result, second)) = (area(0), area(1));
        let mine = connections.as_ref().map_err(Clone::clone).map(|connections| {
            let words = region(&connections.words);
            vec![MemberContact { queue: 0, words, areas: [gather, result], bases: [first, second] }]
        });
        let theirs = self.contacts(mine, plan.puts.iter().map(|put| put.to.0)).await?;
        let words = &connections.as_ref().map_err(Clone::clone)?.words;
        let word = |number: &usize| words.region().word::<u64>(fabric, number * 8);
        let mut puts = Vec::with_capacity(plan.puts.len());
        for put in &plan.puts {
            let (member, number) = put.to;
            let to = ranks[member];
            let contact = theirs.get(&member).and_then(|contacts| contacts.first());
            let contact = contact.ok_or(PrdmaError::Damaged { member })?;
            let there =
                |region: u64, offset: u64| RemoteAddr { rank: to, region: RegionKey::from_bits(region), offset };
            let transfer = match put.span {
                None => Transfer::empty(),
                Some(Span { from, at, bytes }) => {
                    let (memory, base) = self.areas[from.0 as usize].as_ref().expect("a span is of an area");
                    let offset = contact.bases[at.0 as usize].saturating_add(at.1);
                    let piece = Piece { from: base + from.1, at: offset, len: bytes as u32, count: 1, stride: 0 };
                    let out = Outgoing { packed: None, pieces: vec![piece], bytes, width: memory.width() };
                    transfer(fabric, &out, memory, there(contact.areas[at.0 as usize], 0))?
                }
            };
            let needs = put.needs.iter().map(word).collect::<Result<_, _>>()?;
            let word = fabric.remote_word(there(contact.words, 8 * number as u64))?;
            puts.push(TriggeredPut::new(needs, transfer, word));
        }
        let finally = plan.finally.iter().map(word).collect::<Result<_, _>>()?;
        Ok(CpuEngine::new(fabric, Vec::new(), puts, finally, ranks))
    }
}

/// Returns the command of a put; `None` if the contact does not belong to `rank`.
fn posting(put: &Put, own: &MemberContact, theirs: &MemberContact, rank: Rank) -> Option<Posting> {
    let to = QueueId::from_bits(theirs.queue).filter(|to| to.rank() == rank)?;
    let place = |contact: &MemberContact, (area, offset): (Area, u64)| {
        Stadd::from_bits(contact.areas[area as usize]) + contact.bases[area as usize] + offset
    };
    let command = match put.span {
        None => Command::PutInline { to, bytes: Inline::word(0), at: Stadd::from_bits(theirs.words) },
        Some(Span { from, at, bytes }) => {
            Command::put(to, place(own, from), place(theirs, at), u32::try_from(bytes).ok()?)
        }
    };
    let posting = Posting::new(command).strong_order().sps(put.sps);
    Some(if put.notice { posting.remote(0) } else { posting })
}
