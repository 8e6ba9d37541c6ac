//! All interleavings of small exchanges: the real programs, executed by [session
//! queues](crate::session_model).
//!
//! The plans of [exchanges by node](crate::aggregation) are also cases here. Exhaustive within the
//! members, queues and rounds of each case. Besides its queues, a state records for each edge the
//! READYs that have left and the data that have arrived: no data may leave before their receiver is
//! ready, nor before the data that they forward have arrived. With a separate END, it also records
//! the ENDs: a member waits for them, END arrives behind its data, and an iteration ends with them.

mod ends;
mod shapes;
mod tests;

use super::{
    assignment::{Assignments, Demand, assign_queues},
    data::{Data, OnArrival},
    program::{Program, Ready, Shape, program},
};
use crate::{
    EndOfData, Form,
    layout::Piece,
    session_model::{self, Arrival, Model, Queue, Rounds, Slot, Violation},
};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId, Stadd},
};

/// A job: its channels, its form, and its number of rounds.
pub(crate) struct Case {
    /// The channels of each member.
    pub(crate) channels: Vec<Vec<Link>>,
    pub(crate) form: Form,
    pub(crate) end: EndOfData,
    pub(crate) rounds: u8,
}

/// A channel.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// The other member.
    pub(crate) other: usize,
    /// The channel's number there.
    pub(crate) there: usize,
    pub(crate) demand: Demand,
}

/// A queue with its program.
pub(crate) struct Filled {
    pub(crate) member: usize,
    pub(crate) program: Program,
    shape: Shape,
}

/// Returns the number of an edge: its receiver and the channel there.
fn number(member: usize, channel: usize) -> usize {
    member * 16 + channel
}

/// Returns the address that represents the edge.
fn address(member: usize, channel: usize) -> Stadd {
    Stadd::fixed(1) + number(member, channel) as u64 * (1 << 20)
}

/// The offset of an edge's word for END from the address that represents the edge.
const END: u64 = 8;

/// Returns the number of the edge that the address represents.
fn edge(at: Stadd) -> usize {
    (at.offset() >> 20) as usize
}

fn id(queue: usize) -> QueueId {
    QueueId::new(Rank::new(queue as u32), 0, 0, 0)
}

impl Case {
    pub(crate) fn queues(&self) -> Vec<Filled> {
        let edges = |channels: &Vec<Link>| channels.iter().map(|link| link.demand).collect::<Vec<_>>();
        let assignments: Vec<Assignments> =
            self.channels.iter().map(|channels| assign_queues(self.form, &edges(channels))).collect();
        let first = |member: usize| assignments[..member].iter().map(|dealt| dealt.queues.len()).sum::<usize>();
        let separate = self.end == EndOfData::Separate;
        let mut queues = Vec::new();
        for (member, Assignments { queues: shapes, assigned }) in assignments.iter().enumerate() {
            for (number, shape) in shapes.iter().enumerate() {
                let (mut readies, mut data) = (Vec::new(), Vec::new());
                for (at, link) in self.channels[member].iter().enumerate() {
                    let there = assignments[link.other].assigned[link.there];
                    let to = id(first(link.other) + there.queue);
                    let credit = assignments[link.other].queues[there.queue].credit();
                    if link.demand.ready && assigned[at].ready_queue == number {
                        readies.push(Ready { to, word: address(member, at), credit });
                    }
                    if let Some(slots) = link.demand.data.filter(|_| assigned[at].queue == number) {
                        let (count, at) = (slots as u32 - u32::from(separate), address(link.other, link.there));
                        let piece = Piece { from: 0, at: 0, len: 1, count, stride: 1 };
                        let credit = if there.feeds { credit } else { 0 };
                        let on_arrival = OnArrival { notice: there.notice, credit, end: separate.then(|| at + END) };
                        data.push(Data { to, from: Stadd::fixed(2), at, pieces: vec![piece], on_arrival });
                    }
                }
                let program = program(id(queues.len()), Stadd::fixed(0), shape, &readies, &data);
                let slots: u64 = program.commands.iter().map(|template| template.posting(0).command.slots()).sum();
                assert_eq!(slots, shape.slots(), "{shape:?}");
                queues.push(Filled { member, program, shape: *shape });
            }
        }
        queues
    }

