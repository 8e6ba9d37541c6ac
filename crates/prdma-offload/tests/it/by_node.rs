//! Exchanges by node on machines whose nodes have several ranks. `tests/it/persistent` compares
//! them with an oracle for layouts; this file counts the messages that leave a node.

use crate::{FORMS, disturbed, fx100};
use checks::jobs::{threads, virtual_time};
use prdma_offload::{Aggregation, Buffer, Form, Neighbourhood, Options, Request, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, Time, control_queue::Command};
use std::time::Duration;
use tofu2_virt::Platform;

/// The members that each member sends to.
type Graph = Vec<Vec<usize>>;

fn everybody(members: usize) -> Graph {
    (0..members).map(|me| (0..members).filter(|other| *other != me).collect()).collect()
}

fn sources(graph: &Graph, me: usize) -> Vec<usize> {
    let named = |from: usize| graph[from].iter().filter(|to| **to == me).map(move |_| from);
    (0..graph.len()).flat_map(named).collect()
}

/// An exchange of `len` words along each edge.
struct Exchange {
    graph: Graph,
    me: usize,
    len: usize,
    send: Buffer<u32>,
    receive: Buffer<u32>,
    request: Request,
    k: u32,
}

fn value(from: usize, to: usize, k: u32, at: usize) -> u32 {
    k << 20 | (from as u32) << 14 | (to as u32) << 8 | at as u32
}

impl Exchange {
    async fn new(
        fabric: &Fabric,
        graph: &Graph,
        len: usize,
        options: &Options,
    ) -> ProgramResult<(Self, Neighbourhood)> {
        let world = Group::world(fabric).await?;
        let me = world.me();
        let topology = Topology::graph(graph.len(), me, &sources(graph, me), &graph[me])?;
        let mut hood = Neighbourhood::new(world, topology).await?;
        let send = Buffer::<u32>::new(fabric, len * graph[me].len())?;
        let receive = Buffer::<u32>::new(fabric, len * sources(graph, me).len())?;
        let request = hood.alltoall_init(&send, &receive, len, options).await?;
        Ok((Exchange { graph: graph.clone(), me, len, send, receive, request, k: 0 }, hood))
    }

    async fn start(&mut self) -> ProgramResult<()> {
        self.k += 1;
        for (slot, to) in self.graph[self.me].iter().enumerate() {
            let block: Vec<u32> = (0..self.len).map(|at| value(self.me, *to, self.k, at)).collect();
            self.send.write(slot * self.len, &block)?;
        }
        Ok(self.request.start().await?)
    }

    async fn wait(&mut self) -> ProgramResult<()> {
        self.request.wait().await?;
        let got = self.receive.to_vec()?;
        for (slot, from) in sources(&self.graph, self.me).into_iter().enumerate() {
            for at in 0..self.len {
                let want = value(from, self.me, self.k, at);
                assert_eq!(got[slot * self.len + at], want, "iteration {} of {}, from {from}", self.k, self.me);
            }
        }
        Ok(())
    }
}

fn by_node(form: Form) -> Options {
    Options { aggregation: Aggregation::by_node(), ..Options::form(form) }
}

/// Some members are delayed, different ones each time.
async fn exchanges(
    fabric: Fabric,
    graph: Graph,
    len: usize,
    options: Options,
    times: u64,
) -> ProgramResult<(Form, Aggregation)> {
    let (mut exchange, mut hood) = Exchange::new(&fabric, &graph, len, &options).await?;
    for k in 0..times {
        for place in 0..2 {
            if (k * 7 + place * 3) % 5 == exchange.me as u64 % 5 {
                fabric.compute(Duration::from_micros(30)).await;
            }
            if place == 0 { exchange.start().await? } else { exchange.wait().await? }
        }
    }
    hood.group_mut().barrier().await?;
    Ok((exchange.request.form(), exchange.request.aggregation()))
}

#[test]
fn blocks_arrive_by_node_as_they_do_by_themselves() {
    let lopsided = vec![vec![2, 3, 4, 2], vec![2, 5], vec![0, 1], vec![], vec![0, 1, 1], vec![0, 3]];
    for (graph, on_node) in [(everybody(4), 2), (everybody(6), 3), (everybody(7), 3), (lopsided, 2)] {
        for form in FORMS {
            for len in [1, 5] {
                let graph = &graph;
                let program =
                    |times| async move |fabric| exchanges(fabric, graph.clone(), len, by_node(form), times).await;
                let members = graph.len();
                let job = fx100(members).ranks_per_node(on_node);
                for (_, aggregation) in job.run(&program(30)).unwrap().outs {
                    assert_eq!(aggregation, Aggregation::by_node(), "{form}");
                }
                disturbed(members, 20).ranks_per_node(on_node).run(&program(100)).unwrap();
                threads(members).ranks_per_node(on_node as usize).run(&program(10)).unwrap();
            }
        }
    }
}

/// Transfers of data between nodes in three all-to-all iterations of words.
fn cross_node_edges(platform: &Platform, aggregation: Aggregation) -> u64 {
    let (members, on_node, times) = (8, 4, 3);
    let options = Options { aggregation, ..Options::form(Form::Mrc) };
    let program = async move |fabric| exchanges(fabric, everybody(members), 5, options, times).await;
    let job = virtual_time(platform, members).ranks_per_node(on_node).timeline(100_000, Time::from_picos(0));
    let timeline = job.run(&program).unwrap().timeline.expect("one was asked for");
    let crosses = |from: Rank, to: Rank| from.number() / on_node != to.number() / on_node;
    let slots = timeline.commands().into_iter().filter_map(|seen| {
        let command = seen.posting.command;
        let data = matches!(command, Command::Put { .. }) && crosses(seen.queue.rank(), command.target()?.rank());
        data.then(|| command.slots())
    });
    slots.sum()
}

#[test]
fn two_nodes_exchange_one_message_each_way() {
    let fx100 = Platform::fx100();
    assert_eq!(cross_node_edges(&fx100, Aggregation::None), 3 * 2 * 16);
    assert_eq!(cross_node_edges(&fx100, Aggregation::by_node()), 3 * 2);
    // Blocks that are too long are sent separately.
    assert_eq!(cross_node_edges(&fx100, Aggregation::ByNode { longest: 19, gap: 0 }), 3 * 2 * 16);
}

#[test]
fn a_message_that_is_too_long_for_the_network_goes_in_pieces() {
    // 16 blocks of 20 bytes.
    let small = Platform::fx100().with("max_transfer", 64).expect("it has that constant");
    assert_eq!(cross_node_edges(&small, Aggregation::by_node()), 3 * 2 * 5);
}
