//! A job with control queues runs the same every time, event by event.

use super::script::AT;
use crate::start::{NETWORKS, all_differ, fx100};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueId, QueueMode, QueueSpec, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank};
use std::time::Duration;
use tofu2_virt::{Job, NetworkModel, QueueKind, Stats};

/// A ring of session queues runs by itself. In the meantime, all ranks add to a word of rank 0, put
/// with notice and get, through control queues and through the fabric.
pub(crate) async fn mixture(fabric: Fabric, laps: u64) -> ProgramResult<u64> {
    let me = fabric.rank().number();
    let ranks = fabric.ranks() as u32;
    let home = fabric.alloc_symmetric(4096).await?;
    let ring = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).on(0))?;
    let other = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).on(1))?;
    ring.register_fixed(&home, 0)?;
    other.register_fixed(&home, 0)?;
    let per_node = ControlQueue::limits(&fabric).free;
    fabric.sleep(Duration::from_micros(1)).await;
    // The ranks of a node open theirs in rank order.
    let id = |rank: u32, engine: u8| QueueId::new(Rank::new(rank), engine, (rank % 2) as u8, 0);
    assert!(per_node < 48 && ring.id() == id(me, 0) && other.id() == id(me, 1));
    for lap in 0..laps {
        let put = Posting::new(Command::put(id((me + 1) % ranks, 0), AT, AT + 64, 24 + 100 * (lap as u32 % 5))).sps(1);
        ring.post(put.remote(lap as u8), Deps::All).await?;
    }
    fabric.sleep(Duration::from_micros(10)).await;
    if me == 0 {
        other.post(Posting::new(Command::put(id(0, 0), AT, AT, 0)).sps(1), Deps::All).await?;
    }
    let word = fabric.remote_word::<u64>(crate::start::at(0, home.key(), 8))?;
    for _ in 0..laps {
        let add = Command::Atomic { to: id(0, 1), at: AT + 8, width: Width::Eight, amo: Amo::Add(1) };
        other.post(Posting::new(add).local(1), Deps::All).await?;
        fabric.fetch_add(&word, 1).await?;
        other.post(Posting::new(Command::get(id(me ^ 1, 1), AT + 64, AT + 1024, 200)).tcq(7), Deps::All).await?;
        other.next_notice(Deps::All).await?;
        other.next_completion(Deps::All).await?;
    }
    for _ in 0..laps {
        ring.next_notice(Deps::All).await?;
    }
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(fabric.load(&home.word::<u64>(&fabric, 8)?)?)
}

fn base<'a>(network: NetworkModel) -> Job<'a> {
    fx100(24).ranks_per_node(2).network(network).receive_tnis(2)
}

fn run(job: Job<'_>) -> Stats {
    let run = job.run(&async |fabric| mixture(fabric, 6).await).unwrap();
    assert_eq!(run.outs[0], 24 * 6 * 2);
    let commands = run.stats.commands;
    // Ring puts, adds, gets, and the first credit; all of them reached every stage.
    assert_eq!(commands.posted, 3 * 24 * 6 + 1);
    assert_eq!(
        [commands.started, commands.sent, commands.arrived, commands.visible, commands.completed],
        [commands.posted; 5]
    );
    assert_eq!(commands.released, 24 * 6 + 1);
    run.stats
}

#[test]
fn the_same_job_gives_the_same_hash_twice_with_another_queue_and_by_seed() {
    for network in NETWORKS {
        let first = run(base(network));
        assert_eq!(first, run(base(network)));
        let other = run(base(network).queue(QueueKind::Binary));
        assert_eq!((first.trace_hash, first.events, first.end), (other.trace_hash, other.events, other.end));
        let mut hashes = vec![first.trace_hash];
        for seed in 1..=3 {
            let jitter = |seed| base(network).jitter(Duration::from_nanos(300)).seed(seed);
            let ties = |seed| base(network).shuffle_ties(true).seed(seed);
            assert_eq!(run(jitter(seed)), run(jitter(seed)));
            let binary = run(ties(seed).queue(QueueKind::Binary));
            assert_eq!(run(ties(seed)).trace_hash, binary.trace_hash);
            hashes.extend([run(jitter(seed)).trace_hash, binary.trace_hash]);
        }
        assert!(all_differ(&hashes), "{network:?}: {hashes:x?}");
    }
}
