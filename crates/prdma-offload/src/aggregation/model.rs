//! All interleavings of small exchanges by node: the [plans](super::plan) of their members,
//! executed as programs of [`crate::engine`] on its model of queues. The model knows the inputs of
//! each relay, and detects data that leave before their inputs have arrived.

use super::{
    pairs::{CrossNodeEdge, Neighbour, neighbours},
    plan::{Plan, PlannedChannel, Planner},
};
use crate::{
    EndOfData, Form,
    buffer::Width,
    engine::{
        CommandTemplate,
        program_model::{Case, Filled, Link, early, explore},
    },
    init::{Agreed, Channel, EdgeEnd, Incoming, Outgoing},
    layout::Piece,
    nodes::Nodes,
};
use rdma_fabric::{Rank, control_queue::Command};

/// Bytes of every block.
const BYTES: u64 = 8;

/// Members by node, and the members that each sends to.
#[derive(Clone, Copy)]
struct NodeGraph {
    nodes: &'static [usize],
    graph: &'static [&'static [usize]],
}

impl NodeGraph {
    /// Returns a channel for each edge of a member.
    fn channels(&self, me: usize) -> Vec<(Channel, Agreed)> {
        let channel = |member, index, out: bool, slot| {
            let end = Some(EdgeEnd { slot, label: 0 });
            let (out, inn) = if out { (end, None) } else { (None, end) };
            Channel { member, rank: Rank::new(member as u32), place: 0, index, out, inn }
        };
        let piece = Piece { from: 0, at: 0, len: BYTES as u32, count: 1, stride: 0 };
        let outgoing = Outgoing { packed: None, pieces: vec![piece], bytes: BYTES, width: Width::Eight };
        let outs = self.graph[me].iter().enumerate().map(|(slot, to)| {
            let index = self.graph[me][..slot].iter().filter(|other| *other == to).count() as u32;
            (channel(*to, index, true, slot), Agreed { out: Some(outgoing.clone()), ..Agreed::default() })
        });
        let edges = self.graph.iter().enumerate().flat_map(|(from, to)| {
            let mine = to.iter().filter(|to| **to == me).enumerate();
            mine.map(move |(index, _)| (from, index as u32))
        });
        let ins = edges.enumerate().map(|(slot, (from, index))| {
            let inn = Incoming { packed: None, bytes: BYTES, width: Width::Eight };
            (channel(from, index, false, slot), Agreed { inn: Some(inn), ..Agreed::default() })
        });
        outs.chain(ins).collect()
    }

    fn plans(&self) -> Vec<Plan> {
        let nodes = Nodes::new(self.nodes.iter().copied());
        let table = |me: usize| -> Vec<CrossNodeEdge> {
            let channels = self.channels(me).into_iter().map(|(channel, _)| channel);
            let cross =
                channels.filter(|channel| nodes.of(channel.member) != nodes.of(me)).map(|channel| CrossNodeEdge {
                    other: channel.member as u64,
                    index: channel.index.into(),
                    bytes: BYTES,
                    width: 8,
                    inward: channel.inn.is_some().into(),
                    place: 0,
                });
            cross.collect()
        };
        let known = |node: usize| -> Vec<Neighbour> {
            let tables: Vec<_> = nodes.members(node).iter().map(|member| table(*member)).collect();
            neighbours(&nodes, node, &tables).expect("tables are right")
        };
        let plan = |me: usize| {
            let home = nodes.of(me).expect("a member");
            let mine = known(home);
            let opposite = mine.iter().map(|neighbour| {
                let there = known(neighbour.node).iter().position(|back| back.node == home)?;
                Some(nodes.representative(neighbour.node, there))
            });
            let opposite: Vec<_> = opposite.collect();
            let (channels, agreed): (Vec<_>, Vec<_>) = self.channels(me).into_iter().unzip();
            let (neighbours, opposite) = (&mine[..], &opposite[..]);
            let planner = Planner {
                nodes: &nodes,
                me,
                neighbours,
                opposite,
                channels: &channels,
                agreed: &agreed,
                gap: 64,
                longest: 1 << 20,
            };
            planner.plan(|member| Ok(Rank::new(member as u32))).expect("tables are right")
        };
        (0..self.nodes.len()).map(plan).collect()
    }

    fn case(&self, form: Form, rounds: u8) -> Case {
        let plans = self.plans();
        let links = |me: usize| {
            let link = |hop: &PlannedChannel| {
                let opposite = |back: &PlannedChannel| {
                    let (there, here) = (&back.channel, &hop.channel);
                    there.member == me && there.index == here.index && there.out.is_some() == here.inn.is_some()
                };
                let there =
                    plans[hop.channel.member].channels.iter().position(opposite).expect("channels have two ends");
                Link { other: hop.channel.member, there, demand: hop.demand }
            };
            plans[me].channels.iter().map(link).collect()
        };
        Case { channels: (0..plans.len()).map(links).collect(), form, end: EndOfData::WithData, rounds }
    }
}

