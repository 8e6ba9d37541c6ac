//! Memory: revoked, dropped, and accessed by operations that outlive their flights or regions.

use super::*;
use crate::cluster::{
    directory::Directory,
    message::{Answer, Head, Kind},
    mutant::Mutant,
    outbox::answer_tag,
    polling,
    rma::Origin,
};
use core::task::{Context, Waker};
use rdma_fabric::provider::{Token, WaitState};
use std::{num::NonZeroU64, sync::atomic::AtomicBool, task::Wake};

/// Drops a region of rank 1 while rank 0 has an operation in flight in it; returns whether the drop
/// waited.
fn drop_waits(mutant: Option<Mutant>) -> bool {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let id = ranks.in_flight(0, (1, &region), None);
    ranks.with(0, |state| state.core.mutant = mutant);
    let (early, dropped) = done_within(SHORT, move || drop(region));
    ranks.over_now(0, id);
    dropped.join().unwrap();
    !early
}

#[test]
fn memory_is_not_given_up_while_an_operation_is_inside() {
    assert!(drop_waits(None));
}

#[test]
fn answering_a_revocation_too_early_is_found() {
    assert!(!drop_waits(Some(Mutant::AnswersAtOnce)));
}

#[test]
fn memory_of_an_operation_that_outlives_its_peer_is_kept() {
    let ranks = Ranks::new(2);
    let (there, own) = (ranks.region(1, 64), ranks.region(0, 64));
    let id = ranks.in_flight(0, (1, &there), Some(&own));
    // Rank 1 announced its loss itself: the endpoint stays open, and the get may still write
    // memory.
    ranks.members[0].lost(Rank::new(1));
    ranks.kill(1);
    assert_eq!(ranks.with(0, |state| state.core.flights.in_flight()), 0, "the program is told at once");
    let (early, dropped) = done_within(SHORT, move || drop(own));
    assert!(!early);
    ranks.over_now(0, id);
    dropped.join().unwrap();
}

#[test]
fn a_closed_endpoint_keeps_no_memory() {
    let ranks = Ranks::new(2);
    let (there, own) = (ranks.region(1, 64), ranks.region(0, 64));
    ranks.in_flight(0, (1, &there), Some(&own));
    ranks.members[0].drain(1, &[Rank::new(1)]);
    ranks.members[0].reopen().unwrap();
    ranks.members[0].resume(&[Rank::new(1)]);
    ranks.kill(1);
    let (done, _) = done_within(LONG, move || drop(own));
    assert!(done);
}

#[test]
fn own_memory_that_another_thread_has_just_dropped_is_no_source() {
    let ranks = Ranks::new(2);
    let (there, own) = (ranks.region(1, 4096), ranks.region(0, 4096));
    let key = own.key();
    let at = ranks.members[0].part().locate(key).unwrap().at as usize;
    let (remote, _) = ranks.members[0].net.region(Rank::new(1), there.key()).unwrap();
    let put = || {
        ranks.with(0, |state| {
            state.write(Flight::new(1, Job::Put), &remote, 0, Origin::Own(key, at..at + 4096)).map(|id| id.is_some())
        })
    };
    assert_eq!(put(), Ok(true));
    assert!(ranks.members[0].quiesce(LONG));
    let stale = Err(FabricError::StaleRegion { rank: Rank::new(0), region: key });
    // Both while the region is being dropped and afterwards.
    ranks.with(0, |state| _ = state.core.directory.close(key));
    assert_eq!(put(), stale);
    drop(own);
    assert_eq!(put(), stale);
}

#[test]
fn answers_that_fit_no_request_change_nothing() {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let id = ranks.in_flight(0, (1, &region), None);
    ranks.with(0, |state| {
        let core = &mut state.core;
        let head = Head { door: core.door, id, ..Head::request(Kind::Done, 1, region.key()) };
        core.receive(&head.to_bytes());
        assert_eq!(core.flights.in_flight(), 1, "a put is not over by an answer");
        // The location of a region must be within a rank's heap.
        let asked = core.flights.add(Flight { wanted: true, ..Flight::new(1, Job::Locate(region.key())) });
        let head = Head { id: asked, a: u64::MAX - 7, b: 64, ..head };
        core.directory = Directory::default();
        core.receive(&head.to_bytes());
        let outcome = core.flights.remove(asked).unwrap().outcome;
        assert_eq!(outcome, Some(Err(FabricError::Corrupt { rank: Rank::new(1), what: &"an answer" })));
        assert!(core.directory.find(1, region.key()).is_none());
        core.flights.remove(id);
    });
}

#[test]
fn notices_whose_numbers_are_wrong_are_refused() {
    let ranks = Ranks::new(2);
    let region = ranks.region(0, 64);
    ranks.with(0, |state| {
        let core = &mut state.core;
        let head = Head { door: core.door, ..Head::request(Kind::Notice, 1, region.key()) };
        for head in [
            Head { detail: 1, b: 9, ..head },
            Head { detail: 0, b: u64::MAX, offset: 8, ..head },
            Head { detail: 1, b: 8, offset: u64::MAX - 3, ..head },
        ] {
            core.receive(&[&head.to_bytes()[..], &[7; 8]].concat());
        }
    });
    assert_eq!(ranks.members[0].fabric().try_notice(), Ok(None));
    assert_eq!(Answer::Unsupported as u8, 4);
    assert_ne!(answer_tag(1), 0);
}

/// A waker that checks, when it is dropped or called, that the lock is free.
struct Looks(Arc<Member>, Arc<AtomicBool>);

impl Looks {
    fn look(&self) {
        if !self.0.net.is_free() {
            self.1.store(true, Relaxed);
        }
    }
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        self.look();
    }
}

