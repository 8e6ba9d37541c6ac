//! Networks of crossbars: the cost of a hop, and the contention between messages.

use crate::{
    router::nothing_is_lost,
    start::{NETWORKS, at, fx100, meet},
};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use tofu2_virt::{Arbiter, Crossbar, NetworkModel};

/// Each sender puts `bytes` bytes to its target. Returns, in picoseconds, the time until each rank
/// knows that they have arrived.
async fn send(fabric: Fabric, flows: &[(usize, usize)], bytes: usize) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64 + bytes).await?;
    let me = fabric.rank().index();
    let start = fabric.now();
    if let Some(&(_, to)) = flows.iter().find(|(from, _)| *from == me) {
        fabric.put(&fabric.remote_span::<u8>(at(to, home.key(), 64), bytes)?, vec![1u8; bytes]).await?;
        fabric.flush(Rank::new(to as u32)).await?;
    }
    let took = fabric.now().picos_since(start);
    meet(&fabric, &home, 16).await?;
    Ok(took)
}

/// Returns the time of the slowest of these flows in 8 by 2 nodes.
fn slowest(network: NetworkModel, flows: &[(usize, usize)], bytes: usize) -> u64 {
    let job = fx100(16).crossbar(Crossbar::new(8, 2).unwrap()).network(network);
    job.run(&async |fabric| send(fabric, flows, bytes).await).unwrap().outs.into_iter().max().unwrap()
}

#[test]
fn one_crossbar_is_a_hop() {
    for network in NETWORKS {
        // A flushed put to a neighbour of a torus, and 100 ns more each way for the second hop.
        for (to, took) in [(1, 1_420_000), (7, 1_420_000), (8, 1_420_000), (9, 1_620_000), (15, 1_620_000)] {
            assert_eq!(slowest(network, &[(0, to)], 8), took, "to {to}, {network:?}");
        }
    }
    let job = fx100(16).crossbar(Crossbar::new(8, 2).unwrap());
    let hops = |a, b| job.hops(Rank::new(a), Rank::new(b));
    assert_eq!((hops(3, 3), hops(3, 4), hops(3, 11), hops(3, 12)), (Ok(0), Ok(1), Ok(1), Ok(2)));
    assert!(hops(3, 16).is_err() && job.placement().is_err());
}

#[test]
fn crossbars_do_not_block_and_their_ports_do() {
    let bytes = 192_000;
    let time = |flows: &[(usize, usize)]| slowest(NetworkModel::Router, flows, bytes);
    let alone = time(&[(0, 1)]);
    assert_eq!(alone, slowest(NetworkModel::Latency, &[(0, 1)], bytes), "one flow is not slowed");
    let in_circles: Vec<_> = (0..16).map(|node| (node, node / 8 * 8 + (node + 3) % 8)).collect();
    assert_eq!(time(&in_circles), alone, "all nodes of all rows at once");
    // From row 0 to row 1. Through one node of row 0, two flows share its link from the x-crossbar.
    let across = time(&[(0, 15)]);
    assert_eq!(time(&[(0, 15), (1, 14)]), across, "through different columns");
    let shared = time(&[(0, 15), (1, 7)]);
    // Of the link's 80 fs per byte, packets leave 93 %.
    let both = 2 * bytes as u64 * 86;
    assert!(shared > both && shared < both + both / 20 + across / 10, "{shared}, {across} alone");
    assert!(slowest(NetworkModel::Latency, &[(0, 15), (1, 7)], bytes) <= across, "latencies alone see no port");
    // Two flows to one node share its receive engine.
    let met = time(&[(0, 3), (1, 3)]);
    assert!(met > 2 * bytes as u64 * 100, "{met}");
}

#[test]
fn nothing_is_lost_in_crossbars_with_one_credit() {
    for (seed, (x, y)) in [(2, 1), (8, 1), (1, 5), (8, 2), (4, 4), (16, 15)].into_iter().enumerate() {
        for arbiter in [Arbiter::RoundRobin, Arbiter::OldestFirst] {
            let crossbar = Crossbar::new(x, y).unwrap();
            let job = fx100(2 * crossbar.nodes() as usize).ranks_per_node(2).crossbar(crossbar);
            let job = job.network(NetworkModel::Router).credits(1).arbiter(arbiter).receive_tnis(2);
            let each = if x > 8 { 10 } else { 60 };
            nothing_is_lost(&job, seed as u64 + 1, each, &crossbar.to_string());
        }
    }
}

#[test]
fn a_job_may_leave_nodes_free_but_not_lack_any() {
    let job = |ranks| fx100(ranks).crossbar(Crossbar::new(8, 2).unwrap());
    for ranks in [1, 9, 16] {
        assert!(job(ranks).run(&async |fabric| send(fabric, &[], 8).await).is_ok(), "{ranks}");
    }
    let error = job(17).run(&async |fabric| send(fabric, &[], 8).await).unwrap_err();
    assert!(error.to_string().contains("8x2 crossbar has 16 nodes, the job needs 17"), "{error}");
}
