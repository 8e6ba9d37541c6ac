//! Jobs aborted by a rank (the last one in each case), as seen by the other ranks.

use super::loss_point::{LossPoint, victim};
use crate::{ensure, ensure_eq, harness::LAST_WORDS};
use rdma_fabric::{Amo, Deps, Fabric, FabricError, ProgramResult, Rank, Region, RemoteWord, op::Atomic};
use std::time::Duration;

pub(super) async fn every_rank_is_told_or_gone(fabric: Fabric) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    // Resolved in advance, so that later it is the operation that is refused.
    let theirs = fabric.remote_word::<u64>(region.at(Rank::new((me.number() + 1) % fabric.ranks() as u32), 8))?;
    let aborted = FabricError::Aborted { rank: last, code: LAST_WORDS.1 };
    if me != last {
        point.ready().await?;
        let word = region.word::<u64>(&fabric, 0)?;
        // Different waits are in progress when the abort happens. They have no deadline, because an
        // abort also ends waits for time.
        let end = match me.number() % 2 {
            0 => fabric.wait_until(&word, Deps::One(last), |v| v == 1).await,
            _ => fabric.next_notice(Deps::All).await.map(|notice| notice.data),
        };
        if end == Ok(1) {
            // The provider can't abort jobs.
            return Ok(());
        }
        ensure_eq!(end, Err(aborted.clone()), "E5: a wait");
        return all_fail(&fabric, &region, &theirs, aborted).await;
    }
    point.others_ready().await?;
    fabric.flush_all().await?;
    fabric.sleep(Duration::from_micros(700)).await;
    let Err(error) = fabric.abort(LAST_WORDS.0, LAST_WORDS.1);
    if let FabricError::Unsupported { .. } = error {
        for rank in (0..last.number()).map(Rank::new) {
            let to = fabric.remote_span::<u64>(region.at(rank, 0), 1)?;
            fabric.put_notify(&to, [1], 1).await?;
        }
        return Ok(());
    }
    ensure_eq!(error, aborted, "E5: what abort returns");
    let Err(again) = fabric.abort("said too late", 3);
    ensure_eq!(again, aborted, "E5: what abort returns the second time");
    all_fail(&fabric, &region, &theirs, aborted).await
}

/// Checks that every operation of a rank now fails with `aborted`, and returns that error.
async fn all_fail(
    fabric: &Fabric,
    region: &Region,
    theirs: &RemoteWord<u64>,
    aborted: FabricError,
) -> ProgramResult<()> {
    let before = fabric.now();
    fabric.sleep(Duration::from_secs(3600)).await;
    ensure!(fabric.now() < before + Duration::from_secs(60), "E5: slept on");
    let fails = Err::<(), _>(aborted.clone());
    ensure_eq!(fabric.fetch_add(theirs, 1).await.map(drop), fails, "E5: an atomic");
    ensure_eq!(fabric.put_word(theirs, 1).await, fails, "E5: a put");
    ensure_eq!(fabric.get_word(theirs).await.map(drop), fails, "E5: a get");
    ensure_eq!(fabric.flush_all().await, fails, "E5: a flush");
    ensure_eq!(fabric.remote_word::<u64>(theirs.addr()).map(drop), fails, "E5: resolving");
    let posted = fabric.post(Atomic { word: theirs, amo: Amo::Add(1) }).await;
    ensure_eq!(posted.map(drop), fails, "E5: a posted atomic");
    if fabric.ranks() > 1 {
        ensure_eq!(fabric.alloc_symmetric(8).await.map(drop), fails, "E5: an allocation with others");
    }
    let word = region.word::<u64>(fabric, 8);
    ensure_eq!(word.and_then(|word| fabric.load(&word)).map(drop), fails, "E5: a load");
    Err(aborted.into())
}
