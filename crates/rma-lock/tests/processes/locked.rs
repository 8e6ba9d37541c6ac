//! Memory under a lock between processes, one of which is killed.

use crate::job::launch;
use checks::killed::{Outcome, die};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region};
use rma_lock::{
    LockError, Locked,
    locks::{BackOff, BackOffLock},
};
use std::time::Duration;

const RANKS: usize = 3;
const VICTIM: Rank = Rank::new(2);
const LEN: usize = 1000;
/// Ten times the time in which a loss should be noticed.
const HANG: Duration = Duration::from_secs(20);

/// Runs a program as processes; returns whether each rank ended successfully.
fn ended_well(program: &str) -> Vec<bool> {
    let outcomes = launch(RANKS, &format!("locked {program}")).outcomes;
    outcomes.iter().for_each(|outcome| {
        if let Outcome::Failed(error) = outcome {
            eprintln!("{program}: {error}")
        }
    });
    outcomes.iter().map(|outcome| matches!(outcome, Outcome::Ended(_))).collect()
}

/// Plays one rank's part of a program.
pub(crate) async fn play(fabric: Fabric, program: &str) -> ProgramResult<String> {
    match program {
        "counts" => counts(fabric).await?,
        "a_writer_dies" => a_writer_dies(fabric).await?,
        "a_writer_dies_unnoticed" => a_writer_dies_unnoticed(fabric).await?,
        "a_bystander_dies" => a_bystander_dies(fabric).await?,
        other => return Err(format!("no program {other:?}").into()),
    }
    Ok(String::new())
}

async fn in_time<T>(fabric: &Fabric, wait: impl Future<Output = T>) -> ProgramResult<T> {
    fabric.before(fabric.now() + HANG, wait).await.ok_or_else(|| "it hangs".into())
}

/// Waits until every rank except the victim knows that the victim is lost.
async fn notice_the_loss(fabric: &Fabric) -> ProgramResult<()> {
    let word = fabric.alloc(8)?;
    let word = word.word::<u64>(fabric, 0)?;
    let end = in_time(fabric, fabric.wait_until(&word, Deps::One(VICTIM), |value| value == 1)).await?;
    assert_eq!(end, Err(FabricError::PeerLost { rank: VICTIM }));
    Ok(())
}

/// Returns the group of all ranks except the victim. They end together, because a rank that ends
/// frees its memory.
async fn others(world: &mut Group) -> ProgramResult<Option<Group>> {
    let stays = world.me() != VICTIM.index();
    Ok(world.split(stays.then_some(0), 0).await?)
}

async fn meet(others: Option<Group>) -> ProgramResult<()> {
    Ok(others.ok_or("the victim is alive")?.barrier().await?)
}

/// A barrier that all other ranks have left when the victim returns from it. A plain barrier would
/// let the victim continue while another member is still inside, and its death would end that
/// member's wait. `out` is a word of symmetric memory that is not used otherwise.
async fn part(fabric: &Fabric, world: &mut Group, out: &Region) -> ProgramResult<()> {
    world.barrier().await?;
    if fabric.rank() == VICTIM {
        let out = out.word::<u64>(fabric, 0)?;
        fabric.wait_until(&out, Deps::All, |out| out == RANKS as u64 - 1).await?;
    } else {
        fabric.fetch_add(&fabric.remote_word::<u64>(out.at(VICTIM, 0))?, 1).await?;
    }
    Ok(())
}

fn is_of_the_loss(error: &LockError) -> bool {
    match error {
        LockError::Fabric(error) => *error == FabricError::PeerLost { rank: VICTIM },
        LockError::Broken(cause) => is_of_the_loss(cause),
        _ => false,
    }
}

/// Counts by reference and by copies in turn.
async fn counts(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64>::symmetric(&fabric, Rank::new(0), LEN).await?;
    assert!(locked.maps());
    for round in 0..300 {
        let mut guard = locked.write().await?;
        if round % 2 == 0 {
            guard.parts_mut()?.for_each(|part| part.iter_mut().for_each(|element| *element += 1));
        } else {
            for rank in (0..RANKS as u32).map(Rank::new) {
                let part = guard.get(rank, 0..LEN).await?;
                guard.put(rank, 0, part.iter().map(|element| element + 1).collect::<Vec<_>>()).await?;
            }
        }
        guard.release().await?;
        let guard = locked.read().await?;
        let first = guard.part(Rank::new(0))?[0];
        for rank in (0..RANKS as u32).map(Rank::new) {
            assert!(guard.part(rank)?.iter().all(|element| *element == first), "torn");
        }
        guard.release().await?;
    }
    world.barrier().await?;
    assert_eq!(locked.read().await?.part(VICTIM)?[LEN - 1], 300 * RANKS as u64);
    Ok(world.barrier().await?)
}

