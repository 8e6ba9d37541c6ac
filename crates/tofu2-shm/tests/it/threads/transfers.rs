//! Transfers, notices, symmetric memory, and the errors that a single rank can cause.

use super::{SMALL, threads, word};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, Group, ProgramResult, Rank, Refused, RegionKey, RemoteAddr, error::OutOfMemory,
    join::join, op,
};
use std::time::Duration;
use tofu2_shm::JobError;

/// Moves data of many lengths between registered and private memory, at odd offsets, and uses all
/// atomics.
async fn transfers(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(1 << 16).await?;
    let peer = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    let mut world = Group::world(&fabric).await?;
    for len in (0..70).chain([255, 1024, 5000, 30_001]) {
        for offset in [0u64, 1, 7, 64] {
            let there = RemoteAddr { rank: peer, region: region.key(), offset };
            let span = fabric.remote_span::<u8>(there, len)?;
            let data: Vec<u8> = (0..len).map(|i| (i * 31 + len) as u8).collect();
            let back = fabric.put(&span, data.clone()).await?;
            assert_eq!(back, data);
            fabric.flush(peer).await?;
            assert_eq!(fabric.get(&span, vec![0; len]).await?, data);
            let own = region.span::<u8>(&fabric, 32 * 1024 + 3, len)?;
            fabric.get(&span, own.clone()).await?;
            let mut copy = vec![0; len];
            fabric.read(&own, &mut copy)?;
            assert_eq!(copy, data);
        }
    }
    world.barrier().await?;
    let there = RemoteAddr { rank: peer, region: region.key(), offset: (1 << 16) - 4 };
    let small = fabric.remote_word::<u32>(there)?;
    let minus = u32::wrapping_neg;
    assert_eq!(fabric.swap(&small, minus(5)).await?, 0);
    assert_eq!(fabric.fetch_add(&small, minus(5)).await?, minus(5));
    assert_eq!(fabric.compare_swap(&small, minus(10), 12).await?, minus(10));
    assert_eq!(fabric.fetch_or(&small, 3).await?, 12);
    assert_eq!(fabric.fetch_and(&small, 6).await?, 15);
    assert_eq!(fabric.atomic(&small, Amo::Xor(2)).await?, 6);
    assert_eq!(fabric.get_word(&small).await?, 4);
    world.barrier().await?;
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn bytes_arrive_as_they_were_sent() {
    threads(2).run(&transfers).unwrap();
}

/// Sends notices until the target's queue is full, and more after that.
async fn notices(fabric: Fabric, count: u64) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8 * 1024).await?;
    let me = fabric.rank().number();
    if me == 0 {
        let mut next = vec![0; fabric.ranks()];
        let data = region.span::<u64>(&fabric, 0, 1024)?;
        let senders = fabric.ranks() as u64 - 1;
        std::thread::sleep(Duration::from_millis(20));
        for _ in 0..count * senders {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            assert_eq!(notice.data, next[from]);
            assert_eq!((notice.region, notice.end), (region.key(), 8 * (from as u64 + 1)));
            let mut bytes = vec![0; 1024];
            fabric.read(&data, &mut bytes)?;
            assert!(bytes[from] >= notice.data, "the notice overtook its put");
            next[from] += 1;
        }
        assert_eq!(fabric.try_notice()?, None);
    } else {
        let place = fabric.remote_span::<u64>(word(0, region.key(), 8 * u64::from(me)), 1)?;
        let mut refused = 0;
        for data in 0..count {
            let notice = Some(data);
            match fabric.try_post(op::Put { to: &place, from: [data], notice }) {
                Ok(handle) => drop(handle.await?),
                Err(Refused::Full(op)) => {
                    refused += 1;
                    fabric.post(op).await?.await?;
                }
                Err(Refused::Failed(error, _)) => return Err(error.into()),
            }
        }
        assert!(refused > 0, "the queue was never full");
    }
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn notices_arrive_in_order_after_their_data_and_never_get_lost() {
    threads(3).run(&async |fabric| notices(fabric, 20_000).await).unwrap();
}

/// Allocates symmetric regions: equal keys, reuse only after all ranks have dropped, mismatches,
/// exhaustion.
async fn symmetric(fabric: Fabric) -> ProgramResult<Vec<RegionKey>> {
    let (me, n) = (fabric.rank().number(), fabric.ranks() as u32);
    let mut world = Group::world(&fabric).await?;
    let mut keys = Vec::new();
    let first = fabric.alloc_symmetric(1000).await?;
    // Local allocations in between do not matter.
    let _local: Vec<_> = (0..me).map(|_| fabric.alloc(5000)).collect::<Result<_, _>>()?;
    let second = fabric.alloc_symmetric(2000).await?;
    fabric.write(&first.span::<u8>(&fabric, 0, 1000)?, &[7; 1000])?;
    world.barrier().await?;
    let kept = (me == 0).then_some(first);
    let third = fabric.alloc_symmetric(1000).await?;
    assert_ne!(third.key().index, keys.first().map_or(0, |key: &RegionKey| key.index));
    if let Some(kept) = &kept {
        assert_ne!(third.key().index, kept.key().index, "rank 0 has not dropped it");
    }
    drop(kept);
    let fourth = fabric.alloc_symmetric(1000).await?;
    let fifth = fabric.alloc_symmetric(1000).await?;
    let mut bytes = vec![1; 1000];
    fabric.read(&fourth.span::<u8>(&fabric, 0, 1000)?, &mut bytes)?;
    assert_eq!(bytes, vec![0; 1000], "zeroed again");
    keys.extend([second.key(), third.key(), fourth.key(), fifth.key()]);
    // Sizes differ: every rank gets an error, none hangs, and the next allocation works.
    let error = fabric.alloc_symmetric(if me == 1 { 8 } else { 16 }).await.map(drop).unwrap_err();
    assert!(matches!(&error, FabricError::Mismatch(differ) if differ.collective == "alloc_symmetric"), "{error}");
    // One rank has no room, so all fail.
    let big = if me == n - 1 { Some(fabric.alloc(SMALL / 2)?) } else { None };
    let error = fabric.alloc_symmetric(SMALL * 2 / 3).await.map(drop).unwrap_err();
    assert!(matches!(error, FabricError::OutOfMemory(_)), "{error}");
    drop(big);
    keys.push(fabric.alloc_symmetric(SMALL * 2 / 3).await?.key());
    // Two allocations at once, and one whose future is dropped midway.
    let (a, b) = join(fabric.alloc_symmetric(64), fabric.alloc_symmetric(128)).await;
    keys.extend([a?.key(), b?.key()]);
    if me == 0 {
        let now = fabric.now();
        drop(fabric.before(now, fabric.alloc_symmetric(192)).await);
    } else {
        keys.push(fabric.alloc_symmetric(192).await?.key());
    }
    keys.push(fabric.alloc_symmetric(256).await?.key());
    if me == 0 {
        keys.insert(keys.len() - 1, RegionKey::from_bits(0));
    }
    Ok(keys)
}

