//! The times of commands: the calibrated sums, shared engines, packets, and progress while the
//! ranks compute.

use super::script::{AT, BYTES};
use crate::start::{NETWORKS, at, fx100, opened};
use fabric_offload::{
    ControlQueue,
    control_queue::{Blocks, Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank};
use std::time::Duration;
use tofu2_virt::{NetworkModel, Platform, Torus};

/// Returns the id of rank 1's queue, which is the node's second if both ranks share a node.
fn to(nodes: u32) -> QueueId {
    QueueId::new(Rank::new(1), 0, u8::from(nodes == 1), 0)
}

/// Rank 0 posts `posting` to rank 1. Returns the time of each report, in picoseconds: completion,
/// local notice, remote notice.
async fn measure(fabric: Fabric, posting: Posting) -> ProgramResult<[u64; 3]> {
    let (_region, queue) = opened(&fabric, BYTES, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    fabric.sleep(Duration::from_micros(1)).await;
    let start = fabric.now();
    let mut times = [0; 3];
    if fabric.rank().number() == 0 {
        queue.post(posting, Deps::All).await?;
        if posting.tcq_notice {
            queue.next_completion(Deps::All).await?.status?;
            times[0] = fabric.now().picos_since(start);
        }
        if posting.local_notice {
            queue.next_notice(Deps::All).await?.status?;
            times[1] = fabric.now().picos_since(start);
        }
    } else if posting.remote_notice {
        queue.next_notice(Deps::All).await?;
        times[2] = fabric.now().picos_since(start);
    }
    fabric.sleep(Duration::from_millis(5)).await;
    Ok(times)
}

fn times(network: NetworkModel, nodes: u32, posting: Posting) -> [u64; 3] {
    let job = fx100(2).ranks_per_node(if nodes == 1 { 2 } else { 1 }).torus(Torus::line(nodes)).network(network);
    let outs = job.run(&async |fabric| measure(fabric, posting).await).unwrap().outs;
    [outs[0][0], outs[0][1], outs[1][2]]
}

fn all(command: Command) -> Posting {
    Posting::new(command).tcq(0).local(0).remote(0)
}

/// Commands take as long as fabric operations on an idle machine (`latency.rs`): put, get and
/// fetch-add, inside a node and to a neighbour. Two ranks of a node share the first TNI here, which
/// is otherwise unused.
#[test]
fn latencies_are_those_of_fabric_operations() {
    let put = |nodes| all(Command::PutInline { to: to(nodes), bytes: Inline::word(1), at: AT });
    let add = |nodes| all(Command::Atomic { to: to(nodes), at: AT, width: Width::Eight, amo: Amo::Add(1) });
    for network in NETWORKS {
        assert_eq!(times(network, 1, put(1)), [300_000, 900_000, 450_000], "{network:?}");
        assert_eq!(times(network, 2, put(2)), [300_000, 1_420_000, 710_000], "{network:?}");
        assert_eq!(times(network, 1, add(1))[1], 1_169_500, "{network:?}");
        assert_eq!(times(network, 2, add(2))[1], 1_689_500, "{network:?}");
        assert_eq!(times(network, 2, all(Command::get(to(2), AT, AT, 8)))[1], 1_420_000, "{network:?}");
    }
    // 1000 bytes take (1000 - 8) times 100 ps more, there or back.
    let long = all(Command::put(to(2), AT, AT, 1000));
    assert_eq!(times(NetworkModel::Latency, 2, long), [399_200, 1_519_200, 809_200]);
    assert_eq!(times(NetworkModel::Latency, 2, all(Command::get(to(2), AT, AT, 1000)))[1], 1_519_200);
}

/// Smaller packets cost their overhead, and gaps cost idle time; the bytes are the same.
#[test]
fn mtu_and_gap_are_timing() {
    let arrival = |network, mtu, gap| {
        let mut put = all(Command::put(to(2), AT, AT, 19_200));
        (put.mtu, put.gap) = (mtu, gap);
        times(network, 2, put)[2]
    };
    for network in NETWORKS {
        let usual = arrival(network, 0, 0);
        assert_eq!(arrival(network, 1920, 0), usual);
        // 100 packets instead of 10, each with 144 bytes of overhead at 80 ps; 9 gaps of 3 units.
        let small = arrival(network, 192, 0) - usual;
        assert!(small.abs_diff(90 * 144 * 80) <= 200_000, "{network:?}: {small}");
        let gaps = arrival(network, 0, 3) - usual;
        assert!(gaps.abs_diff(9 * 3 * 10_000) <= 20_000, "{network:?}: {gaps}");
    }
}

/// Rank 0 puts `bytes` to rank 1 `each` times over one queue per engine. Returns the time at which
/// the last notice arrived.
async fn streams(fabric: Fabric, engines: u8, each: u32, bytes: u32) -> ProgramResult<u64> {
    let region = fabric.alloc_symmetric(BYTES).await?;
    let mut queues = vec![];
    for engine in 0..engines {
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Exclusive).on(engine))?;
        queue.register_fixed(&region, 0)?;
        queues.push(queue);
    }
    fabric.sleep(Duration::from_micros(1)).await;
    let start = fabric.now();
    if fabric.rank().number() == 0 {
        let blocks = Blocks { count: each, stride: 0 };
        for queue in &queues {
            let to = QueueId::new(Rank::new(1), queue.id().engine(), 0, 0);
            let put = Command::Put { to, from: AT, at: AT, len: bytes, blocks };
            queue.post(Posting::new(put).remote(0), Deps::All).await?;
        }
    } else {
        for queue in &queues {
            for _ in 0..each {
                queue.next_notice(Deps::All).await?;
            }
        }
    }
    let end = fabric.now().picos_since(start);
    fabric.sleep(Duration::from_millis(50)).await;
    Ok(end)
}

