//! All interleavings of small exchanges, run by the real programs on a model of queues.
//!
//! Of [exchanges by node](crate::aggregation) too, whose plans come here as cases. Exhaustive within: the members, queues and rounds of each case. A state says of each queue its three pointers and what of its puts has not
//! arrived, and of each member its round. Between any two members' steps anything else may happen: a queue starts its next command as soon as it may or later; puts of
//! one queue to one other arrive in order, all else in any order; members start and end their rounds at any time.

use super::{
    dealing::{Dealt, Edges, deal},
    program::{Data, Program, Ready, Step, Told, program},
};
use crate::{Form, layout::Piece};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId, Stadd},
};
use std::collections::{HashSet, VecDeque};

/// A job: who sends to whom, how, and how often.
pub(crate) struct Case {
    /// Of each member, its channels.
    pub(crate) channels: Vec<Vec<Link>>,
    pub(crate) form: Form,
    pub(crate) rounds: u64,
}

/// A channel.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The other member.
    pub(crate) other: usize,
    /// The channel's number there.
    pub(crate) there: usize,
    pub(crate) edges: Edges,
}

impl Link {
    fn new(other: usize, there: usize, out: bool, inn: bool) -> Link {
        Link { other, there, edges: Edges::new(out.then_some(1), inn) }
    }
}

/// A queue of the model.
pub(crate) struct Queue {
    pub(crate) member: usize,
    pub(crate) program: Program,
    ahead: u64,
    depth: u64,
    /// Of a round.
    notices: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    queues: Vec<Pointers>,
    /// Of each member: rounds started, rounds ended.
    rounds: Vec<(u64, u64)>,
    /// Of each edge, by receiver: READYs that its receiver has sent, data that have been sent.
    edges: Vec<(u64, u64)>,
    /// Of each edge, puts of data that have arrived.
    arrived: Vec<u64>,
    /// Puts under way, by pair of queues in order: slots, whether with a notice, and which edge's data.
    flying: Vec<Flying>,
}

