//! The programs of the ranks.

use onesided::{Amo, ControlQueue, Deps, Group, Rank, op::Nop};
use rdma_fabric::{Fabric, ProgramResult};
use std::process::ExitCode;

pub(super) fn main(name: &str) -> ExitCode {
    match name {
        "known" => with(known),
        "endless" => with(endless),
        "fails" => with(async move |fabric| fails(fabric, false).await),
        "panics" => with(async move |fabric| fails(fabric, true).await),
        "dying" => with(dying),
        "both-fail" => with(both_fail),
        "place" => with(place),
        "aborts-7" => with(async move |fabric| aborts(fabric, 7).await),
        "aborts-0" => with(async move |fabric| aborts(fabric, 0).await),
        "aborts-300" => with(async move |fabric| aborts(fabric, 300).await),
        "queues" => with(queues),
        "shared" => match onesided::Launch::from_args() {
            Ok((launch, _)) => launch.run_shared(|_| Ok(())),
            Err(error) => panic!("{error}"),
        },
        "without-options" => onesided::launch(place),
        _ => ExitCode::from(64),
    }
}

/// Launches a program without options after `program NAME`.
fn with<P: onesided::Program>(program: P) -> ExitCode {
    onesided::launch_with("A program for observers.\n", |rest| match &rest[2..] {
        [] => Ok(program),
        more => Err(format!("unknown arguments {more:?}")),
    })
}

/// Executes a known number of operations of each kind, from each of two ranks to the other.
async fn known(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(64).await?;
    let other = Rank::new(1 - fabric.rank().number());
    let pair = fabric.remote_span::<u64>(window.at(other, 0), 2)?;
    let word = fabric.remote_word::<u64>(window.at(other, 32))?;
    for _ in 0..3 {
        fabric.put(&pair, [1, 2]).await?;
    }
    for _ in 0..2 {
        fabric.get_word(&word).await?;
    }
    let amos = [Amo::Add(1), Amo::Add(1), Amo::Add(1), Amo::Add(1), Amo::Swap(3), Amo::Or(1), Amo::And(1), Amo::Xor(1)];
    let swaps = [Amo::CompareSwap { expected: 0, new: 1 }, Amo::CompareSwap { expected: 7, new: 1 }];
    for amo in amos.into_iter().chain(swaps) {
        fabric.atomic(&word, amo).await?;
    }
    fabric.post(Nop).await?.await?;
    fabric.flush(other).await?;
    fabric.flush(other).await?;
    fabric.flush_all().await?;
    let single = fabric.remote_span::<u64>(window.at(other, 48), 1)?;
    for number in 0..5 {
        fabric.put_notify(&single, vec![number], number).await?;
    }
    for number in 0..5 {
        assert_eq!(fabric.next_notice(Deps::One(other)).await?.data, number);
    }
    // One flush, one put of 8 bytes, one wait for a word.
    Ok(world.barrier().await?)
}

/// Rank 1 dies while rank 0 waits.
async fn dying(fabric: Fabric) -> ProgramResult<()> {
    let window = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        std::process::abort();
    }
    fabric.wait_until(&window.word::<u64>(&fabric, 0)?, Deps::All, |value| value == 1).await?;
    Ok(())
}

/// Rank 0 computes for ever.
async fn endless(fabric: Fabric) -> ProgramResult<()> {
    if fabric.rank() == Rank::new(0) {
        fabric.compute(std::time::Duration::MAX).await;
    }
    Ok(())
}

/// Rank 1 fails, or panics, and rank 0 because of that.
async fn fails(fabric: Fabric, panics: bool) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    if fabric.rank() == Rank::new(1) {
        // Its memory stays, so that rank 0 gets the loss, and not first a dropped region.
        std::mem::forget(world);
        assert!(!panics, "on purpose");
        return Err("on purpose".into());
    }
    Ok(world.barrier().await?)
}

/// Both ranks fail after one atomic on themselves.
async fn both_fail(fabric: Fabric) -> ProgramResult<()> {
    let window = fabric.alloc(8)?;
    fabric.fetch_add(&fabric.remote_word::<u64>(window.at(fabric.rank(), 0))?, 1).await?;
    Err("on purpose".into())
}

/// Prints the CPUs on which each rank may run.
async fn place(fabric: Fabric) -> ProgramResult<()> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    println!("{} {}", fabric.rank().number(), line.trim());
    Ok(())
}

/// Rank 1 aborts the job while rank 0 waits.
async fn aborts(fabric: Fabric, code: i32) -> ProgramResult<()> {
    let window = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        fabric.abort("on purpose", code)?;
    }
    fabric.wait_until(&window.word::<u64>(&fabric, 0)?, Deps::All, |value| value == 1).await?;
    Ok(())
}

/// Each rank prints properties of its control queues.
async fn queues(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let shared = ControlQueue::limits(&fabric).shared_address_space;
    println!("shared {shared}, {} threads", std::fs::read_dir("/proc/self/task")?.count());
    // No rank ends its threads before all have counted theirs.
    Ok(world.barrier().await?)
}
