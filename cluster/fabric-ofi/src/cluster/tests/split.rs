//! Transfers that exceed the network's limit.

use super::*;
use rdma_fabric::Deps;

/// Not a multiple of the limit, or of a word.
const LEN: usize = 10 * 4096 + 13;

fn bytes(seed: u8) -> Vec<u8> {
    (0..LEN).map(|at| (at / 7) as u8 ^ seed).collect()
}

#[test]
fn puts_and_gets_of_all_kinds_are_split() {
    [8, 4, 0].into_iter().for_each(all_kinds_are_split);
}

fn all_kinds_are_split(data_bytes: usize) {
    let ranks = Ranks::over(2, || domain_with_data(data_bytes).limited(4096));
    let (there, own) = (ranks.region(1, LEN), ranks.region(0, LEN));
    let (fabric, at) = (ranks.members[0].fabric(), ranks.members[1].fabric());
    let to = fabric.remote_span::<u8>(ranks.at(1, &there), LEN).unwrap();
    let mine = own.span::<u8>(&fabric, 0, LEN).unwrap();
    let arrived = || {
        let mut seen = vec![0; LEN];
        at.read(&there.span::<u8>(&at, 0, LEN).unwrap(), &mut seen).unwrap();
        seen
    };
    block_on(async {
        fabric.put_slice(&to, &bytes(1)).await.unwrap();
        fabric.flush(Rank::new(1)).await.unwrap();
        assert!(arrived() == bytes(1));
        assert!(fabric.get(&to, vec![0; LEN]).await.unwrap() == bytes(1));
        fabric.write(&mine, &bytes(2)).unwrap();
        let mine = fabric.put(&to, mine).await.unwrap();
        fabric.flush(Rank::new(1)).await.unwrap();
        assert!(arrived() == bytes(2));
        at.write(&there.span::<u8>(&at, 0, LEN).unwrap(), &bytes(3)).unwrap();
        let mine = fabric.get(&to, mine).await.unwrap();
        let mut seen = vec![0; LEN];
        fabric.read(&mine, &mut seen).unwrap();
        assert!(seen == bytes(3));
        fabric.put_slice_notify(&to, &bytes(4), 8).await.unwrap();
        let notice = at.next_notice(Deps::Ranks(&[Rank::new(0)])).await.unwrap();
        assert_eq!((notice.data, notice.end), (8, LEN as u64));
        assert!(arrived() == bytes(4));
        fabric.write(&mine, &bytes(5)).unwrap();
        let _mine = fabric.put_notify(&to, mine, 9).await.unwrap();
        at.next_notice(Deps::Ranks(&[Rank::new(0)])).await.unwrap();
        assert!(arrived() == bytes(5));
    });
    assert!(ranks.members[0].quiesce(LONG));
}

#[test]
fn a_region_is_not_given_up_between_two_parts() {
    let ranks = Ranks::over(2, || domain().limited(4096));
    for round in 0..20 {
        let region = ranks.region(1, 256 << 10);
        let fabric = ranks.members[0].fabric();
        let to = fabric.remote_span::<u8>(ranks.at(1, &region), 256 << 10).unwrap();
        drop(fabric.try_put(&to, vec![0xee_u8; 256 << 10], None));
        drop(region);
        // It has the same memory.
        let next = ranks.members[1].fabric().alloc(256 << 10).unwrap();
        thread::sleep(Duration::from_millis(2));
        let here = ranks.members[1].fabric();
        let mut seen = vec![0; 256 << 10];
        here.read(&next.span::<u8>(&here, 0, 256 << 10).unwrap(), &mut seen).unwrap();
        assert!(seen.iter().all(|byte| *byte == 0), "round {round}");
    }
    assert!(ranks.members[0].quiesce(LONG));
}
