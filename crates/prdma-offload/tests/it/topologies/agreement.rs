//! The errors that [`Topology::check`] finds, which all members must receive.

use crate::{both, fx100, simulated};
use checks::jobs::threads;
use prdma_offload::topology::{Cartesian, Side, Topology, TopologyError};
use proptest::prelude::*;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Sources and destinations of each member.
type Lists = Vec<(Vec<usize>, Vec<usize>)>;

/// The destinations of each member, and the matching sources.
fn consistent(destinations: &[&[usize]]) -> Lists {
    let sources = |me: usize| {
        let named = |(member, list): (usize, &&[usize])| list.iter().filter(|to| **to == me).map(|_| member).collect();
        destinations.iter().enumerate().flat_map(|all| -> Vec<usize> { named(all) }).collect()
    };
    destinations.iter().enumerate().map(|(me, to)| (sources(me), to.to_vec())).collect()
}

/// Returns one member's part of the graph.
fn graph(lists: &Lists, me: usize) -> Result<Topology, TopologyError> {
    Topology::graph(lists.len(), me, &lists[me].0, &lists[me].1)
}

/// Twice, because the first check must leave the group unchanged; then in groups that are numbered
/// in reverse order.
async fn checks(fabric: Fabric, lists: Arc<Lists>) -> ProgramResult<Result<(), TopologyError>> {
    let mut world = Group::world(&fabric).await?;
    let me = world.me();
    let answer = graph(&lists, me)?.check(&mut world).await;
    assert_eq!(graph(&lists, me)?.check(&mut world).await, answer);
    let last = world.len() - 1 - me;
    let mut back = world.split(Some(0), last as u64).await?.ok_or("in the group")?;
    assert_eq!(graph(&lists, last)?.check(&mut back).await, answer);
    Ok(answer)
}

async fn grid_checks(fabric: Fabric, grid: Cartesian) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    grid.topology(world.me()).check(&mut world).await?;
    grid.moore(world.me()).check(&mut world).await?;
    Ok(())
}

fn told(lists: &Lists) -> Result<(), TopologyError> {
    let answers = both(lists.len(), &async |fabric| checks(fabric, Arc::new(lists.clone())).await);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{lists:?}: {answers:?}");
    answers[0].clone()
}

fn unmatched(member: usize, side: Side, slot: usize, label: u32, peer: usize) -> Result<(), TopologyError> {
    Err(TopologyError::Unmatched { member, side, slot, label, peer })
}

#[test]
fn consistent_graphs_pass() {
    let star: Vec<usize> = (1..7).collect();
    let graphs: [&[&[usize]]; 8] = [
        &[&[]],
        &[&[0, 0]],
        &[&[1], &[0]],
        &[&[1, 2], &[2, 0], &[0, 1]],
        // Edges in one direction only, an isolated member, repeated edges, self loops.
        &[&[1], &[2], &[], &[]],
        &[&[1, 1, 2, 1], &[1, 0, 1], &[0, 2], &[]],
        &[&star, &[], &[], &[], &[], &[], &[]],
        &[&[], &[0], &[0], &[0], &[0], &[0], &[0]],
    ];
    for destinations in graphs {
        assert_eq!(told(&consistent(destinations)), Ok(()), "{destinations:?}");
    }
}

#[test]
fn grids_pass() {
    for dims in [&[1][..], &[2], &[3], &[5], &[1, 1], &[2, 1], &[2, 2], &[3, 3], &[1, 4]] {
        for periodic in [true, false] {
            let grid = Cartesian::new(dims, &vec![periodic; dims.len()]).expect("a grid");
            both(grid.members(), &async |fabric| grid_checks(fabric, grid.clone()).await);
        }
    }
}

#[test]
fn each_kind_of_inconsistency_is_found() {
    let ring = || consistent(&[&[1], &[2], &[3], &[0]]);
    // A destination that lacks the edge.
    let mut lists = ring();
    lists[3].0.clear();
    assert_eq!(told(&lists), unmatched(2, Side::Destination, 0, 0, 3));
    // A source that lacks the edge.
    let mut lists = ring();
    lists[2].1.clear();
    assert_eq!(told(&lists), unmatched(3, Side::Source, 0, 0, 2));
    // Listed once too often at either end.
    let mut lists = ring();
    lists[1].1.push(2);
    assert_eq!(told(&lists), unmatched(1, Side::Destination, 1, 1, 2));
    let mut lists = ring();
    lists[2].0.push(1);
    assert_eq!(told(&lists), unmatched(2, Side::Source, 1, 1, 1));
    // A self loop at one end only.
    let mut lists = ring();
    lists[3].1.push(3);
    assert_eq!(told(&lists), unmatched(3, Side::Destination, 1, 0, 3));
    // Among several errors, that of the lowest-numbered member, destinations first.
    let mut lists = ring();
    lists[3].1.push(3);
    lists[2].0.insert(0, 0);
    lists[2].1.push(0);
    assert_eq!(told(&lists), unmatched(2, Side::Destination, 1, 0, 0));
}