    /// Returns, by edge of data that are forwarded, the edges of their inputs, each with its puts
    /// of a round.
    fn feeds(&self) -> Vec<Vec<(usize, u64)>> {
        let mut feeds = vec![Vec::new(); number(self.channels.len(), 0)];
        for (member, channels) in self.channels.iter().enumerate() {
            for link in channels.iter().filter(|link| link.demand.data.is_some() && link.demand.relay.is_some()) {
                let feeding = |(_, fed): &(usize, &Link)| fed.demand.feeds() && fed.demand.relay == link.demand.relay;
                let fed = channels.iter().enumerate().filter(feeding).map(|(at, fed)| {
                    let puts = self.channels[fed.other][fed.there].demand.data.unwrap_or(0);
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
    /// The postings by queue and slot.
    postings: Vec<Vec<Posting>>,
    /// [`Case::feeds`].
    feeds: Vec<Vec<(usize, u64)>>,
    /// By member, the edges that end with a separate END.
    ends: Vec<Vec<usize>>,
    /// Whether members wait for these ENDs; if not, a mutant.
    waits: bool,
}

/// The events along an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Along {
    /// READYs that its receiver has sent.
    readies: u8,
    /// Puts of data that have arrived.
    arrived: u16,
    /// The iteration of the last END that has arrived.
    ended: u8,
}

impl Exchange {
    fn new(case: &Case, queues: &[Filled]) -> Self {
        let postings: Vec<Vec<Posting>> = queues
            .iter()
            .map(|queue| queue.program.commands.iter().flat_map(|command| singles(command.posting(0))).collect())
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
        let ends = |(member, channels): (usize, &Vec<Link>)| {
            let ends = |link: &Link| link.demand.ready && case.end == EndOfData::Separate;
            let received = channels.iter().enumerate().filter(|(_, link)| ends(link));
            received.map(|(at, _)| number(member, at)).collect()
        };
        let ends = case.channels.iter().enumerate().map(ends).collect();
        let (members, rounds, feeds) = (case.channels.len(), case.rounds, case.feeds());
        Exchange { members, rounds, queues, postings, feeds, ends, waits: true }
    }

    /// Returns the number of puts of data of an edge in a round.
    fn puts(&self, number: usize) -> usize {
        let to = |posting: &&Posting| matches!(posting.command, Command::Put { at, .. } if edge(at) == number);
        self.postings.iter().flatten().filter(to).count()
    }
}

impl Model for Exchange {
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

    /// Data of a round leave only when their receiver is ready for them, and all their inputs have
    /// arrived.
    fn leave(&self, edges: &mut Vec<Along>, of: (usize, usize), k: u8) -> Result<(), Violation> {
        match self.postings[of.0][of.1].command {
            Command::PutInline { at, .. } if at != Stadd::fixed(0) && !is_end(at) => edges[edge(at)].readies = k,
            Command::Put { at, .. } => {
                let late = |(fed, puts): &(usize, u64)| u64::from(edges[*fed].arrived) != u64::from(k) * puts;
                if edges[edge(at)].readies != k || self.feeds[edge(at)].iter().any(late) {
                    return Err(Violation::Memory(format!("data of {k} early")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn arrive(&self, edges: &mut Vec<Along>, _: &[Rounds], put: Arrival<'_, ()>) -> Result<(), Violation> {
        match self.postings[put.of.0][put.of.1].command {
            Command::Put { at, .. } => edges[edge(at)].arrived += 1,
            Command::PutInline { at, .. } if is_end(at) => {
                edges[edge(at)].ended = put.k;
                self.ended(edges, edge(at), put.k)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A member waits for the ENDs.
    fn may_end(&self, edges: &Vec<Along>, member: usize, k: u8) -> bool {
        !self.waits || self.ends[member].iter().all(|edge| edges[*edge].ended >= k)
    }

    /// The data of an iteration that ends have arrived.
    fn end(&self, edges: &mut Vec<Along>, _: &[Rounds], member: usize, k: u8) -> Result<(), Violation> {
        self.ends[member].iter().try_for_each(|edge| self.ended(edges, *edge, k))
    }
}

impl Exchange {
    /// Checks that all data of iteration `k` have arrived along the edge, and no others.
    fn ended(&self, edges: &[Along], edge: usize, k: u8) -> Result<(), Violation> {
        match usize::from(edges[edge].arrived) == usize::from(k) * self.puts(edge) {
            true => Ok(()),
            false => Err(Violation::Memory(format!("the end of {k} without its data"))),
        }
    }
}

/// Returns whether the address is that of a word for END.
fn is_end(at: Stadd) -> bool {
    at.offset() & END != 0
}

/// Explores all orders of events; returns the number of states.
pub(crate) fn explore(case: &Case, queues: &[Filled]) -> Result<usize, Violation> {
    session_model::explore(&Exchange::new(case, queues))
}

/// Returns whether data left before their receiver was ready, or before their inputs had arrived.
pub(crate) fn early(violation: &Violation) -> bool {
    matches!(violation, Violation::Memory(_))
}

/// Splits a posting of several blocks into one posting per block.
fn singles(posting: Posting) -> Vec<Posting> {
    match posting.command {
        Command::Put { to, from, at, len, blocks } => {
            let one = |_| Posting { command: Command::put(to, from, at, len), ..posting };
            (0..blocks.count).map(one).collect()
        }
        _ => vec![posting],
    }
}
