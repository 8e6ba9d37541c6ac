//! A rank that waits uses no CPU, on any executor.

use onesided::{
    Deps, Fabric, Group, ProgramResult, Rank,
    sim::shm::{Threads, block_on},
};
use std::time::Duration;

/// The waiting time of rank 0.
const IDLE: Duration = Duration::from_millis(800);

/// Returns the CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Waits for a word on rank 0, while rank 1 sleeps outside the fabric and then writes it. Returns
/// the CPU time that rank 0's wait burnt.
async fn wait(fabric: Fabric) -> ProgramResult<Duration> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.local_word::<u64>(region.at(Rank::new(0), 0));
    let mut burnt = Duration::ZERO;
    if fabric.rank() == Rank::new(0) {
        let begun = cpu_time();
        fabric.wait_until(&word?, Deps::All, |value| value == 1).await?;
        burnt = cpu_time() - begun;
    } else {
        std::thread::sleep(IDLE);
        fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?, 1).await?;
    }
    world.barrier().await?;
    Ok(burnt)
}

pub(super) fn waiting_burns_no_cpu() {
    type Runner = fn(Fabric) -> ProgramResult<Duration>;
    let runners: [(&str, Runner); 3] = [
        ("block_on", |fabric| block_on(wait(fabric))),
        ("current-thread runtime", |fabric| {
            tokio::runtime::Builder::new_current_thread().build()?.block_on(wait(fabric))
        }),
        ("multi-thread runtime", |fabric| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
            runtime.block_on(async { tokio::spawn(wait(fabric)).await? })
        }),
    ];
    for (name, runner) in runners {
        let burnt = Threads::new(2).segment_bytes(1 << 20).run_with(runner).unwrap()[0];
        println!("{name}: {burnt:?} of CPU in {IDLE:?}");
        // Busy polling would burn all of it.
        assert!(burnt < IDLE / 4, "{name} burnt {burnt:?} while it waited for {IDLE:?}");
    }
}