/// One member sends for itself and another, one receives for itself and another.
const THROUGH: NodeGraph = NodeGraph { nodes: &[0, 0, 1, 1], graph: &[&[2, 3], &[2, 3], &[], &[]] };
/// Two contributions besides the representative's own.
const GATHERED: NodeGraph = NodeGraph { nodes: &[0, 0, 0, 1], graph: &[&[3], &[3], &[3], &[]] };
/// Two receivers besides the representative.
const DEALT: NodeGraph = NodeGraph { nodes: &[0, 1, 1, 1], graph: &[&[1, 2, 3], &[], &[], &[]] };
/// Both representatives only forward.
const STRANGERS: NodeGraph = NodeGraph { nodes: &[0, 0, 1, 1], graph: &[&[], &[3, 3], &[], &[]] };
/// Two neighbours, represented by one member each; both members contribute to each other's message.
const CROSSED: NodeGraph = NodeGraph { nodes: &[0, 0, 1, 2], graph: &[&[2, 3], &[2, 3], &[], &[]] };
/// With blocks inside the nodes.
const NEAR: NodeGraph = NodeGraph { nodes: &[0, 0, 1], graph: &[&[1, 2], &[0, 2], &[]] };
/// In both directions.
const BOTH: NodeGraph = NodeGraph { nodes: &[0, 0, 1], graph: &[&[2], &[2], &[0, 1]] };
/// Three neighbours of one node with two members: the first and the third share queues of a
/// representative that sends nothing itself.
const SHARED: NodeGraph = NodeGraph { nodes: &[0, 0, 1, 2, 3], graph: &[&[], &[2, 2, 3, 3, 4, 4], &[], &[], &[]] };

/// The reverse of [`SHARED`].
const SPREAD: NodeGraph = NodeGraph { nodes: &[0, 0, 1, 2, 3], graph: &[&[], &[], &[1, 1], &[1, 1], &[1, 1]] };

#[test]
fn no_order_of_events_breaks_an_exchange_by_node() {
    explore_all(&[
        ("through both representatives", THROUGH, 2),
        ("two contributions", GATHERED, 3),
        ("two receivers", DEALT, 2),
        ("representatives that only represent", STRANGERS, 3),
        ("two neighbours", CROSSED, 2),
        ("near blocks too", NEAR, 2),
        ("both directions", BOTH, 2),
    ]);
}

#[test]
#[ignore = "long: weekly"]
fn no_order_of_events_breaks_pairs_that_share_a_queue() {
    explore_all(&[("two pairs put by one queue", SHARED, 2), ("two pairs dealt out by one queue", SPREAD, 2)]);
}

fn explore_all(cases: &[(&str, NodeGraph, u8)]) {
    for (name, graph, rounds) in cases {
        for form in [Form::Fast, Form::Mrc] {
            let case = graph.case(form, *rounds);
            let states = explore(&case, &case.queues()).unwrap_or_else(|wrong| panic!("{name}, {form}: {wrong:?}"));
            println!("{name}, {form}, {rounds} rounds: {states} states");
        }
    }
}

/// A change of the command at a given position.
type Change = fn(&mut Vec<CommandTemplate>, usize);

/// Returns all mutants of the queues that differ in one number: a name, the queue, the command's
/// position in it, and the change.
fn mutants(queues: &[Filled]) -> Vec<(String, usize, usize, Change)> {
    fn credit(command: &mut CommandTemplate, change: impl Fn(u8) -> u8) {
        match command {
            CommandTemplate::Ready { credit, .. } => *credit = change(*credit),
            CommandTemplate::Fixed(posting) => posting.sps = change(posting.sps),
            CommandTemplate::End(_) | CommandTemplate::Alternating(_) => unreachable!("whole blocks have none"),
        }
    }
    let more: Change = |commands, at| credit(&mut commands[at], |sps| sps + 1);
    let less: Change = |commands, at| credit(&mut commands[at], |sps| sps - 1);
    let silent: Change = |commands, at| match &mut commands[at] {
        CommandTemplate::Fixed(posting) => posting.remote_notice = false,
        _ => unreachable!("a READY has none"),
    };
    let gone: Change = |commands, at| {
        commands.remove(at);
    };
    let twice: Change = |commands, at| commands.insert(at, commands[at]);
    let mut mutants = Vec::new();
    for (number, queue) in queues.iter().enumerate() {
        for (at, command) in queue.program.commands.iter().enumerate() {
            let posting = command.posting(1);
            let mut with = |what: &str, change| {
                let who = format!("member {}, queue {number}, {:?}: {what}", queue.member, posting.command);
                mutants.push((who, number, at, change));
            };
            if posting.command == Command::Nop {
                with("one NOP less", gone);
                with("one NOP more", twice);
            }
            if (1..15).contains(&posting.sps) {
                with("one credit more", more);
                with("one credit less", less);
            }
            if let CommandTemplate::Ready { .. } = command {
                with("READY lost", gone);
            }
            if posting.remote_notice {
                with("notice lost", silent);
            }
        }
    }
    mutants
}

#[test]
fn every_wrong_number_of_an_exchange_by_node_is_noticed() {
    let (mut noticed, mut by_data) = (0, 0);
    let both = [THROUGH, GATHERED, DEALT, STRANGERS, NEAR].map(|job| [Form::Fast, Form::Mrc].map(|form| (job, form)));
    for (job, form) in both.into_iter().flatten().chain([(SHARED, Form::Mrc), (SPREAD, Form::Mrc)]) {
        let case = job.case(form, 2);
        for (what, queue, at, change) in mutants(&case.queues()) {
            let mut queues = case.queues();
            change(&mut queues[queue].program.commands, at);
            let wrong = explore(&case, &queues).expect_err(&what);
            noticed += 1;
            by_data += u32::from(early(&wrong));
        }
    }
    println!("{noticed} mutants noticed, {by_data} of them by data that leave too early");
    assert!(noticed > 80 && by_data > 10, "{noticed}, {by_data}");
}
