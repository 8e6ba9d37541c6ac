//! All interleavings of small exchanges: the real programs, carried out by [session queues](crate::session_model).
//!
//! Of [exchanges by node](crate::aggregation) too, whose plans come here as cases. Exhaustive within: the members, queues and rounds of each case. Beside its queues a
//! state has of each edge the READYs that have left and the data that have arrived: no data may leave before their receiver is ready, nor before what they forward is here.

mod cases;

use super::{
    dealing::{Dealt, Edges, deal},
    program::{Data, Program, Ready, Shape, Told, program},
};
use crate::{
    Form,
    layout::Piece,
    session_model::{self, Arrival, Job, Queue, Rounds, Slot, Wrong},
};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId, Stadd},
};

/// A job: who sends to whom, how, and how often.
pub(crate) struct Case {
    /// Of each member, its channels.
    pub(crate) channels: Vec<Vec<Link>>,
    pub(crate) form: Form,
    pub(crate) rounds: u8,
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

/// A queue with its program.
pub(crate) struct Filled {
    pub(crate) member: usize,
    pub(crate) program: Program,
    shape: Shape,
}

/// The number of an edge: its receiver and the channel there.
fn number(member: usize, channel: usize) -> usize {
    member * 16 + channel
}

/// What names it.
fn address(member: usize, channel: usize) -> Stadd {
    Stadd::fixed(1) + number(member, channel) as u64 * (1 << 20)
}

/// The number of the edge that is named so.
fn edge(at: Stadd) -> usize {
    (at.offset() >> 20) as usize
}

fn id(queue: usize) -> QueueId {
    QueueId::new(Rank::new(queue as u32), 0, 0, 0)
}

impl Case {
    pub(crate) fn queues(&self) -> Vec<Filled> {
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
                    if link.edges.ready && served[at].says == number {
                        readies.push(Ready { to, word: address(member, at), credit });
                    }
                    if let Some(slots) = link.edges.data.filter(|_| served[at].by == number) {
                        let piece = Piece { from: 0, at: 0, len: 1, count: slots as u32, stride: 1 };
                        let told = Told { notice: there.notice, credit: if there.feeds { credit } else { 0 } };
                        let at = address(link.other, link.there);
                        data.push(Data { to, from: Stadd::fixed(2), at, pieces: vec![piece], told });
                    }
                }
                let program = program(id(queues.len()), Stadd::fixed(0), shape, &readies, &data);
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

    /// By edge of data that are forwarded: the edges that feed it, each with its puts of a round.
    fn feeds(&self) -> Vec<Vec<(usize, u64)>> {
        let mut feeds = vec![Vec::new(); number(self.channels.len(), 0)];
        for (member, channels) in self.channels.iter().enumerate() {
            for link in channels.iter().filter(|link| link.edges.data.is_some() && link.edges.relay.is_some()) {
                let feeding = |(_, fed): &(usize, &Link)| fed.edges.feeds() && fed.edges.relay == link.edges.relay;
                let fed = channels.iter().enumerate().filter(feeding).map(|(at, fed)| {
                    let puts = self.channels[fed.other][fed.there].edges.data.unwrap_or(0);
                    (number(member, at), puts)
                });
                feeds[number(link.other, link.there)] = fed.collect();
            }
        }
        feeds
    }
}

/// A case whose queues are filled.
struct Exchange {
    members: usize,
    rounds: u8,
    queues: Vec<Queue>,
    /// By queue and slot.
    postings: Vec<Vec<Posting>>,
    /// [`Case::feeds`].
    feeds: Vec<Vec<(usize, u64)>>,
}

/// What has happened along an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Along {
    /// READYs that its receiver has sent.
    readies: u8,
    /// Puts of data that have arrived.
    arrived: u16,
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
            ahead: (filled.shape.awaited > 0).then_some(filled.shape.readies as u32),
            left: filled.shape.readies as u32,
            depth: filled.shape.depth() as u32,
            notices: filled.shape.notices as usize,
            early: 0,
        };
        let queues = queues.iter().zip(&postings).map(queue).collect();
        Exchange { members: case.channels.len(), rounds: case.rounds, queues, postings, feeds: case.feeds() }
    }
}

impl Job for Exchange {
    /// By edge.
    type Memory = Vec<Along>;
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

    fn memory(&self) -> Vec<Along> {
        vec![Along::default(); number(self.members, 0)]
    }

    /// Data of a round leave when their receiver is ready for them, and all that feeds them is here.
    fn leave(&self, edges: &mut Vec<Along>, of: (usize, usize), k: u8) -> Result<(), Wrong> {
        match self.postings[of.0][of.1].command {
            Command::PutInline { at, .. } if at != Stadd::fixed(0) => edges[edge(at)].readies = k,
            Command::Put { at, .. } => {
                let late = |(fed, puts): &(usize, u64)| u64::from(edges[*fed].arrived) != u64::from(k) * puts;
                if edges[edge(at)].readies != k || self.feeds[edge(at)].iter().any(late) {
                    return Err(Wrong::Memory(format!("data of {k} early")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn arrive(&self, edges: &mut Vec<Along>, _: &[Rounds], put: Arrival<'_, ()>) -> Result<(), Wrong> {
        if let Command::Put { at, .. } = self.postings[put.of.0][put.of.1].command {
            edges[edge(at)].arrived += 1;
        }
        Ok(())
    }
}

/// Go through all orders of events; how many states there are.
pub(crate) fn explore(case: &Case, queues: &[Filled]) -> Result<usize, Wrong> {
    session_model::explore(&Exchange::new(case, queues))
}

/// What left too early, for its receiver or for what it forwards.
pub(crate) fn early(wrong: &Wrong) -> bool {
    matches!(wrong, Wrong::Memory(_))
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