#[test]
fn engines_work_at_the_same_time_and_one_engine_in_turn() {
    let time = |engines| fx100(2).run(&async |fabric| streams(fabric, engines, 10, 100_000).await).unwrap().outs[1];
    let (one, four) = (time(1), time(4));
    // A megabyte at 10 GB/s. Four at the same time take longer by the CPU's three additional posts.
    assert!((100_000_000..101_000_000).contains(&one), "{one}");
    assert!(four - one <= 450_000, "{one} and {four}");
    // A link carries the four streams between two neighbours one after another.
    let routed = fx100(2).torus(Torus::line(2)).network(NetworkModel::Router);
    let four = routed.run(&async |fabric| streams(fabric, 4, 10, 100_000).await).unwrap().outs[1];
    assert!(four > 3 * one, "{four}: more than the link's rate");
}

/// Both ranks compute for a millisecond, while rank 0's session queue answers rank 1's with data,
/// repeatedly. Returns the picoseconds of computing, and the queue's progress by then: the arrival
/// time of each piece can't be observed without polling.
async fn overlap(fabric: Fabric, rounds: u64) -> ProgramResult<[u64; 2]> {
    let me = fabric.rank().number();
    let region = fabric.alloc_symmetric(BYTES).await?;
    let session = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).on(0))?;
    let normal = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).on(1))?;
    session.register_fixed(&region, 0)?;
    normal.register_fixed(&region, 0)?;
    let peer = QueueId::new(Rank::new(1 - me), 0, 0, 0);
    for round in 0..rounds {
        let piece = AT + 8192 * round;
        session.post(Posting::new(Command::put(peer, piece, piece, 8192)).sps(1), Deps::All).await?;
    }
    fabric.sleep(Duration::from_micros(50)).await;
    let start = fabric.now();
    if me == 1 {
        // Rank 1's put starts the exchange; from here on no rank makes any call.
        normal.post(Posting::new(Command::put(peer, AT, AT, 0)).sps(1), Deps::All).await?;
    }
    fabric.compute(Duration::from_millis(1)).await;
    let (computed, pointers) = (fabric.now().picos_since(start), session.pointers());
    fabric.sleep(Duration::from_millis(1)).await;
    Ok([computed, pointers.read])
}

/// Released transfers run in the network while both sides compute.
#[test]
fn session_released_transfers_happen_during_compute() {
    for network in NETWORKS {
        let rounds = 40;
        let run = fx100(2).network(network).run(&async |fabric| overlap(fabric, rounds).await).unwrap();
        for (rank, [computed, released]) in run.outs.iter().enumerate() {
            assert_eq!(*released, rounds, "rank {rank} over {network:?}: all released before the end of compute");
            assert!(*computed >= 1_000_000_000);
        }
        assert_eq!(run.stats.commands.visible, 2 * rounds + 1);
        // A task that computes is polled only when that ends; the other polls are for opening,
        // sleeping and leaving.
        assert!(run.stats.polls < 40, "{}", run.stats.polls);
    }
}

/// Measures the time of a chain of forwards from the first put to the last notice.
async fn chain(fabric: Fabric) -> ProgramResult<u64> {
    let me = fabric.rank().index();
    let last = fabric.ranks() - 1;
    let (region, queue) =
        opened(&fabric, 64, QueueSpec::new(QueueMode::Session).on(0).ahead(u32::from(me == 0))).await?;
    fabric.store(&fabric.local_word::<u64>(at(me, region.key(), 0))?, if me == 0 { 9 } else { 0 })?;
    fabric.sleep(Duration::from_micros(1)).await;
    let start = fabric.now();
    if me < last {
        let to = QueueId::new(Rank::new(me as u32 + 1), 0, 0, 0);
        let put = Posting::new(Command::put(to, AT, AT, 8));
        queue.post(if me + 1 == last { put.remote(0) } else { put.sps(1) }, Deps::All).await?;
    } else {
        queue.next_notice(Deps::All).await?;
        assert_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, 9);
    }
    let end = fabric.now().picos_since(start);
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(end)
}

/// Each further rank of the chain costs a put's latency without posting, since no CPU is involved.
#[test]
fn a_forward_costs_a_leg_without_the_cpu() {
    let time =
        |ranks: u32| fx100(ranks as usize).torus(Torus::line(ranks)).run(&chain).unwrap().outs[ranks as usize - 1];
    assert_eq!(time(2), 710_000);
    assert_eq!(time(7), 710_000 + 5 * 560_000);
    let slow = Platform::fx100().with("send_engine", 170_000).unwrap();
    let slow = slow.with("put_one_way", 730_000).unwrap();
    let job = checks::jobs::virtual_time(&slow, 3).torus(Torus::line(3));
    assert_eq!(job.run(&chain).unwrap().outs[2], 730_000 + 580_000);
}
