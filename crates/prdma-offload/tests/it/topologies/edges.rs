//! Graphs whose edges any member may give.

use crate::{both, simulated};
use prdma_offload::topology::{Topology, TopologyError};
use proptest::prelude::*;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::sync::Arc;

/// The edges that each member contributes.
type Given = Vec<Vec<(usize, Vec<usize>)>>;

/// In the world, and in a group that is numbered in reverse order; checked.
async fn gathers(fabric: Fabric, given: Arc<Given>) -> ProgramResult<Topology> {
    let mut world = Group::world(&fabric).await?;
    let me = world.me();
    let topology = Topology::from_edges(&mut world, &given[me]).await?;
    topology.check(&mut world).await?;
    let last = world.len() - 1 - me;
    let mut back = world.split(Some(0), last as u64).await?.ok_or("in the group")?;
    let other = Topology::from_edges(&mut back, &given[last]).await?;
    // The numbers and the given edges are the same there, so this member's result is that of its
    // counterpart here.
    let sizes = world.allgather([topology.sources().len() as u64, topology.destinations().len() as u64]).await?;
    assert_eq!(sizes[last], [other.sources().len() as u64, other.destinations().len() as u64]);
    Ok(topology)
}

/// The expected topologies, with all edges in the order of their contributors.
fn oracle(given: &Given) -> Vec<Topology> {
    let members = given.len();
    let edges = || given.iter().flatten().flat_map(|(from, to)| to.iter().map(|to| (*from, *to)));
    let of = |me: usize| {
        let sources: Vec<usize> = edges().filter(|(_, to)| *to == me).map(|(from, _)| from).collect();
        let destinations: Vec<usize> = edges().filter(|(from, _)| *from == me).map(|(_, to)| to).collect();
        Topology::graph(members, me, &sources, &destinations).expect("inside")
    };
    (0..members).map(of).collect()
}

#[test]
fn one_gives_all_or_each_its_own() {
    // A ring contributed by member 2; a star of which each member contributes a part; repeated
    // edges between other members; nothing.
    let ring = vec![vec![], vec![], vec![(0, vec![1, 2]), (1, vec![2, 0]), (2, vec![0, 1])]];
    let star = (0..5).map(|me| vec![(me, vec![0, 0]), (0, vec![me])]).collect();
    let again =
        vec![vec![(1, vec![1, 1]), (1, vec![])], vec![(1, vec![1, 0])], vec![(1, vec![0]), (3, vec![3])], vec![]];
    for given in [ring, star, again, vec![vec![]], vec![vec![], vec![]]] {
        assert_eq!(
            both(given.len(), &async |fabric| gathers(fabric, Arc::new(given.clone())).await),
            oracle(&given),
            "{given:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn distributed_edges_give_the_graph_of_all_edges(
        given in (1usize..7).prop_flat_map(|n| {
            let edges = (0..n, prop::collection::vec(0..n, 0..4));
            prop::collection::vec(prop::collection::vec(edges, 0..4), n)
        })
    ) {
        let made = simulated(given.len(), &async |fabric| gathers(fabric, Arc::new(given.clone())).await);
        prop_assert_eq!(made, oracle(&given));
    }
}

async fn outside(fabric: Fabric) -> ProgramResult<TopologyError> {
    let mut world = Group::world(&fabric).await?;
    let mine = match world.me() {
        1 => vec![(0, vec![1, 7])],
        2 => vec![(9, vec![])],
        _ => vec![(0, vec![1])],
    };
    let error = Topology::from_edges(&mut world, &mine).await.expect_err("7 is no member");
    let topology = Topology::from_edges(&mut world, &[(0, vec![1])]).await?;
    assert_eq!(topology.destinations().len(), if fabric.rank().index() == 0 { 4 } else { 0 });
    Ok(error)
}

#[test]
fn an_end_outside_the_group_is_reported_to_all() {
    let told = both(4, &outside);
    assert_eq!(told, vec![TopologyError::NoSuchEnd { contributor: 1, named: 7, members: 4 }; 4]);
}
