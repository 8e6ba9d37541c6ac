//! Operations whose descriptor is built once.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, Prepared, ProgramResult, Rank, Refused,
    join::join_all,
    op::{Atomic, Get, Put},
};

pub(super) async fn is_posted_as_often_as_wanted(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let me = fabric.rank().number();
    let ranks = fabric.ranks() as u32;
    let (next, before) = (Rank::new((me + 1) % ranks), Rank::new((me + ranks - 1) % ranks));

    // Atomics: the operand may change between two postings, and they may be in flight together.
    let word = fabric.remote_word::<u64>(region.at(next, 0))?;
    let mut add = Prepared::new(&fabric, Atomic { word: &word, amo: Amo::Add(1) }).await?;
    for value in 0..3 {
        ensure_eq!(add.run().await?, value, "O19: an atomic");
    }
    add.set(Amo::Add(10));
    ensure_eq!(add.run().await?, 3, "O19: another operand");
    ensure_eq!(add.run().await?, 13, "O19: it stays");
    add.set(Amo::CompareSwap { expected: 23, new: 0 });
    ensure_eq!(add.run().await?, 23, "O19: another operation");
    add.set(Amo::Add(1));
    let mut posted = Vec::new();
    for _ in 0..4 {
        posted.push(add.post().await?);
    }
    let mut seen = join_all(posted).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    seen.sort_unstable();
    ensure_eq!(seen, [0, 1, 2, 3], "O19: postings in flight together");

    // A put reads its source each time; a get writes its destination each time.
    let own = fabric.alloc(64)?;
    let (source, back) = (own.span::<u64>(&fabric, 0, 2)?, own.span::<u64>(&fabric, 16, 2)?);
    let span = fabric.remote_span::<u64>(region.at(next, 16), 2)?;
    let put = Prepared::new(&fabric, Put { to: &span, from: source.clone(), notice: None }).await?;
    let get = Prepared::new(&fabric, Get { from: &span, to: back.clone() }).await?;
    let read = |span| {
        let mut values = [0; 2];
        fabric.read(span, &mut values).map(|()| values)
    };
    for values in [[1, 2], [3, 4]] {
        fabric.write(&source, &values)?;
        put.run().await?;
        fabric.flush(next).await?;
        get.run().await?;
        ensure_eq!(read(&back)?, values, "O19: a put and a get");
    }
    fabric.write(&source, &[5, 6])?;
    put.post().await?.await?;
    fabric.flush(next).await?;
    let filled = get.post().await?.await?;
    ensure_eq!(read(&filled)?, [5, 6], "O19: what a handle yields");
    drop(put);

    let noting = Prepared::new(&fabric, Put { to: &span, from: source, notice: Some(7) }).await?;
    noting.run().await?;
    noting.run().await?;
    for _ in 0..2 {
        ensure_eq!(fabric.next_notice(Deps::One(before)).await?.data, 7, "O19: a notice for each posting");
    }

    // Errors are reported when the operation is prepared or posted, as with plain operations.
    let short = own.span::<u64>(&fabric, 0, 1)?;
    let refused = Prepared::new(&fabric, Put { to: &span, from: short, notice: None }).await.map(drop);
    ensure_eq!(refused, Err(FabricError::length_mismatch(1, 2)), "O19, O10: a put of the wrong length");
    world.barrier().await?;
    let local = fabric.alloc(8)?;
    let word = fabric.remote_word::<u64>(local.at(fabric.rank(), 0))?;
    let late = Prepared::new(&fabric, Atomic { word: &word, amo: Amo::Add(1) }).await?;
    let stale = FabricError::StaleRegion { rank: fabric.rank(), region: local.key() };
    drop(local);
    ensure_eq!(late.run().await, Err(stale.clone()), "O19, M3: a region that has gone");
    match late.try_post() {
        Err(Refused::Failed(error, ())) => ensure_eq!(error, stale, "O19, M3: posted"),
        other => ensure!(false, "O19, M3: posted: {other:?}"),
    }
    Ok(())
}
