//! The fabrics that a test runs over: machines whose control queues share their rank's address
//! space, so that every mode works.

use acp::{Acp, GlobalAddress};
use checks::jobs::{self, virtual_time};
use rdma_fabric::{Amo, Fabric, Program, Rank};
use std::{fmt::Debug, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Runs a program as threads and in virtual time, where operations may take up to 30 µs longer than
/// necessary and simultaneous events occur in any order; returns its results, which must be the
/// same.
#[track_caller]
pub(crate) fn everywhere<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + Debug,
{
    let real = threads(ranks).run(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    assert_eq!(real, in_virtual_time(ranks, program), "threads and virtual time differ");
    real
}

#[track_caller]
pub(crate) fn in_virtual_time<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    job(ranks).run(program).unwrap_or_else(|error| panic!("in virtual time: {error}")).outs
}

/// Runs a program that loses ranks on purpose, in both ways; returns the results of the ranks that
/// end successfully.
#[track_caller]
pub(crate) fn survivors<P: Program>(ranks: usize, program: &P) -> Vec<Option<P::Out>>
where
    P::Out: PartialEq + Debug,
{
    let (real, _) = threads(ranks).run_through(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    let real: Vec<_> = real.into_iter().map(Result::ok).collect();
    let (virt, _) = job(ranks).run_through(program).unwrap_or_else(|error| panic!("in virtual time: {error}"));
    assert_eq!(real, virt.outs, "threads and virtual time differ");
    real
}

/// The offset of [`meet`]'s counters in starter memory, beyond the words that tests use.
const MEETINGS: u64 = 1024;

/// Returns the value of a lock word that a rank holds.
pub(crate) fn held_by(rank: u32) -> u64 {
    0x6c6f_636b << 32 | u64::from(rank)
}

/// Waits until all of `ranks`, including the caller, have made the call number `turn` of this
/// function. Unlike a sync, it works before and after the loss of a rank: no rank returns while
/// another one still needs a reply from it.
pub(crate) async fn meet(acp: &Acp, fabric: &Fabric, ranks: &[u32], turn: u64) -> acp::Result<()> {
    let me = acp.rank();
    let counter = |rank| acp.starter(rank)?.offset_by(MEETINGS + 8 * turn);
    for rank in ranks.iter().copied().map(Rank::new).filter(|rank| *rank != me) {
        acp.fetch(counter(rank)?, Amo::Add(1u64)).await?;
    }
    while acp.load::<u64>(counter(me)?).await? < ranks.len() as u64 - 1 {
        fabric.sleep(Duration::from_micros(10)).await;
    }
    // In virtual time, an atomic takes effect before its poster receives the reply.
    fabric.sleep(Duration::from_millis(1)).await;
    Ok(())
}

#[track_caller]
fn threads(ranks: usize) -> Threads {
    jobs::threads(ranks).shared_address_space(true)
}

/// Returns the machine of virtual time.
pub(crate) fn machine() -> Platform {
    Platform::fx100().with("shared_tags", 1).expect("a constant of the platform")
}

#[track_caller]
fn job(ranks: usize) -> Job<'static> {
    virtual_time(&machine(), ranks).jitter(Duration::from_micros(30)).shuffle_ties(true)
}

/// Returns the start of each rank's starter memory.
pub(crate) fn starters(acp: &Acp) -> acp::Result<Vec<GlobalAddress>> {
    (0..acp.ranks() as u32).map(|rank| acp.starter(Rank::new(rank))).collect()
}
