//! What goes wrong between two ranks: each time the target's memory stays as it was, and whoever
//! waits is told in time, though not always that it was wrong.

use crate::pair::{BOUND, Rank};
use fabric_ofi::{Amo, OfiError, Region, RemoteKey, Result, Token};
use std::{process, time::Duration};

/// What an operation may take of which nobody may hear again: ten times what it should.
const SILENCE: Duration = Duration::from_secs(1);

/// Asserts that an operation does not succeed, and prints how it ends.
///
/// A put may be over before the target has looked at its key: then only the target is told. `shm`
/// answers no get and no atomic with a wrong key, and an atomic over `ofi_rxm` can get lost with a
/// connection that an earlier operation has closed: then there is no answer, and the wait ends.
fn refused(rank: &mut Rank, what: &str, posted: Result<Token>) {
    let silent_operation = rank.domain.provider() == "shm" || what != "a get";
    match posted.and_then(|token| rank.endpoint.wait(&token, SILENCE)) {
        Ok(0) if what.starts_with("a put") => println!("  {what}: no error where it was posted"),
        Err(error @ OfiError::TimedOut { .. }) if silent_operation => println!("  {what}: {error}"),
        Err(error @ (OfiError::Operation { .. } | OfiError::Call { .. } | OfiError::Busy { .. })) => {
            println!("  {what}: {error}");
        }
        other => panic!("{what}: {other:?}"),
    }
}

/// Rank 0 tries all kinds of operations with a key that opens nothing; rank 1 looks at its memory
/// afterwards.
fn try_all(rank: &mut Rank, source: &Region, key: RemoteKey) {
    rank.endpoint.set_patience(SILENCE);
    for what in ["a get", "an atomic", "a put", "a put with data"] {
        let (endpoint, other) = (&mut rank.endpoint, rank.other);
        let posted = match what {
            "a put" => endpoint.put(other, source, 0..64, key, 0),
            "a put with data" => endpoint.put_with(other, source, 0..64, key, 0, 5),
            "a get" => endpoint.get(other, source, 0..64, key, 0),
            _ => endpoint.change(other, key, 0, Amo::Add(1)),
        };
        refused(rank, what, posted);
    }
}

/// Tells peers' errors from notices, which must not come.
fn no_notice(rank: &mut Rank) {
    loop {
        match rank.endpoint.notice() {
            Ok(None) => return,
            Ok(Some(data)) => panic!("a notice: {data}"),
            Err(OfiError::Fault(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn a_wrong_key_changes_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(64);
    own.store(0, 42).unwrap();
    rank.meet();
    if rank.rank == 0 {
        let mut forged = theirs.to_bytes();
        forged[3] ^= 0x40;
        let source = rank.domain.region(64).unwrap();
        try_all(&mut rank, &source, RemoteKey::from_bytes(&forged).unwrap());
    }
    rank.meet();
    assert_eq!(own.load(0).unwrap(), 42);
    no_notice(&mut rank);
}

pub(crate) fn a_key_of_a_dropped_region_changes_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(4096);
    let (kept, _) = rank.regions(64);
    let token = rank.endpoint.change(rank.other, theirs, 0, Amo::Add(1)).unwrap();
    rank.done(&token);
    rank.meet();
    if rank.rank == 0 {
        rank.meet();
        try_all(&mut rank, &kept, theirs);
    } else {
        drop(own);
        rank.meet();
    }
    rank.meet();
    no_notice(&mut rank);
    assert_eq!(kept.load(0).unwrap(), 0);
}

/// Rank 0 claims that rank 1's region is larger than it is.
pub(crate) fn forged_bounds_change_nothing(mut rank: Rank) {
    let (own, theirs) = rank.regions(4096);
    rank.meet();
    if rank.rank == 0 {
        rank.endpoint.set_patience(SILENCE);
        let mut forged = theirs.to_bytes();
        forged[16..].copy_from_slice(&u64::MAX.to_le_bytes());
        let forged = RemoteKey::from_bytes(&forged).unwrap();
        let posted = rank.endpoint.put(rank.other, &own, 0..64, forged, 4096 - 32);
        refused(&mut rank, "a put across the end", posted);
        let posted = rank.endpoint.change(rank.other, forged, 1 << 30, Amo::Add(1));
        refused(&mut rank, "an atomic behind the end", posted);
    }
    rank.meet();
    let mut seen = [1; 4096];
    own.read(0, &mut seen).unwrap();
    assert_eq!(seen, [0; 4096]);
}

/// Rank 1 ends without a word; rank 0 gets an error, or nothing, in the time that it has asked for.
pub(crate) fn a_dead_peer_is_told_in_time(mut rank: Rank) {
    let (own, theirs) = rank.regions(64);
    let token = rank.endpoint.change(rank.other, theirs, 0, Amo::Add(1)).unwrap();
    rank.done(&token);
    rank.meet();
    if rank.rank == 1 {
        // Nothing is closed.
        process::exit(0);
    }
    std::thread::sleep(Duration::from_millis(50));
    let within = Duration::from_millis(500);
    rank.endpoint.set_patience(within);
    let begun = std::time::Instant::now();
    let posted = rank.endpoint.get(rank.other, &own, 0..64, theirs, 0);
    let error = posted.and_then(|token| rank.endpoint.wait(&token, within)).unwrap_err();
    println!("  a get from a dead peer: {error}");
    assert!(begun.elapsed() < BOUND);
}

/// Rank 1 makes no progress, so that rank 0's gets are under way when it drops all that it has.
pub(crate) fn an_endpoint_is_dropped_with_gets_under_way(mut rank: Rank) {
    let (own, theirs) = rank.regions(1 << 20);
    let token = rank.endpoint.change(rank.other, theirs, 0, Amo::Add(1)).unwrap();
    rank.done(&token);
    rank.meet();
    if rank.rank == 1 {
        std::thread::sleep(Duration::from_millis(300));
        // Now the gets are served, whose owner is gone.
        for _ in 0..1000 {
            let _ = rank.endpoint.progress();
        }
        return;
    }
    rank.endpoint.set_patience(Duration::from_millis(20));
    for _ in 0..4 {
        let into = rank.domain.region(1 << 20).unwrap();
        match rank.endpoint.get(rank.other, &into, 0..1 << 20, theirs, 0) {
            Ok(token) => drop(token),
            // `shm` takes few that are long before its peer looks.
            Err(OfiError::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let Rank { domain, endpoint, .. } = rank;
    drop(endpoint);
    // The system would reuse addresses that were given back.
    drop((own, domain));
    let fresh: Vec<Vec<u8>> = (0..64).map(|_| vec![7; 1 << 20]).collect();
    std::thread::sleep(Duration::from_millis(600));
    assert!(fresh.iter().flatten().all(|byte| *byte == 7));
}
