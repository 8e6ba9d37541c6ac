//! Accesses of two ranks to each other's memory.

use crate::{
    line::{BOUND, Ended},
    pair::Rank,
};
use fabric_ofi::{Amo, GetInto, PutFrom};
use std::{
    io::{Read, Write},
    thread,
    time::{Duration, Instant},
};

/// Returns the byte at `place` in the pattern of `seed`.
fn pattern(seed: u64, place: usize) -> u8 {
    ((seed ^ place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub(crate) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len).map(|place| pattern(seed, place)).collect()
}

/// The ranks put bytes back and forth, from regions and other memory, with data of all bits that the
/// provider delivers.
pub(crate) fn puts_arrive_with_their_data(mut rank: Rank) {
    let lengths = [1, 8, 63, 64, 65, 0, 256, 257, 1000, 4096, 16_385, 70_000];
    let unused = 64 - 8 * rank.line.endpoint.limits().data as u32;
    let delivered = u64::MAX.checked_shr(unused).expect("a provider that delivers data");
    let (own, theirs) = rank.regions(2 * 70_000);
    for (round, len) in lengths.into_iter().cycle().take(240).enumerate() {
        let data = (round as u64 + 1).wrapping_mul(0xfedc_ba98_7654_3211) & delivered;
        let (line, other) = (&mut rank.line, rank.other);
        if round % 2 == rank.rank {
            let bytes = bytes(data, len);
            own.write(70_000, &bytes).unwrap();
            let put = line.post(|endpoint, tag| {
                let from =
                    if round % 4 < 2 { PutFrom::Bytes(&bytes) } else { PutFrom::Region(&own, 70_000..70_000 + len) };
                endpoint.put(other, from, theirs, 0, Some(data), tag)
            });
            assert_eq!(line.done(put), Ended::Nothing);
        } else {
            assert_eq!(line.put_data(), data);
            let mut seen = vec![0; len];
            own.read(0, &mut seen).unwrap();
            assert!(seen == bytes(data, len), "round {round}: {len} bytes");
        }
    }
    rank.connect();
    assert_eq!(rank.line.data.len(), 0, "a put delivers its data once");
    rank.connect();
}

/// A completed put is visible even if its target only reads its memory and seldom calls libfabric.
pub(crate) fn completed_puts_are_visible(mut rank: Rank) {
    const LEN: usize = 1 << 20;
    let lengths = [8, 200, 4000, 5000, 20_000, 100_000, LEN];
    let (own, theirs) = rank.regions(LEN);
    for (round, len) in lengths.into_iter().cycle().take(70).enumerate() {
        let bytes = bytes(round as u64, len);
        if rank.rank == 0 {
            let other = rank.other;
            let put = rank.line.post(|endpoint, tag| endpoint.put(other, PutFrom::Bytes(&bytes), theirs, 0, None, tag));
            rank.line.done(put);
            rank.socket.write_all(&[1]).unwrap();
            let get = rank.line.post(|endpoint, tag| endpoint.get(other, GetInto::Own(len), theirs, 0, tag));
            assert!(rank.line.done(get) == Ended::Bytes(bytes), "round {round}: the get returns the bytes of the put");
        } else {
            let begun = Instant::now();
            while rank.socket.read(&mut [0]).is_err() {
                rank.line.progress();
                assert!(begun.elapsed() < BOUND);
                // Longer than it takes the socket to report that a put has completed.
                thread::sleep(Duration::from_micros(500));
            }
            let mut seen = vec![0; len];
            own.read(0, &mut seen).unwrap();
            assert!(seen == bytes, "round {round}: {len} bytes");
        }
        rank.connect();
    }
}

/// Each rank gets the bytes that the other one wrote before both met.
pub(crate) fn gets_return_the_bytes_of_the_other_rank(mut rank: Rank) {
    let (own, theirs) = rank.regions(1 << 17);
    let into = rank.domain.region(1 << 17).unwrap();
    let (mine, other) = (rank.rank as u64, 1 - rank.rank as u64);
    own.write(0, &bytes(mine, 1 << 17)).unwrap();
    rank.connect();
    let (line, peer) = (&mut rank.line, rank.other);
    for (offset, len) in [(0, 1), (3, 7), (8, 8), (100, 4096), (1, 65_000), (0, 1 << 17)] {
        let expected = bytes(other, 1 << 17)[offset..offset + len].to_vec();
        let get =
            line.post(|endpoint, tag| endpoint.get(peer, GetInto::Region(&into, 0..len), theirs, offset as u64, tag));
        assert_eq!(line.done(get), Ended::Nothing);
        let mut seen = vec![0; len];
        into.read(0, &mut seen).unwrap();
        assert!(seen == expected, "{len} bytes from {offset} on");
        let get = line.post(|endpoint, tag| endpoint.get(peer, GetInto::Own(len), theirs, offset as u64, tag));
        assert!(line.done(get) == Ended::Bytes(expected), "{len} bytes from {offset} on");
    }
    rank.connect();
}

/// Both ranks change words of rank 0, which also uses its endpoint for that.
pub(crate) fn atomics_of_both_ranks_lose_nothing(mut rank: Rank) {
    const TIMES: u64 = 100;
    const MINE: u64 = 0x0101_0101_0101_0101;
    let (own, theirs) = rank.regions(64);
    let (home, key) = if rank.rank == 0 { (rank.same, own.key()) } else { (rank.other, theirs) };
    let me = rank.rank as u64;
    if me == 0 {
        own.store(24, u64::MAX).unwrap();
        own.store(48, u64::MAX).unwrap();
    }
    rank.connect();
    let wide = |rank: &mut Rank, offset: u64, width: usize, amo: Amo<u64>| {
        let tag = rank.line.post(|endpoint, tag| endpoint.change(home, key, offset, width, amo, tag));
        let Ended::Word(word) = rank.line.done(tag) else { panic!("an atomic returns a word") };
        word
    };
    let change = |rank: &mut Rank, offset: u64, amo: Amo<u64>| wide(rank, offset, 8, amo);
    let (mut before, mut swapped) = (None, Vec::new());
    for round in 0..TIMES {
        let old = change(&mut rank, 0, Amo::Add(1 << 32 | 1));
        assert!(before.is_none_or(|before| old > before), "the previous values grow");
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
        // The upper half of the word does not change.
        let old = wide(&mut rank, 48, 4, Amo::Add(1 << 32 | 2));
        assert!(old == u64::from(u32::MAX) || old < 4 * TIMES, "{old:#x}");
    }
    let sent: Vec<u8> = swapped.iter().flat_map(|word| word.to_le_bytes()).collect();
    let others = rank.swap(&sent);
    if me == 0 {
        assert_eq!(own.load(0).unwrap(), 2 * TIMES * (1 << 32 | 1));
        assert_eq!(own.load(8).unwrap(), u64::MAX);
        assert_eq!(own.load(16).unwrap(), 0, "both ranks have changed each bit an even number of times");
        assert_eq!(own.load(24).unwrap(), 0);
        assert_eq!(own.load(40).unwrap(), 2 * TIMES * 3);
        let mut halves = [0; 8];
        own.read(48, &mut halves).unwrap();
        let [low, high] = [0, 4].map(|at| u32::from_ne_bytes(halves[at..at + 4].try_into().unwrap()));
        assert_eq!((low, high), (4 * TIMES as u32 - 1, u32::MAX));
        swapped.extend(others.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
        swapped.push(own.load(32).unwrap());
        swapped.sort_unstable();
        assert!(swapped.into_iter().eq(0..=2 * TIMES), "each value is swapped out once, or still there");
    }
    rank.connect();
}

/// Twelve MiB and some bytes in both directions, in pieces that the provider takes; the source is dropped
/// immediately.
pub(crate) fn large_puts_and_gets_are_complete(mut rank: Rank) {
    const LEN: usize = (12 << 20) + 5;
    let (own, theirs) = rank.regions(LEN);
    let expected = bytes(5, LEN);
    let (piece, other) = (rank.line.endpoint.limits().transfer.min(LEN), rank.other);
    let pieces = || (0..LEN).step_by(piece).map(|start| start..LEN.min(start + piece));
    if rank.rank == 0 {
        let source = rank.domain.region(LEN).unwrap();
        source.write(0, &expected).unwrap();
        let mut puts = Vec::new();
        for range in pieces() {
            let (offset, data) = (range.start as u64, (range.end == LEN).then_some(77));
            puts.push(rank.line.post(|endpoint, tag| {
                endpoint.put(other, PutFrom::Region(&source, range.clone()), theirs, offset, data, tag)
            }));
        }
        drop(source);
        puts.into_iter().for_each(|put| assert_eq!(rank.line.done(put), Ended::Nothing));
        rank.connect();
        for range in pieces() {
            let get = rank
                .line
                .post(|endpoint, tag| endpoint.get(other, GetInto::Own(range.len()), theirs, range.start as u64, tag));
            assert!(rank.line.done(get) == Ended::Bytes(expected[range].to_vec()));
        }
    } else {
        assert_eq!(rank.line.put_data(), 77);
        let mut seen = vec![0; LEN];
        own.read(0, &mut seen).unwrap();
        assert!(seen == expected);
        rank.connect();
    }
    rank.connect();
}

/// More puts and atomics than an endpoint has slots are posted before the first wait.
pub(crate) fn more_operations_than_slots_are_posted(mut rank: Rank) {
    const COUNT: u64 = 3000;
    let (own, theirs) = rank.regions(8 * COUNT as usize + 8);
    let (line, other) = (&mut rank.line, rank.other);
    let mut tags = Vec::new();
    for index in 0..COUNT {
        let word = (index + 1).to_ne_bytes();
        tags.push(line.post(|endpoint, tag| endpoint.put(other, PutFrom::Bytes(&word), theirs, 8 * index, None, tag)));
        tags.push(line.post(|endpoint, tag| endpoint.change(other, theirs, 8 * COUNT, 8, Amo::Add(1), tag)));
    }
    for tag in tags {
        line.done(tag);
    }
    rank.connect();
    let seen = |index: u64| own.load(8 * index as usize).unwrap();
    assert!((0..COUNT).all(|index| seen(index) == index + 1));
    assert_eq!(seen(COUNT), COUNT);
}
