//! Exchanges in random orders whose partitions are marked by tasks, and sums; 2 and 4 members.

use super::first_seed;
use explore::{
    Explorer, Sample,
    mutant::{Mutant, mutated},
};
use prdma_offload::{Buffer, Collectives, Form, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, join};
use std::{cell::Cell, rc::Rc};

/// The number of orders without an error, and the number after which a mutant counts as missed.
const SOME: u64 = 20;
const MOST: u64 = 400;
const STEPS: u64 = 3;
/// Elements of a block, and partitions.
const BLOCK: usize = 4;
const PARTITIONS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Blocks,
    Partitions,
    Sum,
}

const ALL: [What; 3] = [What::Blocks, What::Partitions, What::Sum];

/// While steps are made, data are not flushed before their arrival is reported.
#[derive(Debug)]
struct NotFlushed(Rc<Cell<bool>>);

impl Mutant for NotFlushed {
    fn flushes(&self, _: Option<Rank>) -> bool {
        !self.0.get()
    }
}

async fn exchanges(fabric: Fabric, what: What, flushes: bool) -> ProgramResult<()> {
    let stepping = Rc::new(Cell::new(false));
    if flushes {
        return run(&fabric, what, &stepping).await;
    }
    run(&mutated(fabric, NotFlushed(stepping.clone())), what, &stepping).await
}

async fn run(fabric: &Fabric, what: What, stepping: &Cell<bool>) -> ProgramResult<()> {
    match what {
        What::Sum => sum(fabric, stepping).await,
        _ => ring(fabric, what, stepping).await,
    }
}

/// An exchange with both neighbours.
async fn ring(fabric: &Fabric, what: What, stepping: &Cell<bool>) -> ProgramResult<()> {
    let group = Group::world(fabric).await?;
    let (me, n) = (group.me(), group.len());
    let around = [(me + n - 1) % n, (me + 1) % n];
    // The first block goes to the left, and arrives there from the right; with two members, these
    // are the same.
    let sources = if n == 2 { around } else { [around[1], around[0]] };
    let mut hood = Neighbourhood::new(group, Topology::graph(n, me, &sources, &around)?).await?;
    let (send, receive) = (Buffer::<u64>::new(fabric, 2 * BLOCK)?, Buffer::<u64>::new(fabric, 2 * BLOCK)?);
    let blocks = [Layout::contiguous::<u64>(0, BLOCK)?, Layout::contiguous::<u64>(BLOCK, BLOCK)?];
    let options = Options::form(Form::Cpu);
    let sent = |k: u64, member: usize, slot: usize| {
        (0..BLOCK as u64).map(move |at| k << 24 | (member as u64) << 16 | (slot as u64) << 8 | at)
    };
    let all = |k: u64, members: [usize; 2]| (0..2).flat_map(|slot| sent(k, members[slot], slot)).collect::<Vec<u64>>();
    let part = BLOCK / PARTITIONS;
    let mut whole = hood.alltoallw_init(&send, &blocks, &receive, &blocks, &options).await?;
    let mut parts = hood.partitioned_init(&send, &blocks, &receive, &blocks, PARTITIONS, &options).await?;
    stepping.set(true);
    for k in 1..=STEPS {
        let data = all(k, [me; 2]);
        if what == What::Blocks {
            send.write(0, &data)?;
            whole.start().await?;
            whole.wait().await?;
        } else {
            parts.start().await?;
            let marked = (0..2 * PARTITIONS).rev().map(|at| {
                let (parts, send, data) = (&parts, &send, &data);
                async move {
                    send.write(at * part, &data[at * part..(at + 1) * part])?;
                    parts.ready(at / PARTITIONS, at % PARTITIONS).await
                }
            });
            join::join_all(marked).await.into_iter().collect::<Result<(), _>>()?;
            parts.wait().await?;
        }
        assert_eq!(receive.to_vec()?, all(k, sources), "{what:?} of {me} in {k}");
    }
    stepping.set(false);
    Ok(hood.group_mut().barrier().await?)
}

async fn sum(fabric: &Fabric, stepping: &Cell<bool>) -> ProgramResult<()> {
    let mut all = Collectives::new(Group::world(fabric).await?).await?;
    let (me, n) = (all.group().me() as u64, all.group().len() as u64);
    let (send, receive) = (Buffer::<u64>::new(fabric, 2)?, Buffer::<u64>::new(fabric, 2)?);
    let options = Options::form(Form::Cpu);
    let mut request = all.allreduce_init(&send, &receive, 2, u64::wrapping_add, &options).await?;
    stepping.set(true);
    for k in 1..=STEPS {
        send.write(0, &[k * (me + 1), k])?;
        request.start().await?;
        request.wait().await?;
        assert_eq!(receive.to_vec()?, [k * n * (n + 1) / 2, k * n], "the sum at {me} in {k}");
    }
    stepping.set(false);
    Ok(all.group_mut().barrier().await?)
}

fn sample(ranks: usize, runs: u64, what: What, flushes: bool) -> Sample {
    let run = move |fabric| exchanges(fabric, what, flushes);
    Explorer::new(ranks).leave_together().sample(first_seed(), runs, run)
}

#[test]
fn partitions_of_tasks_and_sums() {
    for (what, ranks) in ALL.into_iter().flat_map(|what| [2, 4].map(|ranks| (what, ranks))) {
        let sample = sample(ranks, SOME, what, true);
        assert!(sample.failure.is_none(), "{what:?}, {ranks} ranks: {sample}");
        println!("{what:?}, {ranks} ranks: {sample}");
    }
}

#[test]
fn early_reports_are_found() {
    for (what, ranks) in ALL.into_iter().flat_map(|what| [2, 4].map(|ranks| (what, ranks))) {
        let sample = sample(ranks, MOST, what, false);
        let found = sample.failure.unwrap_or_else(|| panic!("{what:?}, {ranks} ranks: nothing in {}", sample.runs));
        println!("{what:?}, {ranks} ranks: after {} runs {}", sample.runs, found.what);
    }
}
