//! Nodes that are threads of this process and exchange nothing but control records.

mod commands;

use super::*;
use crate::{block_on, memory::layout, waiting::doorbell::Watch};
use std::{
    sync::{Mutex, OnceLock, atomic::AtomicU64, atomic::Ordering::Relaxed},
    thread,
};

fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Relaxed)
}

fn plan(ranks: usize, local: &[u32], me: u32) -> PartPlan {
    let local = local.iter().copied().map(Rank::new).collect();
    let (segment_bytes, age) = (1 << 20, Duration::from_secs(3));
    PartPlan { ranks, local, me: Rank::new(me), segment_bytes, age, oversubscribed: true }
}

/// Creates the parts of all ranks of these nodes, in rank order.
fn parts(nodes: &[&[u32]]) -> Vec<Part> {
    let ranks = nodes.iter().map(|node| node.len()).sum();
    let mut parts: Vec<Part> = Vec::new();
    for node in nodes {
        let number = number();
        let others = node[1..].iter().map(|&me| plan(ranks, node, me));
        let others: Vec<_> = others.map(|plan| thread::spawn(move || Part::join(&plan, number, 5))).collect();
        parts.push(Part::lead(&plan(ranks, node, node[0]), number, 5).unwrap());
        parts.extend(others.into_iter().map(|other| other.join().unwrap().unwrap()));
    }
    parts.sort_by_key(|part| part.fabric().rank());
    parts
}

/// Passes the control records of each rank on to the first rank of each other node.
fn connect(parts: &[Part]) {
    let all: Arc<OnceLock<Vec<Part>>> = Arc::default();
    for part in parts {
        let (me, all) = (part.fabric().rank(), all.clone());
        let order = Mutex::new(());
        part.on_control_record(move |control_record| {
            let _turn = order.lock().unwrap();
            let all = all.get().expect("set before anybody says something");
            let elsewhere = all.iter().filter(|other| !other.local().contains(&me));
            elsewhere
                .filter(|other| other.local()[0] == other.fabric().rank())
                .for_each(|first| first.control_record(me, &control_record).unwrap());
        });
    }
    all.set(parts.to_vec()).unwrap();
}

#[test]
fn no_fabric_of_a_part_lends_references() {
    let parts = parts(&[&[0], &[1]]);
    connect(&parts);
    let fabrics: Vec<_> = parts.iter().map(Part::fabric).collect();
    let copies = |fabric: &Fabric| fabric.caps().locked_memory == rdma_fabric::LockedMemory::Copies;
    assert!(fabrics.iter().all(copies), "a part resolves protected memory for ranks elsewhere");
    let protected = fabrics[0].protected(rdma_fabric::AccessPolicy::copies([1, 2])).unwrap();
    assert!(copies(&protected));
    let region = protected.alloc(64).unwrap();
    let addr = region.at(Rank::new(0), 0);
    assert!(matches!(fabrics[0].remote_word::<u64>(addr), Err(FabricError::Locked { .. })));
    let place = parts[0].place(region.key(), 0, 64, 8).unwrap();
    assert!(parts[0].has_resolved(&place) && !parts[1].has_resolved(&place), "of another node's job");
    assert!(matches!(region.mapped(&protected, Rank::new(0)), Err(FabricError::NotMapped { .. })));
}

#[test]
fn who_waits_for_other_bytes_than_were_written_sleeps_on() {
    let parts = parts(&[&[0], &[1]]);
    let parking = parts[0].endpoint.kept_segment().prepare_park(Watch::Word(layout::HEAP + 640));
    for elsewhere in [0..640, 648..4096, u64::MAX - 8..u64::MAX] {
        parts[0].wake_for(elsewhere.clone());
        assert!(!parking.was_rung(), "{elsewhere:?}");
    }
    parts[0].wake_for(640..641);
    assert!(parking.was_rung());
}

