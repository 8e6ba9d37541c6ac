//! Ranks that are lost or leave while others wait for them.

use super::{HANG, threads, word};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Refused, RemoteAddr, join::join, op};
use std::time::{Duration, Instant};

/// One rank fails or panics while the others wait for it.
async fn one_fails(fabric: Fabric, panics: bool) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(2) {
        std::thread::sleep(Duration::from_millis(30));
        assert!(!panics, "on purpose");
        return Err("on purpose".into());
    }
    let start = Instant::now();
    let mine = region.word::<u64>(&fabric, 0)?;
    let error = fabric.wait_until(&mine, Deps::All, |seen| seen != 0).await.unwrap_err();
    assert_eq!(error, FabricError::PeerLost { rank: Rank::new(2) });
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    let gone = RemoteAddr { rank: Rank::new(2), region: region.key(), offset: 0 };
    assert_eq!(fabric.remote_word::<u64>(gone).unwrap_err(), error);
    assert_eq!(fabric.flush(Rank::new(2)).await, Err(error.clone()));
    assert_eq!(fabric.room(Some(Rank::new(2))).await, Err(error.clone()));
    assert_eq!(fabric.alloc_symmetric(8).await.map(drop), Err(error.clone()));
    assert_eq!(fabric.next_notice(Deps::One(Rank::new(2))).await, Err(error.clone()));
    // The remaining ranks still work with each other.
    let peer = fabric.remote_word::<u64>(word(1 - fabric.rank().number(), region.key(), 0))?;
    fabric.put_word(&peer, 1).await?;
    let other = [Rank::new(1 - fabric.rank().number())];
    fabric.wait_until(&mine, Deps::Ranks(&other), |seen| seen == 1).await?;
    Err(error.into())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_lost_rank_ends_the_waits_that_depend_on_it() {
    let error = threads(3).run(&async |fabric| one_fails(fabric, false).await).unwrap_err().to_string();
    assert_eq!(error, "rank 2 failed: on purpose");
    let error = threads(3).run(&async |fabric| one_fails(fabric, true).await).unwrap_err().to_string();
    assert_eq!(error, "rank 2 panicked: on purpose");
}

/// Uses pointers that were resolved before their target was lost.
async fn stale_pointers(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(64).await?;
    if fabric.rank() == Rank::new(1) {
        let go = region.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&go, Deps::All, |seen| seen == 1).await?;
        return Err("on purpose".into());
    }
    let there = fabric.remote_word::<u64>(word(1, region.key(), 0))?;
    fabric.put_word(&there, 1).await?;
    let mine = region.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&mine, Deps::All, |_| false).await.unwrap_err();
    let lost = FabricError::PeerLost { rank: Rank::new(1) };
    assert_eq!(fabric.put_word(&there, 1).await, Err(lost.clone()));
    assert_eq!(fabric.get_word(&there).await, Err(lost.clone()));
    assert_eq!(fabric.fetch_add(&there, 1).await, Err(lost.clone()));
    assert_eq!(fabric.put(&there.as_span(), vec![1]).await, Err(lost.clone()));
    assert_eq!(fabric.get(&there.as_span(), vec![1]).await, Err(lost.clone()));
    assert_eq!(fabric.put_notify(&there.as_span(), [1], 1).await, Err(lost));
    Ok(())
}

#[test]
fn operations_on_a_lost_rank_are_refused() {
    assert_eq!(threads(2).run(&stale_pointers).unwrap_err().to_string(), "rank 1 failed: on purpose");
}

/// All ranks leave but rank 0, which waits for a write that never happens.
async fn all_leave(fabric: Fabric) -> ProgramResult<u64> {
    let region = fabric.alloc_symmetric(8).await?;
    let mine = region.word::<u64>(&fabric, 0)?;
    if fabric.rank() != Rank::new(0) {
        let there = fabric.remote_word::<u64>(word(0, region.key(), 0))?;
        fabric.fetch_add(&there, 1).await?;
        return Ok(0);
    }
    // Writes that the ranks made before they left take precedence.
    let n = fabric.ranks() as u64;
    fabric.wait_until(&mine, Deps::All, |seen| seen == n - 1).await?;
    let start = Instant::now();
    assert_eq!(fabric.wait_until(&mine, Deps::All, |seen| seen == n).await, Err(FabricError::PeersLeft));
    assert_eq!(fabric.next_notice(Deps::One(Rank::new(1))).await, Err(FabricError::PeersLeft));
    assert_eq!(fabric.alloc_symmetric(8).await.map(drop), Err(FabricError::PeersLeft));
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    // A joined task of this rank may still end its wait.
    let here = mine.as_remote();
    let (waited, _) = join(fabric.wait_until(&mine, Deps::All, |seen| seen == n), fabric.fetch_add(&here, 1)).await;
    Ok(waited?)
}

#[test]
fn waits_for_ranks_that_left_end() {
    for n in [2, 4] {
        assert_eq!(threads(n).run(&all_leave).unwrap()[0], n as u64);
    }
}

/// Rank 0 fills the queue of rank 1 and waits for room, while rank 1 leaves without having taken a
/// notice.
async fn no_reader(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        let go = region.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&go, Deps::All, |seen| seen == 1).await?;
        std::thread::sleep(Duration::from_millis(20));
        return Ok(());
    }
    let there = fabric.remote_word::<u64>(word(1, region.key(), 0))?;
    let notice = Some(0);
    let span = there.as_span();
    while fabric.try_post(op::Put { to: &span, from: [0u64], notice }).is_ok() {}
    // A failure that more room would not prevent is not reported as lack of room.
    match fabric.try_post(op::Put { to: &span, from: vec![0u64; 2], notice }) {
        Err(Refused::Failed(error, _)) => assert_eq!(error, FabricError::length_mismatch(2, 1)),
        _ => panic!("two elements put to one"),
    }
    fabric.put_word(&there, 1).await?;
    let start = Instant::now();
    assert_eq!(fabric.room(Some(Rank::new(1))).await, Err(FabricError::PeersLeft));
    assert!(start.elapsed() < HANG, "{:?}", start.elapsed());
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn nobody_waits_for_room_at_a_rank_that_left() {
    threads(2).run(&no_reader).unwrap();
}
