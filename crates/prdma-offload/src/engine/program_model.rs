//! All interleavings of small exchanges, run by the real programs on a model of queues.
//!
//! Exhaustive within: the members, queues and rounds of each case. A state says of each queue its three pointers and what of its puts has not
//! arrived, and of each member its round. Between any two members' steps anything else may happen: a queue starts its next command as soon as it may or later; puts of
//! one queue to one other arrive in order, all else in any order; members start and end their rounds at any time.

use super::{
    dealing::{Dealt, Edges, deal},
    program::{Data, Program, Ready, Step, program},
};
use crate::{Form, layout::Piece};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId, Stadd},
};
use std::collections::{HashSet, VecDeque};

/// A job: who sends to whom, how, and how often.
struct Case {
    /// Of each member, its channels: the other member, the channel's number there, and whether it is sent and received along.
    channels: Vec<Vec<(usize, usize, bool, bool)>>,
    form: Form,
    /// Slots of each edge's data.
    slots: u32,
    rounds: u64,
}

/// A queue of the model.
struct Queue {
    member: usize,
    program: Program,
    ahead: u64,
    depth: u64,
    /// Data that arrive in a round, and edges that are sent along.
    notices: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    queues: Vec<Pointers>,
    /// Of each member: rounds started, rounds ended.
    rounds: Vec<(u64, u64)>,
    /// Of each edge, by receiver: READYs that its receiver has sent, data that have been sent.
    edges: Vec<(u64, u64)>,
    /// Puts under way, by pair of queues in order: slots, and whether with a notice.
    flying: Vec<Flying>,
}

/// Of a pair of queues, its puts under way.
type Flying = ((usize, usize), VecDeque<(u8, bool)>);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Pointers {
    /// In commands; a command of the model is one slot.
    read: u64,
    write: u64,
    scheduled: u64,
    notices: u64,
}

fn id(queue: usize) -> QueueId {
    QueueId::new(Rank::new(queue as u32), 0, 0, 0)
}