/// Of a pair of queues, its puts under way.
type Flying = ((usize, usize), VecDeque<(u8, bool, Option<usize>)>);

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
    fn ring(members: usize, form: Form, slots: u64, rounds: u64) -> Case {
        let channels = |me: usize| {
            let (left, right) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(left, 1, true, true), Link::new(right, 0, true, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, rounds }.with_slots(slots)
    }

    /// Member 0 exchanges with all others.
    fn star(members: usize, form: Form, rounds: u64) -> Case {
        let leaf = |me: usize| vec![Link::new(0, me - 1, true, true)];
        let hub = (1..members).map(|leaf| Link::new(leaf, 0, true, true)).collect();
        Case { channels: [hub].into_iter().chain((1..members).map(leaf)).collect(), form, rounds }
    }

    /// Along a ring in one direction.
    fn one_way(members: usize, form: Form, rounds: u64) -> Case {
        let channels = |me: usize| {
            let (before, after) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(after, 1, true, false), Link::new(before, 0, false, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, rounds }
    }

    /// Member 0 sends to 1 and 2, who send nothing.
    fn fan(form: Form, rounds: u64) -> Case {
        let channels = vec![
            vec![Link::new(1, 0, true, false), Link::new(2, 0, true, false)],
            vec![Link::new(0, 0, false, true)],
            vec![Link::new(0, 1, false, true)],
        ];
        Case { channels, form, rounds }
    }

    fn with_slots(mut self, slots: u64) -> Case {
        for data in self.channels.iter_mut().flatten().filter_map(|link| link.edges.data.as_mut()) {
            *data = slots;
        }
        self
    }

    pub(crate) fn queues(&self) -> Vec<Queue> {
        let edges = |channels: &Vec<Link>| channels.iter().map(|link| link.edges).collect::<Vec<_>>();
        let dealt: Vec<Dealt> = self.channels.iter().map(|channels| deal(self.form, &edges(channels))).collect();
        let first = |member: usize| dealt[..member].iter().map(|dealt| dealt.queues.len()).sum::<usize>();
        let mut queues = Vec::new();
        for (member, Dealt { queues: shapes, served }) in dealt.iter().enumerate() {
            for (number, shape) in shapes.iter().enumerate() {
                let (mut readies, mut data) = (Vec::new(), Vec::new());
                for (at, link) in self.channels[member].iter().enumerate() {
                    let there = dealt[link.other].served[link.there];
                    let to = id(first(link.other) + there.by);
                    let credit = dealt[link.other].queues[there.by].credit();
                    // An address names its edge by the receiver and its channel.
                    let edge =
                        |member: usize, channel: usize| Stadd::fixed(1) + (member * 16 + channel) as u64 * (1 << 20);
                    if link.edges.ready && served[at].says == number {
                        readies.push(Ready { to, word: edge(member, at), credit });
                    }
                    if let Some(slots) = link.edges.data.filter(|_| served[at].by == number) {
                        let piece = Piece { from: 0, at: 0, len: 1, count: slots as u32, stride: 1 };
                        let told = Told { notice: there.notice, credit: if there.feeds { credit } else { 0 } };
                        let at = edge(link.other, link.there);
                        data.push(Data { to, from: Stadd::fixed(2), at, pieces: vec![piece], told });
                    }
                }
                let program = program(id(queues.len()), Stadd::fixed(0), shape, &readies, &data);
                let slots: u64 = program.steps.iter().map(|step| step.posting(0).command.slots()).sum();
                assert_eq!(slots, shape.slots(), "{shape:?}");
                let ahead = if shape.awaited > 0 { shape.readies } else { u64::MAX };
                queues.push(Queue { member, program, ahead, depth: shape.depth(), notices: shape.notices });
            }
        }
        queues
    }

    /// By edge of data that are forwarded: the edges that feed it, each with its puts of a round.
    fn feeds(&self) -> Vec<Vec<(usize, u64)>> {
        let mut feeds = vec![Vec::new(); self.channels.len() * 16];
        for (member, channels) in self.channels.iter().enumerate() {
            for link in channels.iter().filter(|link| link.edges.data.is_some() && link.edges.relay.is_some()) {
                let feeding = |(_, fed): &(usize, &Link)| fed.edges.feeds() && fed.edges.relay == link.edges.relay;
                let fed = channels.iter().enumerate().filter(feeding).map(|(at, fed)| {
                    let puts = self.channels[fed.other][fed.there].edges.data.unwrap_or(0);
                    (member * 16 + at, puts)
                });
                feeds[link.other * 16 + link.there] = fed.collect();
            }
        }
        feeds
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Data of a round left before its receiver was ready for it, or before what they forward had come.
    Early,
    /// Nothing can happen and the rounds are not over.
    Stuck,
    /// Credit got a whole ring ahead, or was left over at the end.
    Credit,
    /// More data came than the round has.
    Notices,
}

/// Explore everything; how many states there are.
pub(crate) fn explore(case: &Case, queues: &[Queue]) -> Result<usize, Wrong> {
    let commands: Vec<Vec<Posting>> = queues
        .iter()
        .map(|queue| queue.program.steps.iter().flat_map(|step| singles(step.posting(0))).collect())
        .collect();
    let edge = |at: Stadd| (at.offset() >> 20) as usize;
    let feeds = case.feeds();
    let start = State {
        queues: queues.iter().map(|queue| Pointers { scheduled: queue.ahead, ..Pointers::default() }).collect(),
        rounds: vec![(0, 0); case.channels.len()],
        edges: vec![(0, 0); case.channels.len() * 16],
        arrived: vec![0; case.channels.len() * 16],
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
                let mut data = None;
                match posting.command {
                    Command::PutInline { at: word, .. } if word != Stadd::fixed(0) => next.edges[edge(word)].0 = round,
                    Command::Put { at: place, .. } => {
                        let late = |(fed, puts): &(usize, u64)| state.arrived[*fed] != round * puts;
                        if state.edges[edge(place)].0 != round || feeds[edge(place)].iter().any(late) {
                            return Err(Wrong::Early);
                        }
                        next.edges[edge(place)].1 = round;
                        data = Some(edge(place));
                    }
                    _ => {}
                }
                let pair = (at, to.rank().index());
                let put = (posting.sps, posting.remote_notice, data);
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
            let (sps, notice, data) = next.flying[place].1.pop_front().expect("no empty ones");
            if next.flying[place].1.is_empty() {
                next.flying.remove(place);
            }
            if let Some(edge) = data {
                next.arrived[edge] += 1;
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