#[test]
fn ranks_of_three_nodes_allocate_together() {
    let parts = parts(&[&[0, 3], &[1], &[2, 4]]);
    connect(&parts);
    let regions = thread::scope(|scope| {
        let ranks: Vec<_> = parts
            .iter()
            .map(|part| {
                scope.spawn(|| {
                    block_on(async {
                        let fabric = part.fabric();
                        let first = fabric.alloc_symmetric(100).await.unwrap();
                        let second = fabric.alloc_symmetric(64).await.unwrap();
                        drop(first);
                        let third = fabric.alloc_symmetric(4096).await.unwrap();
                        (second.key(), third.key(), part.locate(third.key()).unwrap(), second, third)
                    })
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
    });
    for (second, third, at, ..) in &regions {
        assert_eq!((*second, *third, *at), (regions[0].0, regions[0].1, regions[0].2));
    }
    assert_eq!(regions[0].2.len, 4096);
}

#[test]
fn memory_that_a_network_does_not_register_is_not_allocated() {
    let parts = parts(&[&[0], &[1]]);
    connect(&parts);
    let together = || {
        thread::scope(|scope| {
            let alloc = |part: &Part| block_on(part.fabric().alloc_symmetric(100)).map(drop);
            let ranks: Vec<_> = parts.iter().map(|part| scope.spawn(move || alloc(part))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let refusal = FabricError::System { call: &"fi_mr_reg", errno: 12 };
    let refuses = refusal.clone();
    parts[1].on_export(move |range| if range.len() >= 64 { Err(refuses.clone()) } else { Ok(()) });
    assert_eq!(parts[1].fabric().alloc(8).map(drop), Err(refusal.clone()));
    let refused = together();
    assert!(matches!(&refused[0], Err(FabricError::OutOfMemory(of)) if of.rank == Rank::new(1)), "{refused:?}");
    assert_eq!(refused[1], Err(refusal));
    let (asked, asks) = (std::sync::Arc::new(std::sync::Mutex::new(Vec::new())), parts[1].heap().len());
    let told = asked.clone();
    parts[1].on_export(move |range| {
        told.lock().unwrap().push(range);
        Ok(())
    });
    let local = parts[1].fabric().alloc(100).unwrap();
    assert_eq!(together(), [Ok(()), Ok(())]);
    let at = parts[1].locate(local.key()).unwrap().at as usize;
    assert_eq!(*asked.lock().unwrap(), [at..asks, 0..128]);
}

#[test]
fn a_loss_elsewhere_ends_an_allocation() {
    let parts = parts(&[&[0], &[1]]);
    connect(&parts);
    thread::scope(|scope| {
        let waits = scope.spawn(|| block_on(parts[0].fabric().alloc_symmetric(8)).map(drop));
        thread::sleep(Duration::from_millis(20));
        parts[0].lost(&[Rank::new(1)], true);
        assert_eq!(waits.join().unwrap(), Err(FabricError::PeerLost { rank: Rank::new(1) }));
    });
    assert_eq!(parts[0].objection(Rank::new(1)), Some(FabricError::PeerLost { rank: Rank::new(1) }));
    assert_eq!((parts[0].fate(Rank::new(1)), parts[1].fate(Rank::new(0))), (Fate::Lost, Fate::Running));
}

#[test]
fn whoever_of_the_node_tells_a_loss_elsewhere_tells_all_of_it() {
    let parts = parts(&[&[0, 1], &[2], &[3]]);
    parts[0].lost(&[Rank::new(2)], true);
    let lost = FabricError::PeerLost { rank: Rank::new(2) };
    assert_eq!(parts[1].outlook(&Deps::One(Rank::new(2))), Err(lost.clone()), "its waits end");
    assert_eq!(parts[1].objection(Rank::new(2)), Some(lost), "and so do its operations");
    for part in &parts[..2] {
        assert_eq!(part.objection(Rank::new(3)), None, "ranks elsewhere are lost one by one");
        assert_eq!(part.outlook(&Deps::One(Rank::new(3))), Ok(()));
    }
}

#[test]
fn notices_of_ranks_elsewhere_are_taken_like_others() {
    let parts = parts(&[&[1], &[0]]);
    let here = &parts[0];
    let region = here.fabric().alloc(64).unwrap();
    assert_eq!(here.notify(Rank::new(1), 77, region.key(), 8), Ok(true));
    let notice = block_on(here.fabric().next_notice(Deps::All)).unwrap();
    assert_eq!((notice.from, notice.data, notice.end), (Rank::new(1), 77, 8));
    let mut taken = 0;
    while here.notify(Rank::new(1), 1, region.key(), 0).unwrap() {
        taken += 1;
    }
    assert!(taken > 100, "a ring has an end");
}

#[test]
fn an_end_elsewhere_is_told() {
    let parts = parts(&[&[0], &[1]]);
    parts[0].left(Rank::new(1));
    assert_eq!(parts[0].outlook(&Deps::All), Err(FabricError::PeersLeft));
    parts[0].aborted(Rank::new(1), "enough", 3);
    let aborted = FabricError::Aborted { rank: Rank::new(1), code: 3 };
    assert_eq!(parts[0].objection(Rank::new(1)), Some(aborted.clone()));
    assert_eq!(parts[0].outlook(&Deps::All), Err(aborted));
}

#[test]
fn plans_that_make_no_job_are_refused() {
    for plan in [plan(2, &[1, 0], 0), plan(2, &[0], 1), plan(2, &[0, 2], 0), plan(2, &[], 0)] {
        assert!(matches!(Part::lead(&plan, number(), 1), Err(FabricError::Setting(_))), "{plan:?}");
    }
}

#[test]
fn a_rank_whose_first_has_ended_does_not_wait_for_it() {
    let lost = FabricError::PeerLost { rank: Rank::new(0) };
    let looks = std::cell::Cell::new(0);
    let goes_on = || {
        looks.set(looks.get() + 1);
        if looks.get() < 3 { Ok(()) } else { Err(lost.clone()) }
    };
    let error = Part::join_while(&plan(2, &[0, 1], 1), number(), 5, &goes_on).unwrap_err();
    assert_eq!((error, looks.get()), (lost.clone(), 3));
}

#[test]
fn nobody_is_handed_memory_without_the_secret() {
    let number = number();
    let first = Part::lead(&plan(2, &[0, 1], 0), number, 5).unwrap();
    let address = crate::processes::broker::BrokerAddress::new(number, 6);
    let connection = address.connect(Rank::new(1)).unwrap();
    assert!(connection.fetch(Rank::new(0)).is_err());
    let second = Part::join(&plan(2, &[0, 1], 1), number, 5).unwrap();
    let region = first.fabric().alloc(64).unwrap();
    let word = second.fabric().remote_word::<u64>(region.at(Rank::new(0), 8)).unwrap();
    block_on(second.fabric().fetch_add(&word, 4)).unwrap();
    assert_eq!(block_on(second.fabric().fetch_add(&word, 1)), Ok(4));
}

#[test]
fn a_region_that_no_program_has_is_dropped_by_who_knows_the_others() {
    let parts = parts(&[&[0], &[1]]);
    connect(&parts);
    let discarded = Arc::new(Mutex::new(Vec::new()));
    let kept = discarded.clone();
    parts[0].on_discard(move |region| kept.lock().unwrap().push(region.key()));
    let key = thread::scope(|scope| {
        scope.spawn(|| {
            let fabric = parts[0].fabric();
            let mut given_up = Box::pin(fabric.alloc_symmetric(64));
            let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
            assert!(given_up.as_mut().poll(&mut cx).is_pending(), "the other rank has not begun");
            drop(given_up);
            block_on(fabric.alloc_symmetric(128)).unwrap();
        });
        let other = scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            block_on(async {
                let first = parts[1].fabric().alloc_symmetric(64).await.unwrap();
                parts[1].fabric().alloc_symmetric(128).await.unwrap();
                first.key()
            })
        });
        other.join().unwrap()
    });
    assert_eq!(*discarded.lock().unwrap(), [key]);
}
