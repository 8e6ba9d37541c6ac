//! What two ranks do to each other's memory.

use crate::pair::{BOUND, Rank};
use fabric_ofi::Amo;

/// The byte that stands at `place` in the pattern that `seed` makes.
fn pattern(seed: u64, place: usize) -> u8 {
    ((seed ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len).map(|place| pattern(seed, place)).collect()
}

/// The ranks throw bytes to and fro, whose notices have all 64 bits.
pub(crate) fn puts_arrive_and_tell(mut rank: Rank) {
    let lengths = [1, 8, 63, 64, 65, 1000, 4096, 16_385, 70_000];
    let (own, theirs) = rank.regions(2 * 70_000);
    for (round, len) in lengths.into_iter().cycle().take(200).enumerate() {
        let data = (round as u64 + 1).wrapping_mul(0xfedc_ba98_7654_3211);
        if round % 2 == rank.rank {
            own.write(70_000, &bytes(data, len)).unwrap();
            let put = rank.endpoint.put_with(rank.other, &own, 70_000..70_000 + len, theirs, 0, data).unwrap();
            rank.done(&put);
        } else {
            assert_eq!(rank.endpoint.wait_notice(BOUND).unwrap(), data);
            let mut seen = vec![0; len];
            own.read(0, &mut seen).unwrap();
            assert!(seen == bytes(data, len), "round {round}: {len} bytes");
        }
    }
    rank.meet();
    assert_eq!(rank.endpoint.notice().unwrap(), None, "a put tells once");
    rank.meet();
}

/// Each rank fetches what the other has written before both have met.
pub(crate) fn gets_bring_what_is_there(mut rank: Rank) {
    let (own, theirs) = rank.regions(1 << 17);
    let into = rank.domain.region(1 << 17).unwrap();
    let (mine, other) = (rank.rank as u64, 1 - rank.rank as u64);
    own.write(0, &bytes(mine, 1 << 17)).unwrap();
    rank.meet();
    for (offset, len) in [(0, 1), (3, 7), (8, 8), (100, 4096), (1, 65_000), (0, 1 << 17)] {
        let get = rank.endpoint.get(rank.other, &into, 0..len, theirs, offset).unwrap();
        assert_eq!(rank.done(&get), 0);
        let mut seen = vec![0; len];
        into.read(0, &mut seen).unwrap();
        assert!(seen == bytes(other, 1 << 17)[offset..offset + len], "{len} bytes from {offset} on");
    }
    rank.meet();
}

/// Both ranks change words of rank 0, which uses its endpoint for that, too.
pub(crate) fn atomics_of_both_ranks_lose_nothing(mut rank: Rank) {
    const TIMES: u64 = 300;
    const MINE: u64 = 0x0101_0101_0101_0101;
    let (own, theirs) = rank.regions(64);
    let (home, key) = if rank.rank == 0 { (rank.same, own.key()) } else { (rank.other, theirs) };
    let me = rank.rank as u64;
    if me == 0 {
        own.store(24, u64::MAX).unwrap();
    }
    rank.meet();
    let change = |rank: &mut Rank, offset: usize, amo: Amo<u64>| {
        let token = rank.endpoint.change(home, key, offset, amo).unwrap();
        rank.done(&token)
    };
    let (mut before, mut swapped) = (None, Vec::new());
    for round in 0..TIMES {
        let old = change(&mut rank, 0, Amo::Add(1 << 32 | 1));
        assert!(before.is_none_or(|before| old > before), "what was there before grows");
        before = Some(old);
        let bit = 1 << (round % 32 * 2 + me);
        change(&mut rank, 8, Amo::Or(bit));
        change(&mut rank, 16, Amo::Xor(MINE << me));
        change(&mut rank, 24, Amo::And(!bit));
        swapped.push(change(&mut rank, 32, Amo::Swap(1 + round * 2 + me)));
        let mut expected = change(&mut rank, 40, Amo::Add(0));
        loop {
            let seen = change(&mut rank, 40, Amo::CompareSwap { expected, new: expected + 3 });
            if seen == expected {
                break;
            }
            expected = seen;
        }
    }
    let sent: Vec<u8> = swapped.iter().flat_map(|word| word.to_le_bytes()).collect();
    let others = rank.swap(&sent);
    if me == 0 {
        assert_eq!(own.load(0).unwrap(), 2 * TIMES * (1 << 32 | 1));
        assert_eq!(own.load(8).unwrap(), u64::MAX);
        assert_eq!(own.load(16).unwrap(), 0, "both ranks have changed each bit an even number of times");
        assert_eq!(own.load(24).unwrap(), 0);
        assert_eq!(own.load(40).unwrap(), 2 * TIMES * 3);
        swapped.extend(others.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
        swapped.push(own.load(32).unwrap());
        swapped.sort_unstable();
        assert!(swapped.into_iter().eq(0..=2 * TIMES), "each value is swapped out once, or still there");
    }
    rank.meet();
}

/// Twelve MiB and some bytes, there and back.
pub(crate) fn large_puts_and_gets_are_whole(mut rank: Rank) {
    const LEN: usize = (12 << 20) + 5;
    let (own, theirs) = rank.regions(LEN);
    if rank.rank == 0 {
        let source = rank.domain.region(LEN).unwrap();
        source.write(0, &bytes(5, LEN)).unwrap();
        let put = rank.endpoint.put_with(rank.other, &source, 0..LEN, theirs, 0, 77).unwrap();
        rank.done(&put);
        rank.meet();
        source.write(0, &vec![0; LEN]).unwrap();
        let get = rank.endpoint.get(rank.other, &source, 0..LEN, theirs, 0).unwrap();
        rank.done(&get);
        let mut seen = vec![0; LEN];
        source.read(0, &mut seen).unwrap();
        assert!(seen == bytes(5, LEN));
    } else {
        assert_eq!(rank.endpoint.wait_notice(BOUND).unwrap(), 77);
        let mut seen = vec![0; LEN];
        own.read(0, &mut seen).unwrap();
        assert!(seen == bytes(5, LEN));
        rank.meet();
    }
    rank.meet();
}

/// More puts and atomics than an endpoint has slots are posted before any is waited for.
pub(crate) fn many_operations_are_under_way(mut rank: Rank) {
    const COUNT: u64 = 3000;
    let (own, theirs) = rank.regions(8 * COUNT as usize + 8);
    let source = rank.domain.region(8 * COUNT as usize).unwrap();
    for index in 0..COUNT as usize {
        source.store(8 * index, index as u64 + 1).unwrap();
        drop(rank.endpoint.put(rank.other, &source, 8 * index..8 * index + 8, theirs, 8 * index).unwrap());
        drop(rank.endpoint.change(rank.other, theirs, 8 * COUNT as usize, Amo::Add(1)).unwrap());
    }
    let begun = std::time::Instant::now();
    let seen = |index: usize| own.load(8 * index).unwrap();
    while seen(COUNT as usize) < COUNT || (0..COUNT as usize).any(|index| seen(index) == 0) {
        rank.endpoint.progress().unwrap();
        assert!(begun.elapsed() < BOUND, "{} of {COUNT} atomics have arrived", seen(COUNT as usize));
    }
    assert!((0..COUNT as usize).all(|index| seen(index) == index as u64 + 1));
    rank.meet();
    assert_eq!(seen(COUNT as usize), COUNT);
}

/// Token and source are dropped at once; the bytes arrive nevertheless.
pub(crate) fn a_dropped_token_leaves_its_put_whole(mut rank: Rank) {
    const LEN: usize = 3 << 20;
    let (own, theirs) = rank.regions(LEN);
    if rank.rank == 0 {
        let source = rank.domain.region(LEN).unwrap();
        source.write(0, &bytes(9, LEN)).unwrap();
        drop(rank.endpoint.put_with(rank.other, &source, 0..LEN, theirs, 0, 1).unwrap());
        drop(source);
    } else {
        assert_eq!(rank.endpoint.wait_notice(BOUND).unwrap(), 1);
        let mut seen = vec![0; LEN];
        own.read(0, &mut seen).unwrap();
        assert!(seen == bytes(9, LEN));
    }
    rank.meet();
}
