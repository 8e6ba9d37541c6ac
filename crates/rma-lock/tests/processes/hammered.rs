//! Random kills: four ranks hammer the lock, and one of them is killed at a random moment.
//!
//! The seed determines victims and delays. The victim's step when its delay ends depends on the
//! machine.

use crate::{
    checked::{HOME, Protected, Tally},
    job::{asked_number, launch},
};
use checks::killed::{Outcome, die_after};
use process_tests::table::publish;
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::time::Duration;

/// The number of kills.
const KILLS: &str = "KILLED_KILLS";
/// The first seed.
const SEED: &str = "KILLED_SEED";
const RANKS: usize = 4;
/// The longest delay, in microseconds.
const LATEST: u64 = 20_000;
/// The number of rounds that survivors run after the loss.
const ROUNDS_AFTER: usize = 20;

/// Plays one rank's part.
pub(crate) async fn play(fabric: Fabric, victim: u32, micros: u64) -> ProgramResult<String> {
    let (me, victim) = (fabric.rank(), Rank::new(victim));
    let mut world = Group::world(&fabric).await?;
    let it = Protected::new(&fabric, &[victim]).await?;
    let survivors = world.split((me != victim).then_some(0), 0).await?;
    it.begin(&mut world, &[victim]).await?;
    let mut tally = Tally::default();
    let Some(mut survivors) = survivors else {
        die_after(Duration::from_micros(micros));
        loop {
            it.round(&mut tally).await?;
        }
    };
    let mut after = 0;
    while after < ROUNDS_AFTER {
        it.round(&mut tally).await?;
        after += usize::from(after > 0 || is_lost(&it, victim).await?);
    }
    survivors.barrier().await?;
    tally.version = if me == HOME { it.version().await? } else { 0 };
    survivors.barrier().await?;
    Ok(tally.to_string())
}

/// Returns whether this rank has been notified that `victim` was lost.
async fn is_lost(it: &Protected, victim: Rank) -> ProgramResult<bool> {
    let told = it.told(0)?;
    let now = it.fabric.now();
    match it.fabric.before(now, it.fabric.wait_until(&told, Deps::One(victim), |told| told == 1)).await {
        None => Ok(false),
        Some(Err(FabricError::PeerLost { rank })) if rank == victim => Ok(true),
        Some(other) => Err(format!("the victim said {other:?}").into()),
    }
}

/// A sequence of numbers that depends only on its seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[test]
fn ranks_are_killed_at_random() {
    let kills = asked_number(KILLS).unwrap_or(20);
    let seed = asked_number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let mut draw = Draw(seed);
    let (mut well, mut torn, mut rounds, mut hangs, mut wrong) = (0, 0, 0, 0, Vec::new());
    for kill in 0..kills {
        let (victim, micros) = (1 + draw.next() as usize % (RANKS - 1), draw.next() % LATEST);
        let what = format!("kill {kill} of seed {seed}: rank {victim} after {micros} us");
        let report = launch(RANKS, &format!("hammer {victim} {micros}"));
        let mut all = Tally::default();
        for (rank, outcome) in report.outcomes.into_iter().enumerate() {
            match outcome {
                Outcome::Ended(text) if rank != victim => {
                    let tally: Tally = text.parse().unwrap_or_else(|error| panic!("{what}: {error}"));
                    all = Tally {
                        wrote: all.wrote + tally.wrote,
                        torn: all.torn + tally.torn,
                        version: all.version.max(tally.version),
                    };
                    well += 1;
                }
                Outcome::Silent if rank == victim => {}
                // It did not end before the launcher's timeout.
                Outcome::Silent => hangs += 1,
                other => wrong.push(format!("{what}: rank {rank} ended with {other:?}")),
            }
        }
        if all.version < all.wrote || all.torn > 1 {
            wrong.push(format!("{what}: {all:?}"));
        }
        torn += all.torn;
        rounds += all.wrote;
    }
    let table = format!(
        "| kills, seed {seed} | {kills} |\n|---|---|\n| survivors that ended well | {well} |\n| times the record was torn, and mended | \
         {torn} |\n| times survivors wrote | {rounds} |\n| survivors with anything else | {} |\n| hangs | {hangs} |\n",
        wrong.len()
    );
    publish(&table);
    wrong.iter().for_each(|line| println!("{line}"));
    assert!(wrong.is_empty() && hangs == 0, "seed {seed}: {hangs} hangs, {wrong:#?}");
}
