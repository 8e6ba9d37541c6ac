//! Active target: fences, post and start.

use super::everywhere;
use rdma_fabric::{Deps, Fabric, ProgramResult, Rank};
use rma_lock::{Op, Window, WindowError};

/// Each rank puts to both neighbours between fences, `rounds` times.
async fn fenced(fabric: Fabric, rounds: u64) -> ProgramResult<Vec<u64>> {
    let window = Window::<u64>::allocate(&fabric, 3).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    let mut epoch = window.fence().await?;
    for round in 0..rounds {
        epoch.at(Rank::new((me + 1) % ranks))?.put(0, [round * 10 + u64::from(me)]).await?;
        epoch.at(Rank::new((me + ranks - 1) % ranks))?.put(1, [round * 10 + u64::from(me)]).await?;
        epoch.at(Rank::new(0))?.accumulate(2, Op::Sum, &[1]).await?;
        epoch.fence().await?;
        let mut seen = [0; 2];
        window.read(0, &mut seen)?;
        let want = [(me + ranks - 1) % ranks, (me + 1) % ranks].map(|from| round * 10 + u64::from(from));
        if seen != want {
            return Err(format!("{seen:?} in round {round}, not {want:?}").into());
        }
        // All ranks must have checked before any rank puts again.
        epoch.fence().await?;
    }
    epoch.end().await?;
    let sum = window.load(2)?;
    window.free().await?;
    Ok(vec![sum])
}

#[test]
fn fences_complete_what_was_done_between_them() {
    for ranks in [1, 2, 3, 5] {
        let all = everywhere(ranks, &async |fabric| fenced(fabric, 6).await);
        assert_eq!(all[0], [6 * ranks as u64]);
    }
}

/// A pipeline: each rank receives from its predecessor and sends to its successor.
async fn pipeline(fabric: Fabric, rounds: u64, tests: bool) -> ProgramResult<u64> {
    let window = Window::<u64>::allocate(&fabric, 1).await?;
    let (me, last) = (fabric.rank().number(), fabric.ranks() as u32 - 1);
    let mut sum = 0;
    for round in 0..rounds {
        let mut value = round;
        if me > 0 {
            window.write(0, &[u64::MAX])?;
            let mut exposure = window.post(&[Rank::new(me - 1)]).await?;
            if tests {
                while !exposure.test()? {
                    fabric.sleep(std::time::Duration::from_micros(1)).await;
                }
            } else {
                exposure.wait().await?;
            }
            value = window.load(0)?;
        }
        if me < last {
            let next = Rank::new(me + 1);
            let epoch = window.start(&[next]).await?;
            epoch.at(next)?.put(0, [value + 1]).await?;
            assert_eq!(epoch.at(Rank::new(me)).map(drop), Err(WindowError::NotInEpoch { rank: Rank::new(me) }));
            epoch.complete().await?;
        }
        sum += value;
    }
    window.free().await?;
    Ok(sum)
}

#[test]
fn post_and_start_meet_for_each_pair() {
    for tests in [false, true] {
        let all = everywhere(4, &async |fabric| pipeline(fabric, 10, tests).await);
        assert_eq!(all, [45, 55, 65, 75]);
    }
}

/// All ranks expose their memory to all others, and access all of it at the same time.
async fn all_to_all(fabric: Fabric, rounds: u64, no_check: bool) -> ProgramResult<Vec<u64>> {
    let ranks = fabric.ranks();
    let window = Window::<u64>::allocate(&fabric, ranks).await?;
    let me = fabric.rank();
    let others: Vec<_> = (0..ranks as u32).map(Rank::new).filter(|rank| *rank != me).collect();
    let mut seen = vec![0; ranks];
    for round in 1..=rounds {
        let (exposure, epoch) = if no_check {
            let exposure = window.post_no_check(&others).await?;
            window.barrier().await?;
            (exposure, window.start_no_check(&others).await?)
        } else {
            (window.post(&others).await?, window.start(&others).await?)
        };
        for rank in &others {
            epoch.at(*rank)?.put(me.index(), vec![round * (1 + me.index() as u64)]).await?;
        }
        // A dropped epoch is completed nevertheless.
        if round % 2 == 0 {
            epoch.complete().await?;
        } else {
            drop(epoch);
        }
        // The next exposure waits for a dropped one.
        if round < rounds {
            drop(exposure);
        } else {
            exposure.wait().await?;
        }
        window.read(0, &mut seen)?;
    }
    window.free().await?;
    Ok(seen)
}

#[test]
fn everybody_may_expose_and_reach_at_once() {
    for no_check in [false, true] {
        let all = everywhere(3, &async |fabric| all_to_all(fabric, 4, no_check).await);
        assert_eq!(all, [[0, 8, 12], [4, 0, 12], [4, 8, 0]]);
    }
}

/// Fences and starts that are dropped before they complete can be continued.
async fn dropped(fabric: Fabric) -> ProgramResult<u64> {
    let window = Window::<u64>::allocate(&fabric, 1).await?;
    let (me, ranks) = (fabric.rank(), fabric.ranks() as u32);
    let late = me.number() + 1 == ranks;
    let soon = || fabric.now().plus_picos(1000);
    let region = fabric.alloc_symmetric(8).await?;
    if late {
        fabric
            .wait_until(&region.word::<u64>(&fabric, 0)?, Deps::All, |gave_up| gave_up + 1 == u64::from(ranks))
            .await?;
    } else {
        for _ in 0..3 {
            assert!(fabric.before(soon(), window.fence()).await.is_none(), "not all can have come");
        }
        let late = Rank::new(ranks - 1);
        fabric.fetch_add(&fabric.remote_word::<u64>(region.at(late, 0))?, 1).await?;
    }
    let epoch = window.fence().await?;
    epoch.at(Rank::new(0))?.accumulate(0, Op::Sum, &[1]).await?;
    epoch.end().await?;
    let sum = window.load(0)?;
    if me.number() == 0 && ranks > 1 {
        let target = Rank::new(ranks - 1);
        for _ in 0..3 {
            assert!(fabric.before(soon(), window.start(&[target])).await.is_none(), "nobody can have posted");
        }
        window.barrier().await?;
        let epoch = window.start(&[target]).await?;
        epoch.at(target)?.put(0, [5]).await?;
        epoch.complete().await?;
    } else {
        window.barrier().await?;
        if late && ranks > 1 {
            let exposure = window.post(&[Rank::new(0)]).await?;
            assert!(fabric.before(fabric.now(), exposure.wait()).await.is_none_or(|over| over.is_ok()));
            let again = window.post(&[]).await?;
            again.wait().await?;
            assert_eq!(window.load(0)?, 5);
        }
    }
    window.free().await?;
    Ok(sum)
}

#[test]
fn dropped_calls_can_be_made_again() {
    for ranks in [2, 3] {
        assert_eq!(everywhere(ranks, &dropped)[0], ranks as u64);
    }
}