/// A sequential check: edges as multisets.
fn oracle(lists: &Lists) -> Result<(), TopologyError> {
    let mut count: BTreeMap<(usize, usize), [usize; 2]> = BTreeMap::new();
    for (me, (sources, destinations)) in lists.iter().enumerate() {
        sources.iter().for_each(|from| count.entry((*from, me)).or_default()[0] += 1);
        destinations.iter().for_each(|to| count.entry((me, *to)).or_default()[1] += 1);
    }
    for (me, (sources, destinations)) in lists.iter().enumerate() {
        for (side, list) in [(Side::Destination, destinations), (Side::Source, sources)] {
            for (slot, peer) in list.iter().enumerate() {
                let label = list[..slot].iter().filter(|other| *other == peer).count();
                let known = match side {
                    Side::Destination => count[&(me, *peer)][0],
                    Side::Source => count[&(*peer, me)][1],
                };
                if label >= known {
                    return unmatched(me, side, slot, label as u32, *peer);
                }
            }
        }
    }
    Ok(())
}

fn almost_consistent() -> impl Strategy<Value = Lists> {
    let destinations = (1usize..6).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0..n, 0..5), n));
    let change = (any::<prop::sample::Index>(), any::<bool>(), any::<prop::sample::Index>(), 0u8..4);
    (destinations, change).prop_map(|(destinations, (member, side, slot, kind))| {
        let mut lists = consistent(&destinations.iter().map(|to| &to[..]).collect::<Vec<_>>());
        let n = lists.len();
        let (sources, destinations) = &mut lists[member.index(n)];
        let list = if side { sources } else { destinations };
        match kind {
            0 => list.push(slot.index(n)),
            1 if !list.is_empty() => drop(list.remove(slot.index(list.len()))),
            2 if !list.is_empty() => {
                let at = slot.index(list.len());
                list[at] = (list[at] + 1) % n;
            }
            _ => {}
        }
        lists
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn it_is_what_a_sequential_check_finds(lists in almost_consistent()) {
        let answer = oracle(&lists);
        let told = simulated(lists.len(), &async |fabric| checks(fabric, Arc::new(lists.clone())).await);
        prop_assert!(told.iter().all(|told| *told == answer), "{:?}: {:?} and {:?}", lists, told, answer);
    }
}

/// Member 1 has a topology of another group, then one that is too long to be published.
async fn failing(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let me = world.me();
    let topology = Topology::graph(9, me, &[], if me == 1 { &[0, 8] } else { &[] })?;
    let answer = topology.check(&mut world).await.expect_err("there is no member 8");
    let outside = TopologyError::NoSuchMember { side: Side::Destination, slot: 1, member: 8, members: 3 };
    assert_eq!(answer, if me == 1 { outside } else { TopologyError::Failed { member: 1 } });
    let loops = vec![me; if me == 1 { 1 << 14 } else { 1 }];
    let long = Topology::graph(3, me, &loops, &loops)?;
    let answer = long.check(&mut world).await.expect_err("member 1 has no room");
    match answer {
        TopologyError::Fabric(error) if me == 1 => {
            assert!(matches!(error, FabricError::OutOfMemory(_)), "{error}");
        }
        other => assert_eq!(other, TopologyError::Failed { member: 1 }),
    }
    Topology::graph(3, me, &[me], &[me])?.check(&mut world).await?;
    Ok(())
}

#[test]
fn a_failing_member_leaves_no_other_waiting() {
    threads(3).segment_bytes(1 << 18).run(&failing).expect("nobody waits");
}

/// Member 2 never calls.
async fn deserted(fabric: Fabric) -> ProgramResult<TopologyError> {
    let mut world = Group::world(&fabric).await?;
    if fabric.rank() == Rank::new(2) {
        return Err("gone".into());
    }
    let error = Topology::graph(3, world.me(), &[], &[])?.check(&mut world).await.expect_err("one is missing");
    // A member that ends frees its part of the group's memory.
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(error)
}

#[test]
fn the_loss_of_a_member_ends_it() {
    let (run, failure) = fx100(3).run_through(&deserted).expect("a run");
    assert!(failure.is_some());
    let lost = TopologyError::from(FabricError::PeerLost { rank: Rank::new(2) });
    assert_eq!(run.outs, [Some(lost.clone()), Some(lost), None]);
}
