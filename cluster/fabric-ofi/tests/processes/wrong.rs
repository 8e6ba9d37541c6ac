//! Faulty accesses between two ranks: the target's memory never changes, and the initiator does not
//! wait forever, though the error is not always reported.

use crate::{
    line::{Ended, Line},
    pair::Rank,
};
use fabric_ofi::{Amo, Endpoint, EndpointOptions, GetInto, PutFrom, RemoteKey};
use std::{process, time::Duration};

/// Time limit for an operation that may never complete: ten times the expected time.
const SILENCE: Duration = Duration::from_millis(500);
/// The kinds of operations.
const KINDS: [&str; 5] = ["a get", "an atomic", "a put", "a put with data", "a put from a region"];

/// Posts each kind of operation with an invalid key or to an unreachable peer, and prints its
/// outcome. It may be refused, fail, or never be answered, but must not succeed.
fn try_all(rank: &mut Rank, key: RemoteKey) {
    let source = rank.domain.region(64).unwrap();
    let other = rank.other;
    for what in KINDS {
        let post = |endpoint: &mut Endpoint, tag| match what {
            "a get" => endpoint.get(other, GetInto::Own(64), key, 0, tag),
            "an atomic" => endpoint.change(other, key, 0, 8, Amo::Add(1), tag),
            "a put" => endpoint.put(other, PutFrom::Bytes(&[9; 64]), key, 0, None, tag),
            "a put with data" => endpoint.put(other, PutFrom::Bytes(&[9; 64]), key, 0, Some(5), tag),
            _ => endpoint.put(other, PutFrom::Region(&source, 0..64), key, 0, None, tag),
        };
        match rank.line.post_within(SILENCE, post) {
            Err(error) => println!("  {what}: refused: {error}"),
            Ok(None) => println!("  {what}: no room within {SILENCE:?}"),
            Ok(Some(tag)) => match rank.line.outcome(tag, SILENCE) {
                None => println!("  {what}: not completed within {SILENCE:?}"),
                Some(Err(failure)) => println!("  {what}: {failure}"),
                Some(Ok(brought)) => panic!("{what} succeeds: {brought:?}"),
            },
        }
    }
}

/// Rank 0 uses an invalid key; rank 1 checks its memory afterwards.
pub(crate) fn a_wrong_key_changes_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(64);
    own.store(0, 42).unwrap();
    rank.connect();
    if rank.rank == 0 {
        let mut forged = theirs.to_bytes();
        forged[3] ^= 0x40;
        try_all(&mut rank, RemoteKey::from_bytes(&forged).unwrap());
    }
    rank.connect();
    assert_eq!(own.load(0).unwrap(), 42);
    assert!(rank.line.data.is_empty());
    rank.line.faults.iter().for_each(|fault| println!("  rank {} receives a fault: {fault}", rank.rank));
}

pub(crate) fn a_key_of_a_dropped_region_changes_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(4096);
    let (kept, _) = rank.regions(64);
    let other = rank.other;
    let change = rank.line.post(|endpoint, tag| endpoint.change(other, theirs, 0, 8, Amo::Add(1), tag));
    assert_eq!(rank.line.done(change), Ended::Word(0));
    rank.connect();
    if rank.rank == 0 {
        rank.connect();
        try_all(&mut rank, theirs);
    } else {
        drop(own);
        rank.connect();
    }
    rank.connect();
    assert!(rank.line.data.is_empty());
    assert_eq!(kept.load(0).unwrap(), 0);
}

/// Rank 0 claims that rank 1's region is larger than it is.
pub(crate) fn forged_bounds_change_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(4096);
    rank.connect();
    if rank.rank == 0 {
        let mut forged = theirs.to_bytes();
        forged[16..].copy_from_slice(&u64::MAX.to_le_bytes());
        let forged = RemoteKey::from_bytes(&forged).unwrap();
        let other = rank.other;
        let put = rank.line.post_within(SILENCE, |endpoint, tag| {
            endpoint.put(other, PutFrom::Bytes(&[1; 64]), forged, 4096 - 32, None, tag)
        });
        if let Some(tag) = put.unwrap() {
            let outcome = rank.line.outcome(tag, SILENCE);
            println!("  a put across the end: {outcome:?}");
            assert!(!matches!(outcome, Some(Ok(_))));
        }
        let change = rank
            .line
            .post_within(SILENCE, |endpoint, tag| endpoint.change(other, forged, 1 << 30, 8, Amo::Add(1), tag));
        if let Ok(Some(tag)) = change {
            let outcome = rank.line.outcome(tag, SILENCE);
            println!("  an atomic behind the end: {outcome:?}");
            assert!(!matches!(outcome, Some(Ok(_))));
        }
    }
    rank.connect();
    let mut seen = [1; 4096];
    own.read(0, &mut seen).unwrap();
    assert_eq!(seen, [0; 4096]);
}

/// Rank 1 exits without notice; rank 0 receives errors, or nothing, and can continue.
pub(crate) fn operations_to_a_dead_peer_fail_or_never_complete(mut rank: Rank) {
    let (own, theirs) = rank.regions(64);
    let (other, same) = (rank.other, rank.same);
    let change = rank.line.post(|endpoint, tag| endpoint.change(other, theirs, 0, 8, Amo::Add(1), tag));
    rank.line.done(change);
    rank.connect();
    if rank.rank == 1 {
        // Nothing is closed.
        process::exit(0);
    }
    std::thread::sleep(Duration::from_millis(50));
    try_all(&mut rank, theirs);
    for _ in 0..20 {
        rank.line.post_within(Duration::from_millis(10), |endpoint, tag| endpoint.send(other, &[b"?"], tag)).unwrap();
    }
    // Over `shm`, unanswered operations block the answers to later ones; a new endpoint is not
    // blocked.
    let key = own.key();
    let change = |line: &mut Line, peer| {
        let posted = line.post_within(SILENCE, |endpoint, tag| endpoint.change(peer, key, 8, 8, Amo::Add(1), tag));
        posted.unwrap().and_then(|tag| line.outcome(tag, SILENCE))
    };
    let reached = change(&mut rank.line, same).is_some();
    println!("  others are {} by the same endpoint", if reached { "reached" } else { "not reached" });
    let Rank { domain, line, .. } = rank;
    drop(line);
    let (mut line, itself) = Line::with_itself(&domain, EndpointOptions::default());
    assert!(matches!(change(&mut line, itself), Some(Ok(Ended::Word(_)))), "others are reached by a new endpoint");
}
