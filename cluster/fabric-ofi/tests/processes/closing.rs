//! Endpoints that are closed while operations of either side are in flight.

use crate::{
    PROVIDERS,
    line::BOUND,
    memory::bytes,
    pair::{Rank, usable},
};
use fabric_ofi::{Domain, GetInto, PutFrom, Region};
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Time limit for operations that may never complete.
const SILENCE: Duration = Duration::from_millis(500);

/// Memory of this process over which a region is opened.
type Words = Arc<Vec<AtomicU64>>;

#[allow(unsafe_code)]
pub(crate) fn region_over(domain: &Domain, words: &Words) -> Region {
    let start = NonNull::from(&words[..]).cast();
    // SAFETY: the words live as long as their `Arc`, and are atomics.
    unsafe { domain.region_over(start, 8 * words.len(), words.clone()) }.expect("a region")
}

fn words(len: usize) -> Words {
    Arc::new((0..len).map(|_| AtomicU64::new(0)).collect())
}

/// Both ranks close their endpoints and open new ones fifty times, with gets in flight, and every
/// fifth time in a new domain.
pub(crate) fn endpoints_are_reopened(mut rank: Rank) {
    let domain = PROVIDERS.iter().find(|(name, _)| *name == rank.domain.provider()).and_then(|(_, domain)| *domain);
    let offer = usable(rank.domain.provider(), domain).unwrap();
    for round in 0..50_u64 {
        rank = rank.reopen((round % 5 == 4).then_some(&offer));
        let (own, theirs) = rank.regions(1 << 16);
        let (other, me) = (rank.other, rank.rank as u64);
        let message = [round, me].map(u64::to_le_bytes).concat();
        rank.line.post(|endpoint, tag| endpoint.send(other, &[&message], tag));
        assert_eq!(rank.line.message(), [round, 1 - me].map(u64::to_le_bytes).concat());
        let word = round.to_ne_bytes();
        let put =
            rank.line.post(|endpoint, tag| endpoint.put(other, PutFrom::Bytes(&word), theirs, 8, Some(round), tag));
        rank.line.done(put);
        assert_eq!(rank.line.put_data(), round);
        assert_eq!(own.load(8).unwrap(), round);
        rank.line.post(|endpoint, tag| endpoint.get(other, GetInto::Own(1 << 16), theirs, 0, tag));
    }
}

/// Rank 1 closes its endpoint during a long put by rank 0: no byte arrives afterwards.
pub(crate) fn a_closed_endpoint_receives_nothing(mut rank: Rank) {
    let len = rank.line.endpoint.limits().transfer.min(64 << 20);
    let words = words(if rank.rank == 0 { 1 } else { len / 8 });
    let own = region_over(&rank.domain, &words);
    let theirs = rank.swap(&own.key().to_bytes());
    let theirs = fabric_ofi::RemoteKey::from_bytes(&theirs).unwrap();
    let other = rank.other;
    rank.line.post(|endpoint, tag| endpoint.send(other, &[b"connect"], tag));
    rank.line.message();
    rank.connect();
    if rank.rank == 0 {
        let source = rank.domain.region(len).unwrap();
        source.write(0, &bytes(3, len)).unwrap();
        let put =
            rank.line.post(|endpoint, tag| endpoint.put(other, PutFrom::Region(&source, 0..len), theirs, 0, None, tag));
        match rank.line.outcome(put, SILENCE) {
            None => println!("  a put to a closed endpoint: not completed within {SILENCE:?}"),
            Some(Err(failure)) => println!("  a put to a closed endpoint: {failure}"),
            Some(Ok(_)) => println!("  a put to a closed endpoint: had completed before"),
        }
        // The other rank does not read its socket meanwhile.
        rank.line.find(Duration::from_millis(200), |_| None::<()>);
    } else {
        let arrived = |words: &Words| words.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
        let begun = Instant::now();
        while words[0].load(Ordering::Acquire) == 0 {
            rank.line.progress();
            assert!(begun.elapsed() < BOUND, "nothing arrives");
        }
        let Rank { line, domain, socket, .. } = rank;
        drop(line);
        let before = arrived(&words);
        thread::sleep(SILENCE);
        assert_eq!(arrived(&words), before, "words land after the endpoint is closed");
        println!("  {before} of {} words were there when the endpoint was closed", len / 8);
        assert_eq!(Arc::strong_count(&words), 2);
        drop((own, domain));
        assert_eq!(Arc::strong_count(&words), 1, "the memory is released");
        drop(socket);
    }
}