impl Case {
    /// Members in a ring, each exchanging with both sides; with one or two members both sides are the same one.
    fn ring(members: usize, form: Form, slots: u32, rounds: u64) -> Case {
        let channels = |me: usize| {
            let (left, right) = ((me + members - 1) % members, (me + 1) % members);
            vec![(left, 1, true, true), (right, 0, true, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, slots, rounds }
    }

    /// Member 0 exchanges with all others.
    fn star(members: usize, form: Form, rounds: u64) -> Case {
        let leaf = |me: usize| vec![(0, me - 1, true, true)];
        let hub = (1..members).map(|leaf| (leaf, 0, true, true)).collect();
        Case { channels: [hub].into_iter().chain((1..members).map(leaf)).collect(), form, slots: 1, rounds }
    }

    /// Along a ring in one direction.
    fn one_way(members: usize, form: Form, rounds: u64) -> Case {
        let channels =
            |me: usize| vec![((me + 1) % members, 1, true, false), ((me + members - 1) % members, 0, false, true)];
        Case { channels: (0..members).map(channels).collect(), form, slots: 1, rounds }
    }

    /// Member 0 sends to 1 and 2, who send nothing.
    fn fan(form: Form, rounds: u64) -> Case {
        let channels =
            vec![vec![(1, 0, true, false), (2, 0, true, false)], vec![(0, 0, false, true)], vec![(0, 1, false, true)]];
        Case { channels, form, slots: 1, rounds }
    }

    fn with_slots(self, slots: u32) -> Case {
        Case { slots, ..self }
    }

    fn queues(&self) -> Vec<Queue> {
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
                    // An address names its edge by the receiver and its channel.
                    let edge =
                        |member: usize, channel: usize| Stadd::fixed(1) + (member * 16 + channel) as u64 * (1 << 20);
                    if *inn {
                        let credit = dealt[*other].queues[by].credit();
                        readies.push(Ready { to, word: edge(member, at), credit });
                    }
                    if *out {
                        let piece = Piece { from: 0, at: 0, len: 1, count: self.slots, stride: 1 };
                        data.push(Data { to, from: Stadd::fixed(2), at: edge(*other, *there), pieces: vec![piece] });
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
                let session = shape.edges > 0;
                let ahead = if session { shape.readies } else { u64::MAX };
                queues.push(Queue { member, program, ahead, depth: shape.depth(), notices: shape.readies });
            }
        }
        queues
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// Data of a round left before its receiver was ready for it.
    Early,
    /// Nothing can happen and the rounds are not over.
    Stuck,
    /// Credit got a whole ring ahead, or was left over at the end.
    Credit,
    /// More data came than the round has.
    Notices,
}

/// Explore everything; how many states there are.
fn explore(case: &Case, queues: &[Queue]) -> Result<usize, Wrong> {
    let commands: Vec<Vec<Posting>> = queues
        .iter()
        .map(|queue| queue.program.steps.iter().flat_map(|step| singles(step.posting(0))).collect())
        .collect();
    let edge = |at: Stadd| {
        let number = (at.offset() >> 20) as usize;
        number / 16 * 16 + number % 16
    };
    let start = State {
        queues: queues.iter().map(|queue| Pointers { scheduled: queue.ahead, ..Pointers::default() }).collect(),
        rounds: vec![(0, 0); case.channels.len()],
        edges: vec![(0, 0); case.channels.len() * 16],
        flying: Vec::new(),
    };
    let (mut seen, mut open) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = open.pop() {
        let mut nexts = Vec::new();
        for member in 0..state.rounds.len() {
            let (started, ended) = state.rounds[member];
            let mine = || queues.iter().enumerate().filter(|(_, queue)| queue.member == member).map(|(at, _)| at);
            if started == ended && started < case.rounds {
                let mut next = state.clone();
                next.rounds[member].0 += 1;
                mine().for_each(|at| next.queues[at].write += commands[at].len() as u64);
                nexts.push(next);
            }
            let over = |at: usize| {
                state.queues[at].notices == queues[at].notices && state.queues[at].read == state.queues[at].write
            };
            if started > ended && mine().all(over) {
                let mut next = state.clone();
                next.rounds[member].1 += 1;
                mine().for_each(|at| next.queues[at].notices = 0);
                nexts.push(next);
            }
        }
        for (at, pointers) in state.queues.iter().enumerate() {
            if pointers.read == pointers.write || pointers.read >= pointers.scheduled {
                continue;
            }
            let many = commands[at].len() as u64;
            let (round, posting) = (pointers.read / many + 1, commands[at][(pointers.read % many) as usize]);
            let mut next = state.clone();
            next.queues[at].read += 1;
            if let Some(to) = posting.command.target() {
                match posting.command {
                    Command::PutInline { at: word, .. } if word != Stadd::fixed(0) => next.edges[edge(word)].0 = round,
                    Command::Put { at: place, .. } => {
                        if state.edges[edge(place)].0 != round {
                            return Err(Wrong::Early);
                        }
                        next.edges[edge(place)].1 = round;
                    }
                    _ => {}
                }
                let pair = (at, to.rank().index());
                let put = (posting.sps, posting.remote_notice);
                match next.flying.binary_search_by_key(&pair, |(pair, _)| *pair) {
                    Ok(place) => next.flying[place].1.push_back(put),
                    Err(place) => next.flying.insert(place, (pair, VecDeque::from([put]))),
                }
            }
            nexts.push(next);
        }
        for place in 0..state.flying.len() {
            let mut next = state.clone();
            let (_, to) = next.flying[place].0;
            let (sps, notice) = next.flying[place].1.pop_front().expect("no empty ones");
            if next.flying[place].1.is_empty() {
                next.flying.remove(place);
            }
            let pointers = &mut next.queues[to];
            pointers.notices += u64::from(notice);
            if pointers.notices > queues[to].notices {
                return Err(Wrong::Notices);
            }
            pointers.scheduled = pointers.scheduled.saturating_add(sps.into());
            if queues[to].ahead != u64::MAX && pointers.scheduled - pointers.read >= queues[to].depth {
                return Err(Wrong::Credit);
            }
            nexts.push(next);
        }
        if nexts.is_empty() {
            if state.rounds.iter().any(|(_, ended)| *ended < case.rounds) {
                return Err(Wrong::Stuck);
            }
            let exact = |(at, pointers): (usize, &Pointers)| {
                queues[at].ahead == u64::MAX || pointers.scheduled == pointers.write + queues[at].ahead
            };
            if !state.queues.iter().enumerate().all(exact) {
                return Err(Wrong::Credit);
            }
        }
        open.extend(nexts.into_iter().filter(|next| seen.insert(next.clone())));
    }
    Ok(seen.len())
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
        let states = explore(&case, &case.queues()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        println!("{name}: {states} states");
    }
}

/// Steps done wrong, and how it shows in the smallest case known.
#[test]
fn wrong_programs_are_found() {
    type Mutation = fn(&mut Posting);
    let self_put =
        |posting: &Posting| matches!(posting.command, Command::PutInline { at, .. } if at == Stadd::fixed(0));
    assert!(!self_put(&Posting::new(Command::Nop)));
    let one_more: Mutation = |posting| posting.sps += u8::from(posting.sps > 0 && posting.sps < 15);
    let one_less: Mutation = |posting| posting.sps = posting.sps.saturating_sub(1);
    let lost: Mutation = |posting| posting.sps = 0;
    let cases: [(&str, Case, Mutation, &[Wrong]); 6] = [
        ("credit one too many, fast", Case::star(3, Form::Fast, 3), one_more, &[Wrong::Early, Wrong::Credit]),
        ("credit one too many, mrc", Case::ring(2, Form::Mrc, 1, 3), one_more, &[Wrong::Early, Wrong::Credit]),
        ("credit one too few, fast", Case::ring(2, Form::Fast, 1, 2), one_less, &[Wrong::Stuck]),
        ("credit one too few, mrc", Case::ring(2, Form::Mrc, 1, 2), one_less, &[Wrong::Stuck]),
        ("lost, fast", Case::one_way(2, Form::Fast, 2), lost, &[Wrong::Stuck]),
        ("lost, mrc", Case::star(3, Form::Mrc, 2), lost, &[Wrong::Stuck]),
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
                Step::End { .. } => unreachable!("whole blocks have none"),
            }
        }
        let found = explore(&case, &queues).expect_err(name);
        assert!(wrong.contains(&found), "{name}: {found:?}");
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
    assert!(matches!(explore(&case, &queues), Err(Wrong::Early | Wrong::Credit)));
}
