//! The parts that the guests play. They keep their fabric forever, as a C library does.

use super::{HOURS, clock};
use crate::children::REFUSED;
use rdma_fabric::{Deps, Existing, Fabric, FabricError, Group, ProgramResult, Rank, Region, RegionKey, RemoteAddr};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    env,
    process::{self, ExitCode},
    thread,
    time::Duration,
};
use tofu2_sim::shm::{JOB_VARIABLE, attach_process, block_on};

/// The rank that ends first.
const FIRST: Rank = Rank::new(0);

/// Runs as a guest.
pub(crate) fn guest(part: &str) -> ExitCode {
    println!("pid {}", process::id());
    if part == "aborted" {
        let job = env::var(JOB_VARIABLE).expect("a rank");
        // One that has not attached yet, and one that attaches afterwards.
        for (late, time) in [(" rank=3 ", HOURS), (" rank=4 ", Duration::from_millis(300))] {
            if job.contains(late) {
                thread::sleep(time);
            }
        }
    }
    let fabric = match attach_process() {
        // As in a static of a library.
        Ok(fabric) => Box::leak(Box::new(fabric)),
        Err(error) => {
            println!("refused: {error}");
            return ExitCode::from(REFUSED);
        }
    };
    assert!(matches!(attach_process(), Err(FabricError::RankTaken { .. })), "attached twice");
    let played = match part {
        "aborted" => block_on(aborted(fabric)),
        "computes" => block_on(computes(fabric)),
        "registers" => block_on(registers(fabric)),
        "alone" => block_on(alone(fabric)),
        "aborts-alone" => block_on(aborts_alone(fabric)),
        _ => block_on(ends(fabric, part)),
    };
    played.expect("a good end");
    ExitCode::SUCCESS
}

/// Waits until `rank` has left or is lost, and returns the error that its peers receive.
async fn end_of(fabric: &Fabric, rank: Rank) -> ProgramResult<FabricError> {
    let word = fabric.alloc(8)?;
    Ok(fabric.wait_until(&word.word::<u64>(fabric, 0)?, Deps::One(rank), |_| false).await.expect_err("it has ended"))
}

/// Leaks the values that a library would keep.
async fn begin(fabric: &Fabric) -> ProgramResult<(&'static mut Group, &'static Region)> {
    let (world, memory) = (Group::world(fabric).await?, fabric.alloc_symmetric(16).await?);
    Ok((Box::leak(Box::new(world)), Box::leak(Box::new(memory))))
}

/// The first rank writes to the others, and ends according to `part`. They find the written values,
/// in their memory and its own, and its outcome.
async fn ends(fabric: &Fabric, part: &str) -> ProgramResult<()> {
    let (world, memory) = begin(fabric).await?;
    if fabric.rank() == FIRST {
        if part == "holds" {
            Box::leak(Box::new(fabric.register(vec![1u8; 100])?));
        }
        fabric.store(&memory.word::<u64>(fabric, 8)?, 5)?;
        for rank in (1..fabric.ranks() as u32).map(Rank::new) {
            fabric.put_word(&memory.word_of(fabric, rank, 0)?, 7u64).await?;
        }
        match part {
            "exits" => process::exit(0),
            "fails" => process::exit(3),
            "killed" => kill_process(getpid(), Signal::KILL)?,
            "crashes" => process::abort(),
            "stays" | "holds" => thread::sleep(Duration::from_millis(400)),
            _ => {}
        }
        return Ok(());
    }
    fabric.wait_until(&memory.word::<u64>(fabric, 0)?, Deps::One(FIRST), |value| value == 7).await?;
    match end_of(fabric, FIRST).await? {
        FabricError::PeersLeft => {
            let mut kept = [0u64];
            fabric.get_slice(&memory.span_of(fabric, FIRST, 8, 1)?, &mut kept).await?;
            assert_eq!(kept, [5], "of the rank that left");
            assert_eq!(world.barrier().await, Err(FabricError::MemberLeft { rank: FIRST }));
            println!("left");
        }
        error => {
            assert_eq!(error, FabricError::PeerLost { rank: FIRST });
            println!("lost");
        }
    }
    Ok(())
}

/// The first rank makes no call for a while, and then exits. Of the others, one ends at once, the
/// other waits for all.
async fn computes(fabric: &Fabric) -> ProgramResult<()> {
    let (world, _) = begin(fabric).await?;
    match fabric.rank().number() {
        0 => {
            thread::sleep(Duration::from_millis(400));
            process::exit(0);
        }
        1 => process::exit(0),
        _ => {
            let error = world.barrier().await.expect_err("two members don't come");
            assert!(matches!(error, FabricError::MemberLeft { .. }), "{error}");
            // No rank waits for a rank that has left already.
            assert_eq!(end_of(fabric, FIRST).await?, FabricError::PeersLeft);
            println!("gave up");
        }
    }
    Ok(())
}

