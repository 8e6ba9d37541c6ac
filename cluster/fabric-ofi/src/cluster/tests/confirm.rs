//! Flushes over networks that acknowledge puts before their bytes are visible.

use super::{drain::reopened, *};
use crate::cluster::core::Phase;
use rdma_fabric::{Fabric, RemoteAddr};

fn acknowledging() -> Domain {
    let mut offer = offer(Wanted::default().without_atomics());
    assert!(offer.delivery, "the software at the target answers");
    offer.delivery = false;
    Domain::open(&offer).unwrap()
}

fn put(fabric: &Fabric, to: RemoteAddr) {
    let to = fabric.remote_span::<u8>(to, 64).unwrap();
    block_on(fabric.put_slice(&to, &[7; 64])).unwrap();
}

/// Waits until all operations of rank 0 have completed.
fn settle(ranks: &Ranks) {
    assert!(becomes(|| {
        ranks.members[0].net.progress();
        ranks.with(0, |state| state.core.is_idle())
    }));
}

#[test]
fn a_flush_gets_once_from_each_rank_with_acknowledged_puts() {
    let ranks = Ranks::over(3, acknowledging);
    let regions = [1, 2].map(|rank| ranks.region(rank, 64));
    let at = |rank: usize| ranks.at(rank, &regions[rank - 1]);
    let (fabric, net) = (ranks.members[0].fabric(), &ranks.members[0].net);
    let reads = || ranks.members[0].counters().reads;
    put(&fabric, at(1));
    put(&fabric, at(1));
    settle(&ranks);
    assert!(net.has_unreported() && reads() == 0, "acknowledged, and not known to be visible");
    block_on(fabric.flush(Rank::new(2))).unwrap();
    assert!(net.has_unreported() && reads() == 0, "there is no put to it");
    block_on(fabric.flush(Rank::new(1))).unwrap();
    assert!(!net.has_unreported() && reads() == 1);
    block_on(fabric.flush(Rank::new(1))).unwrap();
    block_on(fabric.flush_all()).unwrap();
    assert_eq!(reads(), 1, "nothing was put");
    // The target's CPU answers.
    block_on(fabric.put_word(&fabric.remote_word::<u64>(at(1)).unwrap(), 3)).unwrap();
    let to = fabric.remote_span::<u8>(at(1), 64).unwrap();
    block_on(fabric.put_slice_notify(&to, &[8; 64], 1)).unwrap();
    block_on(fabric.flush(Rank::new(1))).unwrap();
    assert_eq!(reads(), 1);
    put(&fabric, at(1));
    put(&fabric, at(2));
    block_on(fabric.flush_all()).unwrap();
    assert!(!net.has_unreported() && reads() == 3);
    put(&fabric, at(2));
    assert!(ranks.members[0].quiesce(LONG) && !net.has_unreported() && reads() == 4, "a rank that ends");
}

#[test]
fn puts_that_are_visible_when_they_complete_need_no_get() {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    put(&ranks.members[0].fabric(), ranks.at(1, &region));
    block_on(ranks.members[0].fabric().flush(Rank::new(1))).unwrap();
    assert_eq!(ranks.members[0].counters().reads, 0);
}

#[test]
fn acknowledged_puts_to_a_lost_rank_end() {
    let domain = acknowledging();
    let ranks = Ranks::over(3, || domain.clone());
    let regions = [1, 2].map(|rank| ranks.region(rank, 64));
    let (fabric, net) = (ranks.members[0].fabric(), &ranks.members[0].net);
    put(&fabric, ranks.at(1, &regions[0]));
    put(&fabric, ranks.at(2, &regions[1]));
    settle(&ranks);
    let contacts = reopened(&ranks, 1, &[2]);
    ranks.members[..2].iter().for_each(|member| member.connect(&contacts).unwrap());
    ranks.members[..2].iter().for_each(|member| member.resume(&[Rank::new(2)]));
    assert!(net.has_unreported(), "the other rank still has one");
    block_on(fabric.flush_all()).unwrap();
    assert!(!net.has_unreported());
    assert_eq!(block_on(fabric.flush(Rank::new(2))), Err(FabricError::PeerLost { rank: Rank::new(2) }));
    ranks.kill(2);
}

#[test]
fn a_flush_over_a_failed_endpoint_is_an_error() {
    let ranks = Ranks::over(2, acknowledging);
    let region = ranks.region(1, 64);
    let fabric = ranks.members[0].fabric();
    put(&fabric, ranks.at(1, &region));
    settle(&ranks);
    ranks.with(0, |state| state.core.give_up(&network_error()));
    assert_eq!(ranks.with(0, |state| state.core.phase), Phase::Broken);
    assert_eq!(block_on(fabric.flush(Rank::new(1))), Err(network_error()));
    assert!(ranks.members[0].quiesce(LONG));
}
