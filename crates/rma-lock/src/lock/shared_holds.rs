//! Shared holds that one rank takes and another ends, under every delivery order.

use crate::{
    Guard,
    lock::OURS,
    locks::{AnonymousShared, PackedLock, RpLock, WritersFirstLock},
};
use explore::{Explorer, Probe};
use rdma_fabric::{Deps, Fabric, ProgramResult, Rank, Time};

const HOME: Rank = Rank::new(0);
/// The word at the home that may keep its last value.
const HEAD: u64 = 24;
/// A rank's published words.
const PUBLISHED: [u64; 2] = [64, 72];
const WRITER_INSIDE: u32 = 0;

/// Rank 0 takes a hold, rank 1 ends it, rank 2 writes.
async fn relay<L: AnonymousShared>(fabric: Fabric, options: L::Options) -> ProgramResult<()> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let (data, baton) = (region.at(HOME, 0), region.at(Rank::new(1), 8));
    let (data, probe) = (fabric.remote_word::<u64>(data)?, Probe::of(&fabric));
    match fabric.rank().number() {
        0 => {
            lock.hold(Time::MAX, OURS).await?;
            let seen = fabric.get_word(&data).await?;
            fabric.put_word(&fabric.remote_word(baton)?, seen + 1).await?;
        }
        1 => {
            let baton = fabric.wait_until(&fabric.local_word::<u64>(baton)?, Deps::All, |baton| baton != 0).await?;
            assert_eq!(probe.get(WRITER_INSIDE), 0, "a writer is inside");
            assert_eq!(fabric.get_word(&data).await?, baton - 1, "somebody wrote");
            lock.end_hold(OURS).await?;
        }
        _ => {
            let guard = lock.write().await?;
            probe.add(WRITER_INSIDE, 1);
            fabric.put_word(&data, 1).await?;
            probe.subtract(WRITER_INSIDE, 1);
            guard.release().await?;
        }
    }
    Ok(())
}

fn exhaust<L: AnonymousShared>(options: &L::Options) {
    let report = Explorer::new(3)
        .leave_together()
        .at_end("nobody holds it, and what ranks say of themselves adds up to nothing", move |view| {
            let lock: Vec<_> = view.words().filter(|(addr, _)| addr.region.index == 0).collect();
            let of_home = 8 * L::HOME_WORDS as u64;
            let free = lock
                .iter()
                .filter(|(addr, _)| addr.rank == HOME && addr.offset < of_home.min(HEAD))
                .all(|(_, value)| *value == 0);
            let published = lock.iter().filter(|(addr, _)| PUBLISHED.contains(&addr.offset));
            free && published.fold(0u64, |sum, (_, value)| sum.wrapping_add(*value)) == 0
        })
        .run(|fabric| relay::<L>(fabric, options.clone()));
    report.expect_exhausted();
    println!("{}: {report}", L::NAME);
}

#[test]
fn holds_pass_from_rank_to_rank() {
    exhaust::<RpLock>(&());
    exhaust::<PackedLock>(&());
    exhaust::<WritersFirstLock>(&());
}