/// The first rank lends memory of its own, and exits while the other puts into it.
async fn registers(fabric: &Fabric) -> ProgramResult<()> {
    let (world, words) = begin(fabric).await?;
    if fabric.caps().register_existing != Existing::CrossCopy {
        println!("stale");
        return Ok(());
    }
    let (own, word) = (fabric.rank() == FIRST, words.word::<u64>(fabric, 0)?);
    let lent = own.then(|| fabric.register(vec![1u8; 4096])).transpose()?.map(|lent| &*Box::leak(Box::new(lent)));
    let key = world.broadcast(0, lent.map_or(RegionKey { index: 0, generation: 0 }, |lent| lent.key())).await?;
    if own {
        fabric.wait_until(&word, Deps::All, |puts| puts == 1).await?;
        process::exit(0);
    }
    let addr = RemoteAddr { rank: FIRST, region: key, offset: 0 };
    let span = fabric.remote_span::<u8>(addr, 4096)?;
    fabric.put_slice(&span, &[2; 4096]).await?;
    fabric.put_word(&words.word_of(fabric, FIRST, 0)?, 1u64).await?;
    let stale = FabricError::StaleRegion { rank: FIRST, region: key };
    let error = loop {
        if let Err(error) = fabric.put_slice(&span, &[2; 4096]).await {
            break error;
        }
    };
    assert_eq!(error, stale, "before or after it is known to have left");
    assert_eq!(end_of(fabric, FIRST).await?, FabricError::PeersLeft);
    assert_eq!(fabric.put_slice(&span, &[2; 4096]).await, Err(stale));
    println!("stale");
    Ok(())
}

/// All operations of a fabric work for one rank.
async fn alone(fabric: &Fabric) -> ProgramResult<()> {
    assert_eq!((fabric.rank(), fabric.ranks()), (FIRST, 1));
    let (world, memory) = begin(fabric).await?;
    world.barrier().await?;
    assert_eq!(world.allgather(4u32).await?, [4]);
    assert_eq!(world.broadcast(0, 5u32).await?, 5);
    let (own, remote) = (memory.word::<u64>(fabric, 0)?, memory.word_of::<u64>(fabric, FIRST, 0)?);
    assert_eq!(fabric.fetch_add(&remote, 3).await?, 0);
    assert_eq!(fabric.wait_until(&own, Deps::One(FIRST), |value| value == 3).await?, 3);
    assert_eq!(fabric.wait_until(&own, Deps::All, |value| value == 4).await, Err(FabricError::PeersLeft));
    fabric.put_notify(&memory.span_of(fabric, FIRST, 8, 1)?, [6u64], 9).await?;
    let notice = fabric.next_notice(Deps::One(FIRST)).await?;
    assert_eq!((notice.from, notice.data, fabric.load(&memory.word::<u64>(fabric, 8)?)?), (FIRST, 9, 6));
    let lent = fabric.register(vec![1u8; 4096])?;
    let span = fabric.remote_span::<u8>(RemoteAddr { rank: FIRST, region: lent.key(), offset: 0 }, 4096)?;
    fabric.put_slice(&span, &[2; 4096]).await?;
    assert_eq!(lent.take().await?, [2; 4096]);
    let late = fabric.before(fabric.now() + Duration::from_millis(1), std::future::pending::<()>()).await;
    assert_eq!(late, None);
    let Err(FabricError::OutOfMemory(full)) = fabric.alloc(1 << 40) else { panic!("it has no terabyte") };
    println!("{} bytes", full.segment);
    Ok(())
}

/// Aborting does not end a guest that is a job of its own.
async fn aborts_alone(fabric: &Fabric) -> ProgramResult<()> {
    let (_, memory) = begin(fabric).await?;
    let (own, remote) = (memory.word::<u64>(fabric, 0)?, memory.word_of::<u64>(fabric, FIRST, 0)?);
    let aborted = FabricError::Aborted { rank: FIRST, code: 7 };
    let Err(error) = fabric.abort("no more", 7);
    assert_eq!(error, aborted);
    assert_eq!(fabric.wait_until(&own, Deps::One(FIRST), |value| value == 1).await, Err(aborted.clone()));
    assert_eq!(fabric.put_word(&remote, 1).await, Err(aborted));
    process::exit(7);
}

/// Rank 0 aborts; 1 computes and makes no calls; 2 and 4, which attaches late, wait for all; 3 does
/// not attach.
async fn aborted(fabric: &Fabric) -> ProgramResult<()> {
    match fabric.rank().number() {
        0 => {
            // The others are busy or waiting by then.
            thread::sleep(Duration::from_millis(100));
            println!("aborts at {}", clock());
            let Err(_) = fabric.abort("no more", 7);
            process::exit(0);
        }
        1 => loop {
            std::hint::spin_loop();
        },
        _ => {
            let error = Group::world(fabric).await.expect_err("rank 3 never comes");
            assert_eq!(error, FabricError::Aborted { rank: FIRST, code: 7 });
            process::exit(2);
        }
    }
}
