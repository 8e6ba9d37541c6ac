//! Memory is registered in pieces, when regions need them, and within the limit of pinned memory.

use super::{drain::reopened, *};
use crate::{OfiError, cluster::pieces::FIRST};
use rdma_fabric::{Deps, Fabric};

/// In three pieces.
const LONG_REGION: usize = 3 * FIRST + 4096;

fn bytes(seed: u8) -> Vec<u8> {
    (0..LONG_REGION).map(|at| (at / 7) as u8 ^ (at >> 16) as u8 ^ seed).collect()
}

#[test]
fn bytes_are_registered_as_regions_need_them() {
    let ranks = Ranks::new(2);
    let registered = |rank: usize| ranks.members[rank].registered_bytes();
    let fabric = ranks.members[1].fabric();
    assert_eq!([registered(0), registered(1)], [0, 0]);
    let _small: Vec<Region> = (0..10).map(|_| fabric.alloc(1000).unwrap()).collect();
    assert_eq!([registered(0), registered(1)], [0, FIRST]);
    // Symmetric memory is at the other end.
    let both = thread::scope(|scope| {
        let alloc = |member: &Arc<Member>| block_on(member.fabric().alloc_symmetric(FIRST + 1)).unwrap();
        let threads: Vec<_> = ranks.members.iter().map(|member| scope.spawn(move || alloc(member))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!([registered(0), registered(1)], [2 * FIRST, 3 * FIRST]);
    drop(both);
    let region = fabric.alloc(LONG_REGION).unwrap();
    let extent = LONG_REGION + 10 * 1024;
    assert!(registered(1) <= 2 * FIRST + 2 * extent, "{}", registered(1));
    drop(region);
    let before = registered(1);
    // Until its memory may be used again.
    thread::sleep(SHORT);
    let _again = fabric.alloc(LONG_REGION).unwrap();
    assert_eq!(registered(1), before);
}

/// Moves bytes between two regions, over the boundaries of their pieces, in every way.
fn move_all(ranks: &Ranks, there: &Region, own: &Region, seed: u8) {
    let (fabric, at) = (ranks.members[0].fabric(), ranks.members[1].fabric());
    let to = fabric.remote_span::<u8>(ranks.at(1, there), LONG_REGION).unwrap();
    let mine = own.span::<u8>(&fabric, 0, LONG_REGION).unwrap();
    let seen = |fabric: &Fabric, region: &Region| {
        let mut seen = vec![0; LONG_REGION];
        fabric.read(&region.span::<u8>(fabric, 0, LONG_REGION).unwrap(), &mut seen).unwrap();
        seen
    };
    block_on(async {
        fabric.put_slice(&to, &bytes(seed)).await.unwrap();
        fabric.flush(Rank::new(1)).await.unwrap();
        assert!(seen(&at, there) == bytes(seed));
        assert!(fabric.get(&to, vec![0; LONG_REGION]).await.unwrap() == bytes(seed));
        let mine = fabric.get(&to, mine).await.unwrap();
        assert!(seen(&fabric, own) == bytes(seed));
        fabric.write(&mine, &bytes(seed + 1)).unwrap();
        let _mine = fabric.put_notify(&to, mine, 9).await.unwrap();
        at.next_notice(Deps::Ranks(&[Rank::new(0)])).await.unwrap();
        assert!(seen(&at, there) == bytes(seed + 1));
    });
}

#[test]
fn transfers_cross_the_boundaries_of_pieces_also_under_new_keys() {
    let domain = domain();
    let ranks = Ranks::over(3, || domain.clone());
    // Of different offsets, so that the boundaries differ.
    let (_first, own, there) = (ranks.region(0, 5000), ranks.region(0, LONG_REGION), ranks.region(1, LONG_REGION));
    move_all(&ranks, &there, &own, 1);
    let registered = ranks.members[1].registered_bytes();
    let contacts = reopened(&ranks, 1, &[2]);
    // A piece that the contact data does not contain.
    let later = ranks.members[1].fabric().alloc(2 * FIRST).unwrap();
    ranks.members[..2].iter().for_each(|member| member.connect(&contacts).unwrap());
    ranks.members[..2].iter().for_each(|member| member.resume(&[Rank::new(2)]));
    assert!(ranks.members[1].registered_bytes() > registered);
    move_all(&ranks, &there, &own, 3);
    let fabric = ranks.members[0].fabric();
    let to = fabric.remote_span::<u8>(ranks.at(1, &later), 2 * FIRST).unwrap();
    block_on(fabric.put_slice(&to, &vec![7; 2 * FIRST])).unwrap();
    assert!(block_on(fabric.get(&to, vec![0; 2 * FIRST])).unwrap().iter().all(|byte| *byte == 7));
}

fn with_limit(bytes: u64) -> Domain {
    let mut offer = offer(Wanted::default().without_atomics());
    assert_eq!(offer.pin_limit, None, "a software provider pins nothing");
    offer.pin_limit = Some(bytes);
    Domain::open(&offer).unwrap()
}

#[test]
fn a_region_beyond_the_limit_of_pinned_memory_is_refused() {
    const LIMIT: usize = 2 << 20;
    let ranks = Ranks::over(2, || with_limit(LIMIT as u64));
    let fabric = ranks.members[1].fabric();
    let small = ranks.region(1, 64);
    let pinned = ranks.members[1].net.domain.registered_bytes();
    assert!(pinned > FIRST && pinned < LIMIT, "the endpoint's buffers, and a piece");
    let refused = fabric.alloc(LONG_REGION).map(drop);
    let Err(FabricError::OutOfMachineMemory(error)) = &refused else { panic!("{refused:?}") };
    assert_eq!((error.rank, error.available), (Rank::new(1), (LIMIT - pinned) as u64));
    // The pieces that it needs besides the first.
    assert!(error.requested >= LONG_REGION - FIRST && error.requested > LIMIT - pinned);
    let text = error.to_string();
    assert!(
        text.contains("rank 1") && text.contains("limit of 2097152 bytes") && text.contains("`ulimit -l`"),
        "{text}"
    );
    assert_eq!(ranks.members[1].net.domain.registered_bytes(), pinned, "nothing was registered for it");
    let to = ranks.members[0].fabric().remote_span::<u8>(ranks.at(1, &small), 64).unwrap();
    block_on(ranks.members[0].fabric().put_slice(&to, &[3; 64])).unwrap();
    assert!(fabric.alloc(64).is_ok());
}

#[test]
fn a_rank_that_can_t_pin_its_buffers_says_so() {
    let refused = Ranks::try_over(2, || with_limit(1 << 20), AtomicsBy::Cpu).map(drop);
    let Err(error @ OfiError::PinLimit { rank: Some(0), pinned: 0, limit: 1_048_576, .. }) = &refused else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().starts_with("rank 0: ") && error.to_string().contains("`ulimit -l`"), "{error}");
}
