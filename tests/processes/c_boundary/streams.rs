//! A rank whose standard descriptors are closed when the library opens its files.

use crate::run;
use onesided::{
    Backend, Fabric, Group, ProgramResult, Rank, RegionKey, RemoteAddr, RemoteSpan, block_on, sim::shm::Launcher,
};
use rustix::io::{Errno, FdFlags, fcntl_getfd, write};
use std::{
    collections::BTreeSet,
    fs,
    os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd},
    process::ExitCode,
};

/// The descriptors that are closed.
const CLOSED: [&str; 5] = ["0", "1", "2", "12", "012"];

pub(crate) fn closed_descriptors_are_not_reused() {
    for closed in CLOSED {
        let ended = run(&["c-launch", &format!("closed-{closed}")]);
        assert!(ended.status.success(), "closed {closed}: {ended:?}");
    }
}

/// Starts two ranks, each of which closes descriptors of its own.
pub(crate) fn launch(closed: &str) -> ExitCode {
    let own = std::env::current_exe().expect("own path");
    let code = Launcher::new(2).segment_bytes(1 << 20).command(own, ["c-program", &format!("closed-{closed}")]).run();
    ExitCode::from(code.expect("the ranks start").clamp(0, 255) as u8)
}

/// Plays a rank. The program may have no stream for an error message: then its exit code is the
/// only report.
pub(crate) fn program(closed: &str) -> ExitCode {
    let numbers: Vec<RawFd> = closed.bytes().map(|digit| RawFd::from(digit - b'0')).collect();
    for &number in &numbers {
        // SAFETY: this process has one thread, and nothing in it owns its standard streams.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
    let before = open_now();
    let fabric = Backend::Shm.attach().expect("a rank");
    block_on(play(&fabric, &numbers, &before)).expect("a good end");
    ExitCode::SUCCESS
}

/// Returns the numbers of this process's descriptors.
fn open_now() -> BTreeSet<RawFd> {
    let numbers = fs::read_dir("/proc/self/fd").expect("a list of descriptors");
    let number = |entry: fs::DirEntry| entry.file_name().to_str().and_then(|name| name.parse().ok());
    // One of them was that of the list.
    numbers.filter_map(|entry| number(entry.expect("a descriptor"))).filter(|number| is_open(*number)).collect()
}

/// # Safety
/// Only looked at or written to, and then not by this process's own program: see [`program`].
fn borrowed(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: a number that is not open is an error of each call, and -1 is none of the numbers.
    unsafe { BorrowedFd::borrow_raw(number) }
}

fn is_open(number: RawFd) -> bool {
    fcntl_getfd(borrowed(number)).is_ok()
}

/// Opens all files that the library keeps: the job's memory, the own memory image, the peer's, and
/// the connection to the launcher.
async fn play(fabric: &Fabric, closed: &[RawFd], before: &BTreeSet<RawFd>) -> ProgramResult<()> {
    let (mut world, symmetric) = (Group::world(fabric).await?, fabric.alloc_symmetric(16).await?);
    let peer = Rank::new(1 - fabric.rank().number());
    let own = u64::from(fabric.rank().number()) + 7;
    let registered = fabric.register(vec![own; 1000])?;
    let key = registered.key();
    let words = [u64::from(key.index), u64::from(key.generation)];
    fabric.put_slice(&symmetric.span_of(fabric, peer, 0, 2)?, &words).await?;
    fabric.flush(peer).await?;
    world.barrier().await?;
    let mut got = [0u64; 2];
    fabric.get_slice(&symmetric.span_of(fabric, fabric.rank(), 0, 2)?, &mut got).await?;
    let region = RegionKey { index: got[0] as u32, generation: got[1] as u32 };
    let theirs: RemoteSpan<u64> = fabric.remote_span(RemoteAddr { rank: peer, region, offset: 0 }, 1000)?;
    let mut values = vec![0u64; 1000];
    fabric.get_slice(&theirs, &mut values).await?;
    assert!(
        values.iter().all(|value| *value == u64::from(peer.number()) + 7),
        "the memory that the peer has registered"
    );

    let kept: Vec<RawFd> = open_now().difference(before).copied().collect();
    assert!(kept.len() >= 4, "the files that the library keeps: {kept:?}");
    for number in kept {
        assert!(number > 2, "descriptor {number} is the library's");
        assert!(fcntl_getfd(borrowed(number))?.contains(FdFlags::CLOEXEC), "descriptor {number} is passed on");
    }
    for &number in closed {
        assert_eq!(write(borrowed(number), &[b'#'; 4096]), Err(Errno::BADF), "descriptor {number}");
    }
    world.barrier().await?;
    Ok(())
}
