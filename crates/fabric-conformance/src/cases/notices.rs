//! Notices.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank};

pub(super) async fn arrive_in_order_with_data(fabric: Fabric) -> ProgramResult<()> {
    // More than a notice queue of moderate depth holds while no rank takes any.
    const EACH: u64 = 120;
    let (mut world, region) = world_and_region(&fabric, 1024 * fabric.ranks()).await?;
    let target = Rank::new(0);
    let part = |rank: usize| 1024 * rank as u64;
    if fabric.rank() == target {
        world.barrier().await?;
        let mut next = vec![0u64; fabric.ranks()];
        for _ in 0..(fabric.ranks() as u64 - 1) * EACH {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            ensure!((1..fabric.ranks()).contains(&from), "N1: a notice from {}", notice.from);
            let i = next[from];
            ensure_eq!(notice.data, i % 200, "N3: data of notice {i} of {}", notice.from);
            let (offset, len) = (part(from) + 8 * (i % 100), 1 + (i % 8) as usize);
            ensure_eq!((notice.region, notice.end), (region.key(), offset + len as u64), "N1: notice {i}");
            // The bytes of this put, or of a later put to the same location.
            let mut bytes = vec![0u8; len];
            fabric.read(&region.span(&fabric, offset as usize, len)?, &mut bytes)?;
            ensure!(bytes.iter().all(|b| u64::from(*b) % 100 == i % 100), "N2: notice {i}: {bytes:?}");
            next[from] += 1;
        }
        ensure_eq!(fabric.try_notice()?, None, "N3: a notice too many");
    } else {
        let me = fabric.rank().index();
        world.barrier().await?;
        for i in 0..EACH {
            let (offset, len) = (part(me) + 8 * (i % 100), 1 + (i % 8) as usize);
            let to = fabric.remote_span::<u8>(region.at(target, offset), len)?;
            fabric.put_notify(&to, vec![(i % 100 + if i >= 100 { 100 } else { 0 }) as u8; len], i % 200).await?;
        }
    }
    Ok(world.barrier().await?)
}

pub(super) async fn empty_transfers(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    if fabric.rank() == Rank::new(1) {
        let to = fabric.remote_span::<u64>(region.at(Rank::new(0), 16), 0)?;
        fabric.put(&to, Vec::new()).await?;
        fabric.put_notify(&to, Vec::new(), 77).await?;
        ensure_eq!(fabric.get(&to, Vec::new()).await?, Vec::<u64>::new(), "O9: a get of nothing");
        fabric.flush(Rank::new(0)).await?;
        // The very end of the region has an address but no bytes.
        let end = fabric.remote_span::<u64>(region.at(Rank::new(0), 64), 0)?;
        fabric.put_notify(&end, Vec::new(), 78).await?;
    } else if fabric.rank() == Rank::new(0) {
        for (data, end) in [(77, 16), (78, 64)] {
            let notice = fabric.next_notice(Deps::One(Rank::new(1))).await?;
            let told = (notice.from, notice.data, notice.region, notice.end);
            ensure_eq!(told, (Rank::new(1), data, region.key(), end), "O9: a put of nothing");
        }
    }
    Ok(world.barrier().await?)
}

pub(super) async fn width_is_checked(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 64).await?;
    let bits = fabric.caps().notice_bits;
    let widest = u64::MAX >> (64 - bits);
    if fabric.rank() == Rank::new(1) {
        let to = fabric.remote_span::<u64>(region.at(Rank::new(0), 0), 1)?;
        if bits < 64 {
            let data = widest + 1;
            let refused = fabric.put_notify(&to, [1], data).await;
            ensure_eq!(refused.err(), Some(FabricError::NoticeTooWide { data, bits }), "N4");
        }
        fabric.put_notify(&to, [2], widest).await?;
    } else if fabric.rank() == Rank::new(0) {
        let notice = fabric.next_notice(Deps::All).await?;
        ensure_eq!(notice.data, widest, "N4: the widest data");
        ensure_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, 2, "N4: the refused put wrote nothing after");
    }
    Ok(world.barrier().await?)
}
