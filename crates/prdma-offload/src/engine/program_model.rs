//! All interleavings of small exchanges: the real programs, carried out by [session queues](crate::session_model).
//!
//! Exhaustive within: the members, queues and rounds of each case. Beside its queues a state has of each edge the READYs that have left: no data may leave before.

use super::{
    dealing::{Dealt, Edges, deal},
    program::{Data, Program, Ready, Shape, Step, program},
};
use crate::{
    Form,
    layout::Piece,
    session_model::{Job, Queue, Slot, Wrong, explore},
};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId, Stadd},
};

/// A job: who sends to whom, how, and how often.
struct Case {
    /// Of each member, its channels: the other member, the channel's number there, and whether it is sent and received along.
    channels: Vec<Vec<(usize, usize, bool, bool)>>,
    form: Form,
    /// Slots of each edge's data.
    slots: u32,
    rounds: u8,
}

/// A queue with its program.
struct Filled {
    member: usize,
    program: Program,
    shape: Shape,
}

/// What names an edge: its receiver and the channel there.
fn address(member: usize, channel: usize) -> Stadd {
    Stadd::fixed(1) + (member * 16 + channel) as u64 * (1 << 20)
}

/// Its number.
fn edge(at: Stadd) -> usize {
    (at.offset() >> 20) as usize
}

fn id(queue: usize) -> QueueId {
    QueueId::new(Rank::new(queue as u32), 0, 0, 0)
}