#[test]
fn symmetric_keys_agree() {
    for n in if cfg!(miri) { vec![2] } else { vec![2, 5] } {
        let mut out = threads(n).run(&symmetric).unwrap();
        let hole = out[0].len() - 2;
        out[0][hole] = out[1][hole];
        assert!(out.windows(2).all(|pair| pair[0] == pair[1]), "{out:?}");
    }
}

/// Causes each error of the contract that one rank can cause.
async fn errors(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(100)?;
    let (me, key) = (fabric.rank(), region.key());
    let at = |offset| RemoteAddr { rank: me, region: key, offset };
    let nobody = FabricError::NoSuchRank { rank: Rank::new(9), ranks: 1 };
    assert_eq!(fabric.remote_word::<u64>(word(9, key, 0)).unwrap_err(), nobody);
    assert_eq!(fabric.node(Rank::new(9)).unwrap_err(), nobody);
    assert_eq!(fabric.flush(Rank::new(9)).await.unwrap_err(), nobody);
    let wait = fabric.wait_until(&region.word::<u64>(&fabric, 0)?, Deps::One(Rank::new(9)), |_| false).await;
    assert_eq!(wait, Err(nobody));
    let misaligned = FabricError::misaligned(at(4), 8);
    assert_eq!(fabric.remote_word::<u64>(at(4)).unwrap_err(), misaligned);
    let outside = FabricError::out_of_bounds(at(96), 8, 100);
    assert_eq!(fabric.remote_word::<u64>(at(96)).unwrap_err(), outside);
    assert!(fabric.remote_word::<u32>(at(96)).is_ok());
    let unknown = RegionKey { index: key.index + 1, generation: 1 };
    assert_eq!(
        fabric.remote_word::<u64>(word(0, unknown, 0)).unwrap_err(),
        FabricError::NoSuchRegion { rank: me, region: unknown }
    );
    let span = fabric.remote_span::<u32>(at(0), 4)?;
    let mismatch = FabricError::length_mismatch(3, 4);
    assert_eq!(fabric.put(&span, [0u32; 3]).await.unwrap_err(), mismatch);
    assert_eq!(fabric.read(&region.span::<u32>(&fabric, 0, 4)?, &mut [0; 3]).unwrap_err(), mismatch);
    let out_of_memory = fabric.alloc(SMALL + 1).map(drop).unwrap_err();
    let none = OutOfMemory { rank: me, requested: SMALL + 1, available: SMALL - 128, segment: SMALL };
    assert_eq!(out_of_memory, none.into());
    let own = region.span::<u32>(&fabric, 0, 4)?;
    drop(region);
    let stale = FabricError::StaleRegion { rank: me, region: key };
    assert_eq!(fabric.put(&span, [0u32; 4]).await.unwrap_err(), stale);
    assert_eq!(fabric.get(&span, vec![0u32; 4]).await.unwrap_err(), stale);
    assert_eq!(fabric.read(&own, &mut [0; 4]).unwrap_err(), stale);
    assert_eq!(fabric.remote_word::<u64>(at(0)).unwrap_err(), stale);
    match fabric.try_post(op::Put { to: &span, from: vec![5u32; 4], notice: None }) {
        Err(Refused::Failed(error, op)) => assert_eq!((error, op.from), (stale, vec![5; 4])),
        _ => panic!("posted to a stale region"),
    }
    let all: Vec<_> = (0..).map_while(|_| fabric.alloc(0).ok()).collect();
    let full = fabric.alloc(0).map(drop).unwrap_err();
    assert_eq!(full, FabricError::TooManyRegions { rank: me, limit: all.len() });
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn misuse_is_a_typed_error() {
    threads(1).run(&errors).unwrap();
}

#[test]
fn impossible_jobs_are_refused() {
    for job in [checks::jobs::threads(0), threads(1).segment_bytes(0), threads(1).ranks_per_node(0)] {
        assert!(matches!(job.run(&errors), Err(JobError::Fabric(FabricError::Setting(_)))), "{job:?}");
    }
    let huge = checks::jobs::threads(1).segment_bytes(usize::MAX);
    assert!(matches!(huge.run(&errors), Err(JobError::Fabric(FabricError::Setting(_)))));
}
