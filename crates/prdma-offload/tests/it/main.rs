//! The crate as used by programs: layouts and topologies compared with oracles, exchanges and
//! collectives over threads and in virtual time, and counts of the costs of calls.

mod by_node;
mod claims;
mod collectives;
mod forged_pointers;
mod in_step;
mod issue;
mod layouts;
mod lent;
mod loans;
mod packing;
mod partitioned;
mod sizes;
mod strided;
mod transient;
mod views;
mod counts {
    //! Counts as an oracle for the costs of calls: charges for software layers, operations that
    //! create a request, reads of local words.

    mod charges;
    mod looks;
    mod rounds;
}
mod topologies {
    //! Topologies: local properties, and collectives over threads and in virtual time, compared
    //! with sequential oracles.

    mod agreement;
    mod edges;
    mod grids;
    mod renumbered;
}

use checks::jobs::{threads, virtual_time};
use prdma_offload::{Edge, Form, Neighbourhood, Topology};
use rdma_fabric::{Fabric, Group, Program};
use std::{fmt::Debug, time::Duration};
use tofu2_virt::{Job, Platform};

/// All forms of an exchange.
const FORMS: [Form; 4] = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu];

/// Ranks of the FX100 in virtual time.
#[track_caller]
fn fx100(ranks: usize) -> Job<'static> {
    virtual_time(&Platform::fx100(), ranks)
}

/// Ranks of the FX100 whose operations take up to `micros` microseconds longer than necessary, and
/// whose simultaneous events occur in any order.
#[track_caller]
fn disturbed(ranks: usize, micros: u64) -> Job<'static> {
    fx100(ranks).jitter(Duration::from_micros(micros)).shuffle_ties(true)
}

/// Returns the results of a program on threads and in virtual time, which must be the same.
#[track_caller]
fn both<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + Debug,
{
    let real = threads(ranks).run(program).expect("threads");
    // Virtual time has no additional `unsafe` code to test.
    if cfg!(miri) {
        return real;
    }
    assert_eq!(real, simulated(ranks, program), "threads and virtual time differ");
    real
}

/// Returns the results of a program in virtual time.
#[track_caller]
fn simulated<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    disturbed(ranks, 30).run(program).expect("virtual time").outs
}

/// All ranks in a ring, with two blocks each way and an empty slot. Collective.
async fn neighbours(fabric: &Fabric) -> prdma_offload::Result<Neighbourhood> {
    let group = Group::world(fabric).await?;
    let (me, n) = (group.me(), group.len());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let edge = |member, label| Some(Edge { member, label });
    let (sources, destinations) = ([edge(left, 1), None, edge(right, 0)], [edge(left, 0), None, edge(right, 1)]);
    Neighbourhood::new(group, Topology::of(sources.into(), destinations.into())).await
}