/// A region is dropped during a long put into it: its memory stays mapped until the endpoint is
/// closed.
pub(crate) fn memory_of_a_dropped_region_stays_for_late_bytes(mut rank: Rank) {
    let len = rank.line.endpoint.limits().transfer.min(32 << 20);
    let words = words(len / 8);
    let own = region_over(&rank.domain, &words);
    let theirs = fabric_ofi::RemoteKey::from_bytes(&rank.swap(&own.key().to_bytes())).unwrap();
    let other = rank.other;
    if rank.rank == 0 {
        let put =
            rank.line.post(|endpoint, tag| endpoint.put(other, PutFrom::Bytes(&vec![1; len]), theirs, 0, None, tag));
        let outcome = rank.line.outcome(put, SILENCE);
        println!(
            "  a put to a region that is dropped: {:?}",
            outcome.map(|outcome| outcome.map_err(|e| e.to_string()))
        );
        rank.line.find(Duration::from_millis(200), |_| None::<()>);
    } else {
        let begun = Instant::now();
        while words[0].load(Ordering::Acquire) == 0 {
            rank.line.progress();
            assert!(begun.elapsed() < BOUND, "nothing arrives");
        }
        drop(own);
        assert_eq!(Arc::strong_count(&words), 2);
        rank.line.find(SILENCE, |_| None::<()>);
        assert_eq!(Arc::strong_count(&words), 2, "bytes may come late");
        assert_eq!(rank.domain.retired_bytes(), len);
        let Rank { line, domain, socket, .. } = rank;
        drop(line);
        assert_eq!((Arc::strong_count(&words), domain.retired_bytes()), (1, 0));
        drop(socket);
    }
}

/// Rank 1 makes no progress, so rank 0's gets are in flight when rank 0 drops its endpoint and
/// memory.
pub(crate) fn an_endpoint_is_dropped_with_gets_in_flight(mut rank: Rank) {
    const LEN: usize = 1 << 20;
    let (own, theirs) = rank.regions(LEN);
    own.write(0, &[5; LEN]).unwrap();
    let other = rank.other;
    rank.line.post(|endpoint, tag| endpoint.send(other, &[b"connect"], tag));
    rank.line.message();
    rank.connect();
    if rank.rank == 1 {
        thread::sleep(Duration::from_millis(300));
        // The gets are served now, after their owner has dropped its endpoint.
        rank.line.find(Duration::from_millis(500), |_| None::<()>);
        return;
    }
    let words = words(LEN / 8);
    let lent = region_over(&rank.domain, &words);
    let mut in_flight = 0;
    for round in 0..4 {
        let into = rank.domain.region(LEN).unwrap();
        let into = if round == 0 { &lent } else { &into };
        let post = |endpoint: &mut fabric_ofi::Endpoint, tag| {
            endpoint.get(other, GetInto::Region(into, 0..LEN), theirs, 0, tag)
        };
        // `shm` accepts few long ones before its peer makes progress.
        in_flight += u32::from(rank.line.post_within(Duration::from_millis(20), post).unwrap().is_some());
    }
    let Rank { domain, line, .. } = rank;
    drop(line);
    // The system would reuse addresses that have been released.
    drop((own, lent, domain));
    let fresh: Vec<Vec<u8>> = (0..64).map(|_| vec![7; LEN]).collect();
    thread::sleep(Duration::from_millis(600));
    assert!(fresh.iter().flatten().all(|byte| *byte == 7));
    let late = words.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count();
    println!("  {in_flight} gets were in flight; of the first, {late} words arrived after all was closed");
    assert_eq!(Arc::strong_count(&words) > 1, in_flight > 0, "memory of a get in flight is never released");
}
