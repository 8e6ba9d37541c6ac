//! New groups: renumbered for nodes, and parts of grids.

use crate::fx100;
use checks::jobs::threads;
use prdma_offload::topology::{Cartesian, Topology, TopologyError};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{sync::Arc, time::Duration};

/// The number of destinations on other nodes; the new number.
type Outcome = (usize, usize);

async fn look(mut group: Group, topology: &Topology) -> ProgramResult<Outcome> {
    topology.check(&mut group).await?;
    let fabric = group.fabric();
    let mine = fabric.node(fabric.rank())?;
    let mut away = 0;
    for edge in topology.destinations().iter().flatten() {
        away += usize::from(fabric.node(group.rank(edge.member)?)? != mine);
    }
    Ok((away, group.me()))
}

async fn grid(fabric: Fabric, grid: Cartesian) -> ProgramResult<Outcome> {
    let mut world = Group::world(&fabric).await?;
    let (group, topology) = grid.reordered(&mut world).await?;
    assert_eq!(topology, grid.topology(group.me()));
    look(group, &topology).await
}

/// Each member exchanges with those of the same remainder, with weights that distinguish them from
/// all others.
async fn classes(fabric: Fabric, classes: usize, weighted: bool) -> ProgramResult<Outcome> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    let same = |other: usize| other % classes == me % classes;
    let others: Vec<usize> = (0..n).filter(|other| *other != me && (weighted || same(*other))).collect();
    let mut topology = Topology::graph(n, me, &others, &others)?;
    if weighted {
        let weights: Vec<u32> = others.iter().map(|other| if same(*other) { 9 } else { 1 }).collect();
        topology = topology.with_weights(&weights, &weights)?;
    }
    let (group, topology) = topology.reordered(&mut world).await?;
    let mut all = topology.destinations().iter().flatten();
    let mine = group.me() % classes;
    assert!(all.all(|edge| weighted || edge.member % classes == mine), "the topology of the new number");
    assert_eq!(topology.source_weights().is_some(), weighted);
    look(group, &topology).await
}

fn on_nodes<P: rdma_fabric::Program<Out = Outcome>>(ranks: usize, per_node: usize, program: &P) -> (usize, Vec<usize>) {
    let real = threads(ranks).ranks_per_node(per_node).run(program).expect("threads");
    // Operations take up to 100 µs longer than necessary, so that no test passes by lucky timing.
    for seed in 0..10 {
        let job = fx100(ranks).ranks_per_node(per_node as u32);
        let job = job.seed(seed).jitter(Duration::from_micros(100)).shuffle_ties(true);
        assert_eq!(job.run(program).expect("virtual time").outs, real, "seed {seed}");
    }
    (real.iter().map(|(away, _)| away).sum(), real.iter().map(|(_, number)| *number).collect())
}

#[test]
fn nodes_take_blocks_of_a_grid() {
    let torus = |dims: &[usize]| {
        let torus = Cartesian::new(dims, &vec![true; dims.len()]).expect("a grid");
        async move |fabric| grid(fabric, torus.clone()).await
    };
    // Rows of 4 had 2 neighbours on other nodes for each member, squares of 2 by 2 as many:
    // unchanged.
    assert_eq!(on_nodes(16, 4, &torus(&[4, 4])), (32, (0..16).collect()));
    // Without the ring the rows have 12 pairs on different nodes, squares 8.
    let open = async move |fabric| grid(fabric, Cartesian::new(&[4, 4], &[false; 2]).expect("a grid")).await;
    let (away, numbers) = on_nodes(16, 4, &open);
    assert_eq!((away, &numbers[..8]), (16, &[0, 1, 4, 5, 2, 3, 6, 7][..]));
    // Columns: half of a row each.
    assert_eq!(on_nodes(8, 2, &torus(&[2, 4])).0, 16);
    // No block of 3 divides it: unchanged.
    assert_eq!(on_nodes(6, 4, &torus(&[2, 3])).1, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn heavy_neighbours_share_a_node() {
    for weighted in [false, true] {
        let (away, numbers) = on_nodes(6, 3, &async |fabric| classes(fabric, 2, weighted).await);
        assert_eq!(numbers, [0, 2, 4, 1, 3, 5]);
        assert_eq!(away, if weighted { 18 } else { 0 });
    }
    // Already optimal.
    assert_eq!(on_nodes(4, 2, &async |fabric| classes(fabric, 1, false).await).1, [0, 1, 2, 3]);
}

async fn parts(fabric: Fabric, grid: Arc<Cartesian>) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let at = grid.coordinates(world.me())?;
    let (mut rows, row) = grid.sub(&mut world, &[false, true, true]).await?;
    assert_eq!((row.dims(), row.periodic()), (&[3, 2][..], &[false, true][..]));
    assert_eq!(row.coordinates(rows.me())?, at[1..]);
    let members = rows.allgather(fabric.rank()).await?;
    let same = members.iter().map(|rank| grid.coordinates(rank.index()).map(|other| other[0] == at[0]));
    assert!(same.collect::<Result<Vec<_>, _>>()?.iter().all(|same| *same));
    row.topology(rows.me()).check(&mut rows).await?;
    let (alone, point) = grid.sub(&mut world, &[false; 3]).await?;
    assert_eq!((alone.len(), point.members()), (1, 1));
    let few = grid.sub(&mut world, &[true]).await.expect_err("two are missing");
    assert_eq!(few, TopologyError::Dimensions { given: 1, dims: 3 });
    let other = Cartesian::new(&[2], &[true])?.sub(&mut rows, &[true]).await.expect_err("too small");
    assert_eq!(other, TopologyError::WrongMembers { wanted: Some(2), members: 6 });
    Ok(())
}

#[test]
fn parts_of_a_grid_are_grids() {
    let grid = Arc::new(Cartesian::new(&[2, 3, 2], &[true, false, true]).expect("a grid"));
    threads(12).run(&async |fabric| parts(fabric, grid.clone()).await).expect("threads");
    fx100(12).run(&async |fabric| parts(fabric, grid.clone()).await).expect("virtual time");
}
