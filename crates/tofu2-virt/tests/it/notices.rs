//! Notices: order, content, limits.

use crate::start::{NETWORKS, at, fx100, meet};
use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Refused, op};
use std::time::Duration;
use tofu2_virt::{Job, Platform};

/// All other ranks send numbered notices to rank 0, which takes them slowly.
async fn many_to_one(fabric: Fabric, each: u64) -> ProgramResult<Vec<(u32, u64)>> {
    let home = fabric.alloc_symmetric(4096).await?;
    let me = fabric.rank().index();
    let mut got = vec![];
    if me > 0 {
        let place = fabric.remote_span::<u8>(at(0, home.key(), 64 * me), 16)?;
        for number in 0..each {
            fabric.put_notify(&place, vec![number as u8; 16], number).await?;
        }
    } else {
        for _ in 0..each * (fabric.ranks() as u64 - 1) {
            let notice = fabric.next_notice(Deps::All).await?;
            assert_eq!((notice.region, notice.end), (home.key(), 64 * notice.from.number() as u64 + 16));
            // The data were written before the notice.
            let span = fabric.local_span::<u8>(at(0, home.key(), notice.end as usize - 16), 16)?;
            let mut data = [0u8; 16];
            fabric.read(&span, &mut data)?;
            assert!(u64::from(data[0]) >= notice.data);
            got.push((notice.from.number(), notice.data));
            fabric.compute(Duration::from_nanos(700)).await;
        }
        assert_eq!(fabric.try_notice()?, None);
    }
    meet(&fabric, &home, 16).await?;
    Ok(got)
}

fn check(job: Job<'_>, each: u64) -> Vec<(u32, u64)> {
    let got = job.run(&async |fabric| many_to_one(fabric, each).await).unwrap().outs.swap_remove(0);
    for rank in 1..=5 {
        let of_rank: Vec<u64> = got.iter().filter(|(from, _)| *from == rank).map(|(_, data)| *data).collect();
        assert_eq!(of_rank, (0..each).collect::<Vec<_>>(), "notices of rank {rank}");
    }
    got
}

#[test]
fn notices_of_a_poster_keep_their_order_whatever_the_network_does() {
    for network in NETWORKS {
        check(fx100(6).network(network), 200);
        for seed in 0..5 {
            check(fx100(6).network(network).jitter(Duration::from_micros(3)).shuffle_ties(true).seed(seed), 100);
        }
    }
}

#[test]
fn a_full_notice_queue_loses_nothing_and_serves_in_order() {
    let platform = Platform::fx100().with("receive_queue", 3).unwrap();
    let got = check(checks::jobs::virtual_time(&platform, 6), 50);
    // No rank waits much longer than the others: places are granted in the order of the requests.
    for window in got[10..got.len() - 25].windows(15) {
        assert!((1..=5).all(|rank| window.iter().any(|(from, _)| *from == rank)), "{window:?}");
    }
}

async fn refused(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    if fabric.rank().number() == 1 {
        let to = fabric.remote_span::<u64>(at(0, home.key(), 0), 1)?;
        let put = |data| op::Put { to: &to, from: [1u64], notice: Some(data) };
        match fabric.try_post(put(256)) {
            Err(Refused::Failed(FabricError::NoticeTooWide { data: 256, bits: 8 }, _)) => {}
            _ => panic!("not refused as too wide"),
        }
        for _ in 0..2 {
            drop(fabric.try_post(put(255)).map_err(Refused::into_inner).expect("room for two"));
        }
        assert!(matches!(fabric.try_post(put(0)), Err(Refused::Full(_))));
        // A rank that waits for room and gives up leaves the place to other ranks.
        let soon = fabric.now() + Duration::from_nanos(10);
        assert!(fabric.before(soon, fabric.room(Some(Rank::new(0)))).await.is_none());
        fabric.flush_all().await?;
        fabric.put_word(&fabric.remote_word::<u64>(at(0, home.key(), 8))?, 1).await?;
        fabric.put_notify(&to, [1], 3).await?;
    } else {
        let go = fabric.local_word::<u64>(at(0, home.key(), 8))?;
        fabric.wait_until(&go, Deps::All, |go| go == 1).await?;
        fabric.sleep(Duration::from_micros(5)).await;
        for expected in [255, 255, 3] {
            assert_eq!(fabric.next_notice(Deps::All).await?.data, expected);
        }
    }
    meet(&fabric, &home, 16).await?;
    Ok(())
}

#[test]
fn notices_are_checked_and_refused_when_there_is_no_place() {
    let platform = Platform::fx100().with("receive_queue", 2).unwrap();
    checks::jobs::virtual_time(&platform, 2).run(&refused).unwrap();
}
