//! An executor that is killed at each label, with ranks as processes; this test executable also
//! runs the ranks.

use super::{
    deaths::{DEATH_POINTS, DIES, MEMORY, OWNER, RankSetup, TARGET, check_target, expected},
    *,
};
use crate::{JOB_VARIABLE, Launcher, run_rank_with};
use fabric_offload::ControlQueue;
use rdma_fabric::Fabric;
use rustix::process::{Signal, getpid, kill_process};
use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

const LABEL: &str = "ONESIDED_TEST_LABEL";
const LOCAL: &str = "ONESIDED_TEST_LOCAL";
const DIRECTORY: &str = "ONESIDED_TEST_DIRECTORY";
/// Ten times as long as the test takes on a loaded machine.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_killed_executor_leaves_a_finished_command_or_a_report() {
    // The general path and the fast one: see `RankSetup::queue_up`.
    let all = [true, false].into_iter().flat_map(|local| DEATH_POINTS.map(|label| (local, label)));
    for (number, (local, label)) in all.enumerate() {
        let directory = env::temp_dir().join(format!("onesided-queues-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let this = env::current_exe().unwrap();
        let (_, module) = module_path!().split_once("::").unwrap();
        let code = Launcher::new(RANKS as usize)
            .segment_bytes(8 << 20)
            .ranks_per_node(1)
            .env(LABEL, (number % DEATH_POINTS.len()).to_string())
            .env(LOCAL, u8::from(local).to_string())
            .env(DIRECTORY, &directory)
            .command(this, ["--exact", &format!("{module}::the_ranks_part"), "--nocapture"])
            .discard_stdout(true)
            .run()
            .unwrap();
        assert_eq!(code, 128 + 9, "{label:?}: the killed rank's");
        for rank in [OWNER, TARGET] {
            let said = fs::read_to_string(directory.join(rank.number().to_string()));
            assert_eq!(said.as_deref().ok(), Some("well"), "{label:?}, {rank}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// Runs as a rank of the test above; does nothing outside a job.
#[test]
fn the_ranks_part() {
    if env::var_os(JOB_VARIABLE).is_none() || env::var_os(LABEL).is_none() {
        return;
    }
    let endpoint = crate::from_env().unwrap().unwrap();
    let label = DEATH_POINTS[env::var(LABEL).unwrap().parse::<usize>().unwrap()];
    let rank = endpoint.rank();
    run_rank_with(endpoint, |fabric| {
        block_on(play(fabric, label));
        Ok(())
    })
    .unwrap();
    let directory = PathBuf::from(env::var_os(DIRECTORY).unwrap());
    fs::write(directory.join(rank.number().to_string()), "well").unwrap();
}

async fn play(fabric: Fabric, label: DeathPoint) {
    let part = RankSetup::new(fabric.clone());
    let mut world = Group::world(&fabric).await.unwrap();
    match fabric.rank() {
        OWNER => part.queue_up(env::var(LOCAL).unwrap() == "1"),
        TARGET => part.queue.try_post(Posting::new(Command::Nop).tcq(3)).unwrap(),
        _ => {}
    }
    let passed = fabric.alloc_symmetric(8).await.unwrap();
    world.barrier().await.unwrap();
    if fabric.rank() == DIES {
        // The others must have left the barrier.
        let word = passed.word::<u64>(&fabric, 0).unwrap();
        fabric.wait_until(&word, Deps::All, |passed| passed == 2).await.unwrap();
    } else {
        fabric.fetch_add(&fabric.remote_word::<u64>(passed.at(DIES, 0)).unwrap(), 1).await.unwrap();
    }
    let start = Instant::now();
    match fabric.rank() {
        DIES => part.advance(label, || kill_process(getpid(), Signal::KILL).unwrap()),
        OWNER => {
            // Waits, so that it does not execute the commands before the other rank does.
            let wait = fabric.wait_until(&part.flag(), Deps::One(DIES), |_| false).await;
            assert_eq!(wait, Err(FabricError::PeerLost { rank: DIES }));
            for (tag, status) in [(1, expected(label)), (2, Ok(()))] {
                let done = part.queue.next_completion(Deps::One(TARGET)).await.unwrap();
                assert_eq!((done.tag, done.status), (tag, status));
            }
            let wait = part.queue.next_completion(Deps::All).await;
            assert_eq!(wait, Err(FabricError::PeerLost { rank: DIES }));
            // The target checks only after all this, because it must not execute commands itself.
            let to = super::deaths::name(TARGET);
            let over = Command::PutInline { to, bytes: Inline::word(1), at: MEMORY + 1024 };
            let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal)).unwrap();
            queue.try_post(over.into()).unwrap();
        }
        _ => {
            let word = part.flag();
            fabric.wait_until(&word, Deps::One(OWNER), |flag| flag == 1).await.unwrap();
            check_target(&part, label);
        }
    }
    assert!(start.elapsed() < SOON);
}
