//! Guests that fork, as C programs do: the processes that they fork are not the rank, at any time
//! and however they end.

#![allow(unsafe_code)]

use crate::run;
use onesided::{Backend, Deps, Fabric, FabricError, Group, ProgramResult, Rank, block_on, sim::shm::Launcher};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use std::{process::ExitCode, thread, time::Duration};

// SAFETY: the C library's functions, as POSIX declares them.
unsafe extern "C" {
    fn fork() -> i32;
    fn exit(code: i32) -> !;
}

pub(super) fn forked_processes_are_not_the_guest() {
    let ended = run(&["forks-launch"]);
    assert!(ended.status.success() && ended.printed().contains("left before its child\n"), "{ended:?}");
}

/// Starts two guests.
pub(super) fn launch() -> ExitCode {
    let own = std::env::current_exe().expect("own path");
    let code = Launcher::new(2).segment_bytes(1 << 20).command(own, ["forks"]).run();
    ExitCode::from(code.expect("the ranks start").clamp(0, 255) as u8)
}

/// Plays a guest.
pub(super) fn guest() -> ExitCode {
    let fabric = Box::leak(Box::new(Backend::Shm.attach().expect("a rank")));
    block_on(play(fabric)).expect("a good end");
    ExitCode::SUCCESS
}

/// Forks a process that exits after `life`. Returns its number.
fn fork_for(life: Duration) -> Pid {
    // SAFETY: this process has one thread, so the child holds everything that the thread holds.
    let child = unsafe { fork() };
    if child == 0 {
        thread::sleep(life);
        // SAFETY: no other code in the child calls this.
        unsafe { exit(0) }
    }
    Pid::from_raw(child).expect("a child")
}

/// Rank 0 forks a process that ends before it, and one that would end long after it.
async fn play(fabric: &Fabric) -> ProgramResult<()> {
    let first = Rank::new(0);
    let (mut world, memory) = (Group::world(fabric).await?, fabric.alloc_symmetric(8).await?);
    let child = memory.word::<u64>(fabric, 0)?;
    if fabric.rank() == first {
        // Connects it to the launcher, and so the processes that it forks.
        std::mem::forget(fabric.register(vec![1u8; 100])?);
        let short = fork_for(Duration::from_millis(20));
        waitpid(Some(short), WaitOptions::empty())?;
        world.barrier().await?;
        let long = fork_for(Duration::from_secs(60));
        fabric.put_word(&memory.word_of(fabric, Rank::new(1), 0)?, long.as_raw_nonzero().get() as u64).await?;
        std::process::exit(0);
    }
    world.barrier().await?;
    let child = fabric.wait_until(&child, Deps::One(first), |child| child != 0).await?;
    let child = Pid::from_raw(child as i32).ok_or("a child")?;
    let gone = fabric.wait_until(&memory.word::<u64>(fabric, 0)?, Deps::One(first), |_| false).await;
    assert_eq!(gone, Err(FabricError::PeersLeft));
    test_kill_process(child)?;
    kill_process(child, Signal::KILL)?;
    println!("left before its child");
    Ok(())
}
