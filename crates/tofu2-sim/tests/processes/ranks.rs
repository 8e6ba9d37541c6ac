//! The programs that the ranks of [`crate::jobs`] run.

use crate::{children::REFUSED, existing, helpers, stuck};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};
use tofu2_sim::shm::{JOB_VARIABLE, run_rank};

/// Ten times the time that the report of a loss takes on a busy machine.
const SOON: Duration = Duration::from_secs(10);

pub(crate) fn rank(scenario: &str) -> ExitCode {
    // Lets the test check that no process is left.
    println!("pid {}", std::process::id());
    if scenario == "absent" && std::env::var(JOB_VARIABLE).is_ok_and(|text| text.contains(" rank=0 ")) {
        return ExitCode::SUCCESS;
    }
    let endpoint = match tofu2_sim::shm::from_env() {
        Ok(Some(endpoint)) => endpoint,
        Ok(None) => {
            println!("no job");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            println!("refused: {error}");
            return ExitCode::from(REFUSED);
        }
    };
    assert!(matches!(tofu2_sim::shm::from_env(), Err(FabricError::RankTaken { .. })), "attached twice");
    if scenario == "leave" && endpoint.rank() == Rank::new(0) {
        std::process::exit(0);
    }
    if let Some(helped) = scenario.strip_prefix("stuck-") {
        return stuck::rank(endpoint, helped);
    }
    match run_rank(endpoint, &async |fabric| run_scenario(fabric, scenario.to_owned()).await) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}

async fn run_scenario(fabric: Fabric, scenario: String) -> ProgramResult<u8> {
    let me = fabric.rank().number();
    match scenario.as_str() {
        "work" => work(&fabric).await?,
        "stderr" => eprint!("first of {me}\nsecond\n\nlast, without an end"),
        "code" => return Ok(if me == 1 { 7 } else { 0 }),
        "kill" if me == 2 => {
            std::thread::sleep(Duration::from_millis(50));
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
        }
        "panic" if me == 0 => panic!("on purpose"),
        "fail" if me == 1 => return Err("on purpose".into()),
        "kill" | "panic" | "fail" | "leave" | "absent" => return outlive(&fabric, &scenario).await,
        "midway" if me == 0 => std::process::exit(0),
        "midway" => std::thread::sleep(Duration::from_secs(60)),
        "flood" if me == 1 => {
            std::thread::sleep(Duration::from_millis(200));
            return Ok(7);
        }
        "flood" | "flood-on" => loop {
            eprintln!("{:1000}", "an unread line");
        },
        "stubborn" if me == 0 => return Ok(3),
        "stubborn" => std::thread::sleep(Duration::from_secs(60)),
        "sleep" => fabric.sleep(Duration::from_secs(60)).await,
        "deaf" => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        "memory" => memory(&fabric).await?,
        "inside" => return existing::killed_inside(&fabric).await,
        "dead-owner" => return existing::dead_owner(&fabric).await,
        "stopped" => existing::stopped_inside(&fabric).await?,
        _ if scenario.starts_with("helper-") => return helpers::rank(&fabric, &scenario).await,
        _ => return Err(format!("no scenario {scenario}").into()),
    }
    Ok(0)
}

/// Waits for the rank that fails, whose loss is reported soon.
async fn outlive(fabric: &Fabric, scenario: &str) -> ProgramResult<u8> {
    let region = fabric.alloc(8)?;
    let start = Instant::now();
    let lost = Rank::new(match scenario {
        "kill" => 2,
        "panic" | "leave" | "absent" => 0,
        _ => 1,
    });
    let error = fabric.wait_until(&region.word::<u64>(fabric, 0)?, Deps::One(lost), |_| false).await.unwrap_err();
    assert_eq!(error, FabricError::PeerLost { rank: lost });
    assert!(start.elapsed() < SOON);
    println!("received {error}");
    Ok(if ["leave", "absent"].contains(&scenario) { 0 } else { 5 })
}

/// Runs atomics by all ranks on all ranks, a ring of puts with notices, and collectives, in loops.
async fn work(fabric: &Fabric) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let region = fabric.alloc_symmetric(1 << 20).await?;
    let (me, n) = (fabric.rank().number(), fabric.ranks() as u32);
    let at = |rank: u32, offset| RemoteAddr { rank: Rank::new(rank), region: region.key(), offset };
    let words = (0..n).map(|rank| fabric.remote_word::<u64>(at(rank, 0))).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..1000 {
        for word in &words {
            fabric.fetch_add(word, 1).await?;
        }
    }
    world.barrier().await?;
    assert_eq!(fabric.load(&region.word::<u64>(fabric, 0)?)?, 1000 * u64::from(n));
    let next = fabric.remote_span::<u64>(at((me + 1) % n, 4096), 5000)?;
    let here = region.span::<u64>(fabric, 4096, 5000)?;
    let mut got = vec![0; 5000];
    for round in 0..200 {
        let data = vec![u64::from(me) << 32 | round; 5000];
        fabric.put_notify(&next, data, round).await?;
        let notice = fabric.next_notice(Deps::All).await?;
        let from = (me + n - 1) % n;
        assert_eq!((notice.from, notice.data, notice.end), (Rank::new(from), round, 4096 + 40_000));
        fabric.read(&here, &mut got)?;
        assert!(got.iter().all(|&word| word == u64::from(from) << 32 | round));
        world.barrier().await?;
    }
    let times = world.allgather(fabric.now().as_picos()).await?;
    let spread = times.iter().max().unwrap_or(&0) - times.iter().min().unwrap_or(&0);
    assert!(spread < 5_000_000_000_000, "clocks differ: {times:?}");
    println!("done {me}");
    Ok(())
}

/// Registering takes memory and dropping returns it; limits are errors.
async fn memory(fabric: &Fabric) -> ProgramResult<()> {
    let big = fabric.alloc(40 << 20)?;
    let last = big.word::<u64>(fabric, (40 << 20) - 8)?;
    fabric.store(&last, 1)?;
    let error = fabric.alloc(40 << 20).map(drop).unwrap_err();
    assert!(matches!(&error, FabricError::OutOfMemory(none) if none.segment == 64 << 20), "{error}");
    drop(big);
    let again = fabric.alloc(40 << 20)?;
    assert_eq!(fabric.load(&again.word::<u64>(fabric, (40 << 20) - 8)?)?, 0, "zeroed again");
    let peer = Rank::new(1 - fabric.rank().number());
    let symmetric = fabric.alloc_symmetric(20 << 20).await?;
    let addr = RemoteAddr { rank: peer, region: symmetric.key(), offset: (20 << 20) - 8 };
    fabric.fetch_add(&fabric.remote_word::<u64>(addr)?, 1).await?;
    let nothing = RemoteAddr { rank: peer, region: RegionKey { index: 4000, generation: 1 }, offset: 0 };
    assert!(matches!(fabric.remote_word::<u64>(nothing), Err(FabricError::NoSuchRegion { .. })));
    Group::world(fabric).await?.barrier().await?;
    Ok(())
}