#[test]
fn wakers_are_called_and_dropped_without_the_lock() {
    let ranks = Ranks::new(2);
    let (member, locked) = (ranks.members[0].clone(), Arc::new(AtomicBool::new(false)));
    // Suspends the progress thread, so no other thread takes the lock.
    let kept = member.net.hold_progress();
    let region = ranks.region(1, 64);
    let waker = || Waker::from(Arc::new(Looks(member.clone(), locked.clone())));
    for forgets in [true, false] {
        let id = ranks.in_flight(0, (1, &region), None);
        ranks.with(0, |state| state.core.flights.get(id).unwrap().wanted = true);
        let token = Token(NonZeroU64::new(id).unwrap());
        for _ in 0..2 {
            let waker = waker();
            let pending = polling::operation(
                &member.net,
                token,
                rdma_fabric::provider::Sink::none(),
                &mut Context::from_waker(&waker),
            );
            assert!(pending.is_pending());
        }
        if forgets {
            member.fabric().provider().forget(token);
        }
        ranks.over_now(0, id);
    }
    drop(kept);
    assert!(!locked.load(Relaxed));
}

struct Counts(AtomicU64);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn who_finds_no_room_because_of_messages_is_woken_when_they_have_left() {
    let ranks = Ranks::new(2);
    let member = &ranks.members[0];
    member.drain(1, &[]);
    let contacts = vec![None, Some(ranks.members[1].net.contact())];
    member.reopen().unwrap();
    ranks.with(0, |state| {
        let core = &mut state.core;
        core.phase = crate::cluster::core::Phase::Running;
        core.send_soon(
            1,
            answer_tag(1),
            Head::request(Kind::Done, 0, rdma_fabric::RegionKey::from_bits(0)),
            Vec::new(),
        );
    });
    let counts = Arc::new(Counts(AtomicU64::new(0)));
    let waker = Waker::from(counts.clone());
    let mut wait_state = WaitState::default();
    assert!(polling::room(&member.net, &mut wait_state, None, &mut Context::from_waker(&waker)).is_pending());
    member.connect(&contacts).unwrap();
    assert!(becomes(|| counts.0.load(Relaxed) > 0));
}

#[test]
fn a_rank_is_lost_when_what_it_posted_is_over() {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let id = ranks.in_flight(0, (1, &region), None);
    let member = ranks.members[0].clone();
    let fails = async |_: rdma_fabric::Fabric| -> rdma_fabric::ProgramResult<()> { Err("on purpose".into()) };
    let (early, ended) = done_within(SHORT, move || {
        let program = member.with_shutdown(&fails, LONG);
        member.part().run(member.fabric(), &program).is_err()
    });
    let fate = || ranks.members[0].part().fate(Rank::new(0));
    assert!(!early && fate() == tofu2_shm::part::Fate::Running);
    ranks.over_now(0, id);
    assert!(ended.join().unwrap() && fate() == tofu2_shm::part::Fate::Lost);
}

/// Returns whether a post was refused because its place was resolved in another job.
fn is_foreign(posted: rdma_fabric::provider::Posted) -> bool {
    use rdma_fabric::provider::Posted;
    match posted {
        Posted::Failed(FabricError::Unsupported { feature }) => {
            let feature = feature.to_string();
            feature.contains("another provider") || feature.contains("another rank as own memory")
        }
        _ => false,
    }
}

#[test]
fn a_place_of_another_job_is_refused() {
    use rdma_fabric::{
        Amo,
        provider::{KeepAlive, Place, Sink, Source},
    };
    const BYTES: usize = 4096;
    let jobs = [Ranks::new(2), Ranks::new(2)];
    let [theirs, ours] = [0, 1].map(|job| (jobs[job].region(1, BYTES), jobs[job].region(0, BYTES)));
    let place = |job: usize, rank: u32, region: &Region| {
        let span = jobs[job].members[0].fabric().remote_span::<u8>(region.at(Rank::new(rank), 0), BYTES);
        span.unwrap().place().clone()
    };
    let (remote, own) = (place(1, 1, &ours.0), place(1, 0, &ours.1));
    let fabric = jobs[1].members[0].fabric();
    let (provider, mut bytes) = (fabric.provider(), [7; BYTES]);
    let made_up = Place::remote(remote.addr(), BYTES, KeepAlive::new(remote.clone()));
    for alien in [place(0, 1, &theirs.0), made_up] {
        assert!(is_foreign(provider.put(&alien, Source::Bytes(&bytes), None)), "put");
        assert!(is_foreign(provider.put(&alien, Source::Bytes(&bytes), Some(1))), "put with notice");
        assert!(is_foreign(provider.get(&alien, Sink::Bytes(&mut bytes))), "get");
        assert!(is_foreign(provider.atomic(&alien.part(0, 8).unwrap(), Amo::Add(1))), "atomic");
    }
    let alien = place(0, 0, &theirs.1);
    for alien in [alien.clone(), alien.hidden()] {
        for len in [8, BYTES] {
            let (alien, remote) = (alien.part(0, len).unwrap(), remote.part(0, len).unwrap());
            assert!(is_foreign(provider.put(&remote, Source::Place(&alien), None)), "put of {len} bytes from");
            assert!(is_foreign(provider.put(&remote, Source::Place(&alien), Some(1))), "put with notice from");
            assert!(is_foreign(provider.get(&remote, Sink::Place(&alien))), "get of {len} bytes into");
        }
        assert!(is_foreign(provider.put(&own, Source::Place(&alien), None)), "put on the own node");
    }
    let other = jobs[0].members[1].fabric();
    let opened = provider.protected().unwrap().open(&other, rdma_fabric::AccessPolicy::copies([1, 2]));
    assert!(matches!(opened, Err(FabricError::Unsupported { .. })), "a handle like that of another rank");
}
