//! Messages between two ranks.

use crate::{line::BOUND, memory::bytes, pair::Rank};
use fabric_ofi::{OfiError, PutFrom};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How long a rank makes no calls.
const PAUSE: Duration = Duration::from_millis(300);

/// Ten thousand messages of all lengths, to a rank that makes no progress for a while.
pub(crate) fn a_flood_of_messages_arrives_complete_and_in_order(mut rank: Rank) {
    const COUNT: u64 = 10_000;
    let longest = rank.line.endpoint.limits().message;
    let lengths = [0, 1, 8, 100, 257, 1000, longest - 8];
    let expected = |index: u64| {
        let len = lengths[index as usize % lengths.len()];
        [&index.to_le_bytes()[..], &bytes(index, len)[..]].concat()
    };
    rank.connect();
    if rank.rank == 0 {
        let (line, other) = (&mut rank.line, rank.other);
        let mut tags = Vec::new();
        for index in 0..COUNT {
            let message = expected(index);
            let (first, rest) = message.split_at(3.min(message.len()));
            tags.push(line.post(|endpoint, tag| endpoint.send(other, &[first, &[], rest], tag)));
        }
        for tag in tags {
            line.done(tag);
        }
    } else {
        thread::sleep(PAUSE);
        for index in 0..COUNT {
            let message = rank.line.message();
            assert!(message == expected(index), "message {index}: {} bytes, {:?}", message.len(), message.get(..8));
        }
    }
    rank.connect();
    assert_eq!((rank.line.messages.len(), rank.line.faults.len()), (0, 0));
}

/// Both ranks send to each other at the same time, and to themselves.
pub(crate) fn messages_cross(mut rank: Rank) {
    const COUNT: usize = 500;
    rank.connect();
    for round in 0..COUNT {
        for (peer, first) in [(rank.other, rank.rank), (rank.same, 2)] {
            let message = [&[first as u8][..], &bytes(round as u64, round)].concat();
            rank.line.post(|endpoint, tag| endpoint.send(peer, &[&message], tag));
        }
    }
    let mut next = [0; 3];
    for _ in 0..2 * COUNT {
        let message = rank.line.message();
        let from = &mut next[usize::from(message[0])];
        assert!(message[1..] == bytes(*from as u64, *from), "message {from}");
        *from += 1;
    }
    rank.connect();
    assert_eq!(rank.line.messages.len(), 0);
}

pub(crate) fn messages_that_are_too_long_are_refused(mut rank: Rank) {
    let limit = rank.line.endpoint.limits().message;
    let long = bytes(1, limit);
    rank.connect();
    if rank.rank == 0 {
        let refused = rank.line.endpoint.send(rank.other, &[&long, &[0]], 0);
        assert!(
            matches!(refused, Err(OfiError::TooLong { len, limit: reported }) if len == limit + 1 && reported == limit)
        );
        let other = rank.other;
        let sent = rank.line.post(|endpoint, tag| endpoint.send(other, &[&long], tag));
        rank.line.done(sent);
    } else {
        assert!(rank.line.message() == long);
    }
    rank.connect();
    assert_eq!(rank.line.messages.len(), 0);
}

/// Rank 1 sleeps on its endpoint's descriptor until a message and a put arrive.
pub(crate) fn a_sleeping_rank_is_woken(mut rank: Rank) {
    let (_own, theirs) = rank.regions(64);
    let other = rank.other;
    rank.connect();
    // Both directions are connected.
    rank.line.post(|endpoint, tag| endpoint.send(other, &[b"here"], tag));
    assert_eq!(rank.line.message(), b"here");
    rank.connect();
    if rank.line.endpoint.descriptor().is_none() {
        println!("  SKIPPED: the provider has no descriptor");
        assert!(!rank.line.endpoint.may_sleep().unwrap());
        return rank.connect();
    }
    if rank.rank == 0 {
        thread::sleep(PAUSE);
        rank.line.post(|endpoint, tag| endpoint.send(other, &[b"wake"], tag));
        rank.connect();
        thread::sleep(PAUSE);
        let put = rank.line.post(|endpoint, tag| endpoint.put(other, PutFrom::Bytes(&[1; 8]), theirs, 0, Some(5), tag));
        rank.line.done(put);
    } else {
        let slept = sleep_until(&mut rank, |rank| rank.line.messages.pop_front().is_some());
        println!("  a message: woken {slept} times");
        rank.connect();
        let slept = sleep_until(&mut rank, |rank| rank.line.data.pop_front() == Some(5));
        println!("  a put: woken {slept} times");
    }
    rank.connect();
}

/// Sleeps until `look` returns `true`; returns the number of wakeups.
fn sleep_until(rank: &mut Rank, mut look: impl FnMut(&mut Rank) -> bool) -> u32 {
    let begun = Instant::now();
    let (mut woken, mut asleep) = (0, Duration::ZERO);
    loop {
        while rank.line.progress() > 0 {}
        if look(rank) {
            assert!(asleep > PAUSE / 3, "asleep for {asleep:?} of {:?}", begun.elapsed());
            return woken;
        }
        if !rank.line.endpoint.may_sleep().unwrap() {
            continue;
        }
        let descriptor = rank.line.endpoint.descriptor().unwrap();
        let since = Instant::now();
        let limit = Timespec { tv_sec: BOUND.as_secs() as i64, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap();
        assert_eq!(ready, 1, "the sleeping rank is not woken");
        asleep += since.elapsed();
        woken += 1;
        assert!(begun.elapsed() < BOUND);
    }
}
