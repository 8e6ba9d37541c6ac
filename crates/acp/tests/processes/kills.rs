//! Ranks killed while copies are delegated and ordered, and while they hold the lock of a heap.

use crate::{dying::dying, job::launch};
use acp::{Acp, AcpError, Atomics, GlobalAddress, Mode, Options, Order};
use checks::killed::{Outcome, die_after};
use rdma_fabric::{Amo, Fabric, FabricError, Group, ProgramResult, Rank};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

const RANKS: usize = 4;

fn options(mode: &str) -> ProgramResult<Options> {
    let options = Options::default().atomics(Atomics::Delegated).depth(64);
    match mode {
        "direct" => Ok(options),
        "queue" => Ok(options.mode(Mode::CommandQueue)),
        "split" => Ok(options.mode(Mode::Split)),
        "split+network" => Ok(options.atomics(Atomics::Network).mode(Mode::Split)),
        "network" => Ok(options.atomics(Atomics::Network)),
        "queue+network" => Ok(options.atomics(Atomics::Network).mode(Mode::CommandQueue)),
        _ => Err(format!("no such mode: {mode}").into()),
    }
}

/// Runs one rank's part.
pub(crate) async fn play(fabric: Fabric, words: &[String]) -> ProgramResult<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["copies", mode, victim, micros] => {
            let (victim, delay) = (Rank::new(victim.parse()?), Duration::from_micros(micros.parse()?));
            copies(fabric, options(mode)?, victim, delay).await
        }
        ["heap", mode, victim, home] => {
            heap(fabric, options(mode)?, Rank::new(victim.parse()?), Rank::new(home.parse()?)).await
        }
        _ => Err(format!("no such part: {words:?}").into()),
    }
}

/// Reports that a call has named the victim, once all others have observed the loss; serves them
/// meanwhile.
async fn told(acp: &Acp, mut survivors: Group, done: acp::Result<()>, victim: Rank) -> ProgramResult<String> {
    acp.while_serving(survivors.barrier()).await?;
    match done {
        Err(AcpError::Fabric(FabricError::PeerLost { rank })) if rank == victim => Ok("told".to_owned()),
        other => Err(format!("not told: {other:?}").into()),
    }
}

async fn copies(fabric: Fabric, options: Options, victim: Rank, delay: Duration) -> ProgramResult<String> {
    let acp = Acp::init_with(&fabric, options).await?;
    let me = acp.rank();
    let mut world = Group::world(&fabric).await?;
    let survivors = world.split((me != victim).then_some(0), 0).await?;
    let at = (0..RANKS as u32).map(|rank| acp.starter(Rank::new(rank))).collect::<Result<Vec<_>, _>>()?;
    let Some(survivors) = survivors else {
        acp.sync().await?;
        die_after(delay);
        loop {
            // Others end first only if they observe the death.
            round(&acp, &at).await?;
        }
    };
    // The victim may die as soon as it has left the barrier: while others are still inside.
    let mut done = acp.sync().await;
    while done.is_ok() {
        done = round(&acp, &at).await;
    }
    told(&acp, survivors, done, victim).await
}

/// Copies between all other ranks, in order and without, with an atomic between.
async fn round(acp: &Acp, at: &[GlobalAddress]) -> acp::Result<()> {
    let me = acp.rank().index();
    let place = |rank: usize, word: usize| at[rank].offset_by(8 * (64 * me + word) as u64);
    for to in 0..RANKS {
        for from in 0..RANKS {
            let first = acp.copy(place(to, from)?, place(from, 63)?, 8, Order::None).await?;
            acp.copy(place(from, 8 + to)?, place(to, from)?, 8, first).await?;
            acp.copy(place(to, 16 + from)?, place(from, 63)?, 8, Order::Continue).await?;
        }
        acp.atomic(place(me, 32)?, place(to, 33)?, Amo::Add(1u64), Order::All).await?;
    }
    acp.complete_all().await
}

async fn heap(fabric: Fabric, options: Options, victim: Rank, home: Rank) -> ProgramResult<String> {
    let armed = Arc::new(AtomicBool::new(false));
    let spoiled = if fabric.rank() == victim { dying(&fabric, armed.clone()) } else { fabric.clone() };
    let acp = Acp::init_with(&spoiled, options).await?;
    let mut world = Group::world(&fabric).await?;
    let survivors = world.split((fabric.rank() != victim).then_some(0), 0).await?;
    let first = acp.malloc(64, home).await?;
    let Some(survivors) = survivors else {
        acp.sync().await?;
        armed.store(true, SeqCst);
        acp.malloc(64, home).await?;
        return Err("it lives on".into());
    };
    let mut had = vec![first];
    let mut done = acp.sync().await;
    while done.is_ok() {
        done = match had.pop() {
            Some(block) => acp.free(block).await,
            None => acp.malloc(64, home).await.map(|block| had.push(block)),
        };
    }
    told(&acp, survivors, done, victim).await
}

/// Runs a job, in which all ranks except `victim` must report its loss.
fn all_are_told(victim: usize, asked: &str) {
    for (rank, outcome) in launch(RANKS, asked).into_iter().enumerate() {
        let expected = if rank == victim { Outcome::Silent } else { Outcome::Ended("told".to_owned()) };
        assert_eq!(outcome, expected, "{asked}: rank {rank}");
    }
}

#[test]
fn copies_end_when_a_rank_is_killed() {
    let modes = ["direct", "queue", "network", "split"];
    for (turn, mode) in modes.into_iter().cycle().take(12).enumerate() {
        let (victim, micros) = (turn % RANKS, [100, 2_000, 20_000][turn / modes.len()]);
        all_are_told(victim, &format!("copies {mode} {victim} {micros}"));
    }
}

#[test]
fn the_lock_of_a_heap_dies_with_its_holder() {
    for mode in ["network", "queue+network", "split+network"] {
        for (victim, home) in [(1, 0), (2, 2)] {
            all_are_told(victim, &format!("heap {mode} {victim} {home}"));
        }
    }
}