impl Case {
    /// Members in a ring, each exchanging with both sides; with one or two members both sides are the same one.
    fn ring(members: usize, form: Form, slots: u32, rounds: u8) -> Case {
        let channels = |me: usize| {
            let (left, right) = ((me + members - 1) % members, (me + 1) % members);
            vec![(left, 1, true, true), (right, 0, true, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, slots, rounds }
    }

    /// Member 0 exchanges with all others.
    fn star(members: usize, form: Form, rounds: u8) -> Case {
        let leaf = |me: usize| vec![(0, me - 1, true, true)];
        let hub = (1..members).map(|leaf| (leaf, 0, true, true)).collect();
        Case { channels: [hub].into_iter().chain((1..members).map(leaf)).collect(), form, slots: 1, rounds }
    }

    /// Along a ring in one direction.
    fn one_way(members: usize, form: Form, rounds: u8) -> Case {
        let channels =
            |me: usize| vec![((me + 1) % members, 1, true, false), ((me + members - 1) % members, 0, false, true)];
        Case { channels: (0..members).map(channels).collect(), form, slots: 1, rounds }
    }

    /// Member 0 sends to 1 and 2, who send nothing.
    fn fan(form: Form, rounds: u8) -> Case {
        let channels =
            vec![vec![(1, 0, true, false), (2, 0, true, false)], vec![(0, 0, false, true)], vec![(0, 1, false, true)]];
        Case { channels, form, slots: 1, rounds }
    }

    fn with_slots(self, slots: u32) -> Case {
        Case { slots, ..self }
    }

    fn queues(&self) -> Vec<Filled> {
        let edges = |(_, _, out, inn): &(usize, usize, bool, bool)| Edges {
            data: out.then_some(u64::from(self.slots)),
            ready: *inn,
        };
        let dealt: Vec<Dealt> = self
            .channels
            .iter()
            .map(|channels| deal(self.form, &channels.iter().map(edges).collect::<Vec<_>>()))
            .collect();
        let first = |member: usize| dealt[..member].iter().map(|dealt| dealt.queues.len()).sum::<usize>();
        let mut queues = Vec::new();
        for (member, Dealt { queues: shapes, .. }) in dealt.iter().enumerate() {
            for (number, shape) in shapes.iter().enumerate() {
                let (mut readies, mut data) = (Vec::new(), Vec::new());
                for (at, (other, there, out, inn)) in self.channels[member].iter().enumerate() {
                    if dealt[member].served[at] != number {
                        continue;
                    }
                    let by = dealt[*other].served[*there];
                    let to = id(first(*other) + by);
                    if *inn {
                        let credit = dealt[*other].queues[by].credit();
                        readies.push(Ready { to, word: address(member, at), credit });
                    }
                    if *out {
                        let piece = Piece { from: 0, at: 0, len: 1, count: self.slots, stride: 1 };
                        data.push(Data { to, from: Stadd::fixed(2), at: address(*other, *there), pieces: vec![piece] });
                    }
                }
                let program = program(id(queues.len()), Stadd::fixed(0), &readies, &data);
                for step in &program.steps {
                    let mut posting = step.posting(3);
                    step.renew(&mut posting, 300);
                    assert_eq!(posting, step.posting(300));
                }
                let slots: u64 = program.steps.iter().map(|step| step.posting(0).command.slots()).sum();
                assert_eq!(slots, shape.slots(), "{shape:?}");
                queues.push(Filled { member, program, shape: *shape });
            }
        }
        queues
    }
}

/// A case whose queues are filled.
struct Exchange {
    members: usize,
    rounds: u8,
    queues: Vec<Queue>,
    /// By queue and slot.
    postings: Vec<Vec<Posting>>,
}

impl Exchange {
    fn new(case: &Case, queues: &[Filled]) -> Self {
        let postings: Vec<Vec<Posting>> = queues
            .iter()
            .map(|queue| queue.program.steps.iter().flat_map(|step| singles(step.posting(0))).collect())
            .collect();
        let slot = |posting: &Posting| Slot {
            to: posting.command.target().map(|to| to.rank().index()),
            sps: posting.sps,
            notice: posting.remote_notice,
        };
        let queue = |(filled, postings): (&Filled, &Vec<Posting>)| Queue {
            member: filled.member,
            slots: postings.iter().map(slot).collect(),
            ahead: (filled.shape.edges > 0).then_some(filled.shape.readies as u32),
            left: filled.shape.readies as u32,
            depth: filled.shape.depth() as u32,
            notices: filled.shape.readies as usize,
            early: 0,
        };
        let queues = queues.iter().zip(&postings).map(queue).collect();
        Exchange { members: case.channels.len(), rounds: case.rounds, queues, postings }
    }
}

impl Job for Exchange {
    /// Of each edge: READYs that its receiver has sent.
    type Memory = Vec<u8>;
    type Data = ();

    fn queues(&self) -> &[Queue] {
        &self.queues
    }

    fn members(&self) -> usize {
        self.members
    }

    fn iterations(&self) -> u8 {
        self.rounds
    }

    fn memory(&self) -> Vec<u8> {
        vec![0; self.members * 16]
    }

    /// Data of a round leave when their receiver is ready for them.
    fn leave(&self, readies: &mut Vec<u8>, of: (usize, usize), k: u8) -> Result<(), Wrong> {
        match self.postings[of.0][of.1].command {
            Command::PutInline { at, .. } if at != Stadd::fixed(0) => readies[edge(at)] = k,
            Command::Put { at, .. } if readies[edge(at)] != k => {
                return Err(Wrong::Memory(format!("data of {k} early")));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A posting of several blocks as so many of one.
fn singles(posting: Posting) -> Vec<Posting> {
    match posting.command {
        Command::Put { to, from, at, len, blocks } => {
            let one = |_| Posting { command: Command::put(to, from, at, len), ..posting };
            (0..blocks.count).map(one).collect()
        }
        _ => vec![posting],
    }
}

#[test]
fn no_order_of_events_breaks_an_exchange() {
    let cases = [
        ("ring of 1, fast", Case::ring(1, Form::Fast, 1, 3)),
        ("ring of 1, mrc", Case::ring(1, Form::Mrc, 2, 3)),
        ("ring of 2, fast", Case::ring(2, Form::Fast, 1, 2)),
        ("ring of 2, mrc", Case::ring(2, Form::Mrc, 1, 3)),
        ("ring of 3, mrc", Case::ring(3, Form::Mrc, 1, 2)),
        ("star of 3, fast", Case::star(3, Form::Fast, 3)),
        ("star of 4, mrc", Case::star(4, Form::Mrc, 2)),
        ("star of 4, two queues", Case::star(4, Form::Queues(2), 2)),
        ("one way round 3, fast", Case::one_way(3, Form::Fast, 3)),
        ("one way round 3, mrc", Case::one_way(3, Form::Mrc, 3)),
        ("fan, fast", Case::fan(Form::Fast, 3)),
        ("fan, mrc", Case::fan(Form::Mrc, 3)),
        ("ring of 2, two slots, mrc", Case::ring(2, Form::Mrc, 2, 2)),
        ("a chain, fast", Case::one_way(2, Form::Fast, 2).with_slots(17)),
    ];
    for (name, case) in cases {
        let states = explore(&Exchange::new(&case, &case.queues())).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        println!("{name}: {states} states");
    }
}

/// What was released too early, or too often.
fn early(wrong: &Wrong) -> bool {
    matches!(wrong, Wrong::Memory(_) | Wrong::Credit { .. })
}

/// Steps done wrong, and how it shows in the smallest case known.
#[test]
fn wrong_programs_are_found() {
    type Mutation = fn(&mut Posting);
    type Look = fn(&Wrong) -> bool;
    let one_more: Mutation = |posting| posting.sps += u8::from(posting.sps > 0 && posting.sps < 15);
    let one_less: Mutation = |posting| posting.sps = posting.sps.saturating_sub(1);
    let lost: Mutation = |posting| posting.sps = 0;
    let stuck: Look = |wrong| matches!(wrong, Wrong::Stuck { .. });
    let cases: [(&str, Case, Mutation, Look); 6] = [
        ("credit one too many, fast", Case::star(3, Form::Fast, 3), one_more, early),
        ("credit one too many, mrc", Case::ring(2, Form::Mrc, 1, 3), one_more, early),
        ("credit one too few, fast", Case::ring(2, Form::Fast, 1, 2), one_less, stuck),
        ("credit one too few, mrc", Case::ring(2, Form::Mrc, 1, 2), one_less, stuck),
        ("lost, fast", Case::one_way(2, Form::Fast, 2), lost, stuck),
        ("lost, mrc", Case::star(3, Form::Mrc, 2), lost, stuck),
    ];
    for (name, case, mutation, wrong) in cases {
        let mut queues = case.queues();
        for step in queues.iter_mut().flat_map(|queue| &mut queue.program.steps) {
            match step {
                Step::Ready { credit, .. } => {
                    let mut posting = Posting::new(Command::Nop).sps(*credit);
                    mutation(&mut posting);
                    *credit = posting.sps;
                }
                Step::Fixed(posting) => mutation(posting),
                Step::End { .. } | Step::Alternating(_) => unreachable!("whole blocks have none"),
            }
        }
        let found = explore(&Exchange::new(&case, &queues)).expect_err(name);
        assert!(wrong(&found), "{name}: {found:?}");
    }
}

/// A NOP less: the first SELF runs before the last READY.
#[test]
fn a_nop_too_few_is_found() {
    let case = Case::star(4, Form::Mrc, 2);
    let mut queues = case.queues();
    let steps = &mut queues[0].program.steps;
    let nop =
        steps.iter().position(|step| step.posting(0).command == Command::Nop).expect("three neighbours, two NOPs");
    steps.remove(nop);
    assert!(matches!(explore(&Exchange::new(&case, &queues)), Err(wrong) if early(&wrong)));
}