#[test]
fn processes_share_by_reference() {
    assert_eq!(ended_well("counts"), [true; RANKS]);
}

/// The victim dies in the middle of writing.
async fn a_writer_dies(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let others = others(&mut world).await?;
    let locked = Locked::<u64>::symmetric(&fabric, Rank::new(0), LEN).await?;
    let flags = fabric.alloc_symmetric(8).await?;
    part(&fabric, &mut world, &flags).await?;
    if fabric.rank() == VICTIM {
        let mut guard = locked.write().await?;
        for part in guard.parts_mut()? {
            part[..LEN / 2].fill(u64::MAX);
        }
        for rank in [Rank::new(0), Rank::new(1)] {
            fabric.put_word(&fabric.remote_word(flags.at(rank, 0))?, 1u64).await?;
        }
        fabric.flush_all().await?;
        // One rank is already waiting, another arrives later.
        std::thread::sleep(Duration::from_millis(100));
        die();
    }
    let inside = flags.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&inside, Deps::All, |inside| inside == 1).await?;
    if fabric.rank() == Rank::new(1) {
        notice_the_loss(&fabric).await?;
    }
    for attempt in 0..3 {
        let refused = match attempt {
            1 => in_time(&fabric, locked.read()).await?.map(drop).map_err(LockError::from),
            _ => in_time(&fabric, locked.write()).await?.map(drop).map_err(LockError::from),
        };
        let error = refused.expect_err("the lock was passed on from a holder that may live");
        assert!(is_of_the_loss(&error), "{error:?}");
    }
    meet(others).await
}

#[test]
fn the_lock_of_a_writer_that_was_killed_is_not_passed_on() {
    assert_eq!(ended_well("a_writer_dies"), [true, true, false]);
}

/// The victim dies while it holds a lock that cannot detect this: the others give up.
async fn a_writer_dies_unnoticed(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let others = others(&mut world).await?;
    let options = BackOff { attempts: 5, ..BackOff::default() };
    let home = Rank::new(0);
    let locked = Locked::<u64, BackOffLock>::symmetric_with(&fabric, home, LEN, options).await?;
    let out = fabric.alloc_symmetric(8).await?;
    world.barrier().await?;
    let guard = if fabric.rank() == VICTIM { Some(locked.write().await?) } else { None };
    part(&fabric, &mut world, &out).await?;
    if guard.is_some() {
        die();
    }
    notice_the_loss(&fabric).await?;
    let refused = in_time(&fabric, locked.write()).await?.map(drop).map_err(LockError::from);
    assert_eq!(refused, Err(LockError::Contended { attempts: 5 }));
    meet(others).await
}

#[test]
fn nor_is_that_of_a_lock_that_backs_off() {
    assert_eq!(ended_well("a_writer_dies_unnoticed"), [true, true, false]);
}

/// References into the memory of a rank that dies.
async fn a_bystander_dies(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let others = others(&mut world).await?;
    let locked = Locked::<u64>::symmetric(&fabric, Rank::new(0), LEN).await?;
    let out = fabric.alloc_symmetric(8).await?;
    world.barrier().await?;
    if fabric.rank() == VICTIM {
        let mut guard = locked.write().await?;
        guard.part_mut(VICTIM)?.fill(3);
        guard.release().await?;
        world.barrier().await?;
        part(&fabric, &mut world, &out).await?;
        die();
    }
    world.barrier().await?;
    let guard = locked.read().await?;
    let theirs = guard.part(VICTIM)?;
    part(&fabric, &mut world, &out).await?;
    notice_the_loss(&fabric).await?;
    // Its process has ended, but its pages still exist.
    assert!(theirs.iter().all(|element| *element == 3));
    let refused = guard.get(VICTIM, 0..1).await.expect_err("a copy from a lost rank");
    assert!(is_of_the_loss(&refused), "{refused:?}");
    // Now the loss is known here, and no new references are created.
    let refused = guard.part(Rank::new(0)).expect_err("a reference after a known loss");
    assert!(is_of_the_loss(&refused), "{refused:?}");
    assert_eq!(guard.get(Rank::new(0), 0..1).await?, [0]);
    assert!(theirs.iter().all(|element| *element == 3));
    guard.release().await?;
    meet(others).await
}

#[test]
fn references_into_a_dead_rank_stay_valid() {
    assert_eq!(ended_well("a_bystander_dies"), [true, true, false]);
}
