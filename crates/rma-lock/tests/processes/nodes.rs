//! A lock whose words the ranks of a node share, when one of its ranks is killed: the lock does not
//! recover, and ranks that depend on the dead one receive an error.
//!
//! Each node has two ranks. Those of the second node share words of the first of them.

use crate::job::{launch_on, outlive};
use checks::killed::Outcome;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use rma_lock::{
    Guard, Lock, LockError, RmaLock,
    locks::{Aggregated, RpLock},
};

const RANKS: usize = 5;
const HOME: Rank = Rank::new(0);
/// The rank that stores the words of the second node.
const FIRST: Rank = Rank::new(2);
const MATE: Rank = Rank::new(3);

/// Plays one rank's part: after `victim` has died with the hold `held`, reads if `victim` held
/// nothing, otherwise writes.
pub(crate) async fn play(fabric: Fabric, victim: u32, held: &str) -> ProgramResult<String> {
    let (me, victim) = (fabric.rank(), Rank::new(victim));
    let mut world = Group::world(&fabric).await?;
    let lock = Aggregated::<RpLock>::symmetric(&fabric, HOME).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let dies = me == victim;
    let survivors = world.split((!dies).then_some(0), 0).await?;
    let reader = if dies && held == "reader" { Some(lock.read().await?) } else { None };
    let writer = if dies && held == "writer" { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    outlive(&fabric, victim, &region, (reader, writer)).await?;
    let mut survivors = survivors.ok_or("the victim is alive")?;
    let attempt = || async {
        if held == "nothing" { lock.read().await?.release().await } else { lock.write().await?.release().await }
    };
    // Readers enter one after the other: a rank that waits for another to lead is notified of any
    // member's loss, regardless of the rank that stores the words.
    let turns = if held == "nothing" { survivors.len() } else { 1 };
    let mut end = Ok(());
    for turn in 0..turns {
        if turns == 1 || turn == survivors.me() {
            end = attempt().await;
        }
        // The memory of ranks that received the error is still needed.
        survivors.barrier().await?;
    }
    match end {
        Ok(()) => Ok("went on".to_owned()),
        Err(LockError::Fabric(error)) if error == (FabricError::PeerLost { rank: victim }) => Ok("was told".to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the results of the other ranks.
fn killed(victim: Rank, held: &str) -> Vec<(Rank, String)> {
    let report = launch_on(RANKS, 2, &format!("nodes {} {held}", victim.number()));
    let ranks = (0..RANKS as u32).map(Rank::new).zip(report.outcomes);
    let end = |(rank, outcome)| match outcome {
        Outcome::Silent if rank == victim => None,
        Outcome::Ended(text) if rank != victim => Some((rank, text)),
        other => panic!("{victim} died holding {held}: {rank} ended with {other:?}"),
    };
    ranks.filter_map(end).collect()
}

#[test]
fn writers_are_told_of_a_holder() {
    for (victim, held) in [(MATE, "reader"), (MATE, "writer"), (FIRST, "reader"), (FIRST, "writer")] {
        for (rank, end) in killed(victim, held) {
            assert_eq!(end, "was told", "{rank}, when {victim} died holding {held}");
        }
    }
}

#[test]
fn readers_are_told_of_who_had_their_words() {
    for (rank, end) in killed(FIRST, "nothing") {
        assert_eq!(end, if rank == MATE { "was told" } else { "went on" }, "{rank}");
    }
    // These readers' words are elsewhere.
    for (rank, end) in killed(MATE, "nothing") {
        assert_eq!(end, "went on", "{rank}");
    }
}
