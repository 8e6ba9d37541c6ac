//! Notices: their order, and their room.

use super::*;
use crate::cluster::{
    message::{Head, Kind},
    mutant::Mutant,
    remote_rank::QueuedNotice,
};
use rdma_fabric::{Deps, RegionKey, RemoteSpan};

#[test]
fn a_long_one_that_fails_does_not_block_those_behind() {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let id = ranks.in_flight(0, (1, &region), None);
    ranks.with(0, |state| {
        let core = &mut state.core;
        core.grace = Duration::from_millis(30);
        let put = Some(core.count_put(1));
        let flight = core.flights.get(id).unwrap();
        (flight.job, flight.put) = (Job::PutThenNotice, put);
        let head = Head::request(Kind::Notice, 0, region.key());
        core.queue(1, QueuedNotice { id, ready: false, head, bytes: Vec::new() });
    });
    let fabric = ranks.members[0].fabric();
    let to = fabric.remote_span::<u8>(ranks.at(1, &region), 8).unwrap();
    block_on(fabric.put_slice_notify(&to, &[1; 8], 5)).unwrap();
    ranks.with(0, |state| state.core.refuse(id, network_error()));
    let there = ranks.members[1].fabric();
    let (taken, thread) = done_within(LONG, move || block_on(there.next_notice(Deps::Ranks(&[Rank::new(0)]))));
    assert!(taken);
    assert_eq!(thread.join().unwrap().unwrap().data, 5);
    assert!(ranks.members[0].quiesce(LONG));
    assert_eq!(ranks.with(0, |state| state.core.remote(1).notices), 0, "their room is given back");
    assert!(block_on(fabric.flush(Rank::new(1))).is_err(), "an error is told by the next flush");
    assert_eq!(block_on(fabric.flush(Rank::new(1))), Ok(()));
}

#[test]
fn a_queue_is_there_as_long_as_something_waits_in_it() {
    let ranks = Ranks::new(2);
    ranks.with(0, |state| {
        let core = &mut state.core;
        let head = Head::request(Kind::Notice, 0, RegionKey::from_bits(0));
        for round in 1..=2 {
            for ready in [false, true] {
                core.queue(1, QueuedNotice { id: 0, ready, head, bytes: Vec::new() });
            }
            core.send_notices(1);
            assert_eq!(core.queued[&1].len(), 2, "the second waits for the first");
            core.queued.get_mut(&1).unwrap()[0].ready = true;
            core.send_notices(1);
            assert!(core.queued.is_empty());
            assert_eq!((core.unsent(), core.remote(1).notices), (2 * round, 2 * round as u64));
        }
    });
}

#[test]
fn short_and_long_ones_arrive_in_posting_order() {
    const LEN: usize = 20_000;
    let ranks = Ranks::over(2, || domain().limited(4096));
    let region = ranks.region(1, LEN);
    let (fabric, there) = (ranks.members[0].fabric(), ranks.members[1].fabric());
    let (all, short): (RemoteSpan<u8>, RemoteSpan<u8>) =
        (fabric.remote_span(ranks.at(1, &region), LEN).unwrap(), fabric.remote_span(ranks.at(1, &region), 16).unwrap());
    let poster = thread::spawn(move || {
        block_on(async {
            for number in 0..400u64 {
                if number % 7 == 3 {
                    fabric.put_slice_notify(&all, &[number as u8; LEN], number).await.unwrap();
                } else {
                    fabric.put_slice_notify(&short, &[number as u8; 16], number).await.unwrap();
                }
            }
            fabric.flush_all().await.unwrap();
        });
    });
    for number in 0..400 {
        let notice = block_on(there.next_notice(Deps::All)).unwrap();
        assert_eq!(notice.data, number);
        if number % 50 == 0 {
            // Lets some notices wait for room.
            thread::sleep(Duration::from_millis(5));
        }
    }
    poster.join().unwrap();
    assert!(ranks.members[0].quiesce(LONG));
}

/// Returns the number of notices that arrived before their bytes.
fn early(mutant: Option<Mutant>) -> usize {
    const LEN: usize = 256 << 10;
    let ranks = Ranks::over(2, || domain().limited(4096));
    let region = ranks.region(1, LEN);
    ranks.with(0, |state| state.core.mutant = mutant);
    let (fabric, there) = (ranks.members[0].fabric(), ranks.members[1].fabric());
    let to = fabric.remote_span::<u8>(ranks.at(1, &region), LEN).unwrap();
    let last = region.span::<u8>(&there, LEN - 1, 1).unwrap();
    let mut early = 0;
    for round in 1..=10u8 {
        let (fabric, to) = (fabric.clone(), to.clone());
        let poster = thread::spawn(move || block_on(fabric.put_slice_notify(&to, &[round; LEN], 1)));
        block_on(there.next_notice(Deps::Ranks(&[Rank::new(0)]))).unwrap();
        let mut seen = [0];
        there.read(&last, &mut seen).unwrap();
        early += usize::from(seen != [round]);
        poster.join().unwrap().unwrap();
        let over = || ranks.with(0, |state| state.core.flights.those(|flight| flight.posted).is_empty());
        assert!(becomes(over));
    }
    early
}

#[test]
fn bytes_come_before_their_notice() {
    assert_eq!(early(None), 0);
}

#[test]
fn a_notice_before_its_bytes_is_found() {
    assert!(early(Some(Mutant::NoticeFirst)) > 0);
}

#[test]
fn notices_of_a_lost_rank_that_wait_for_room_are_taken() {
    let ranks = Ranks::new(2);
    let region = ranks.region(0, 64);
    let mut left = 0;
    let _kept = ranks.members[0].net.hold_progress();
    while ranks.members[0].part().notify(Rank::new(1), left, region.key(), 0).unwrap() {
        left += 1;
    }
    ranks.with(0, |state| {
        let core = &mut state.core;
        let head = Head { door: core.door, a: left, ..Head::request(Kind::Notice, 1, region.key()) };
        core.receive(&head.to_bytes());
        assert_eq!(core.held[&1].len(), 1);
    });
    ranks.members[0].lost(Rank::new(1));
    let fabric = ranks.members[0].fabric();
    for number in 0..=left {
        assert!(becomes(|| fabric.try_notice().unwrap().is_some_and(|notice| notice.data == number)));
    }
    assert!(ranks.with(0, |state| state.core.held.is_empty()), "none waits any more");
}
