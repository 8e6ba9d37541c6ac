//! Words by libfabric's atomics: when they may be used, for which operations, and how waits end.

use super::*;
use crate::{
    OfiError,
    cluster::{Counters, words::one_rank_a_node},
};
use rdma_fabric::{Amo, Atomics, Deps, RemoteAddr};

fn ranks(ranks: usize) -> Ranks {
    let domain = domain_of(Wanted::default());
    Ranks::try_over(ranks, || domain.clone(), AtomicsBy::Nic).unwrap()
}

#[test]
fn ranks_that_share_memory_are_refused_by_name() {
    assert!(one_rank_a_node(&[0, 1, 2]).is_ok() && one_rank_a_node(&[]).is_ok());
    let refused = one_rank_a_node(&[0, 1, 2, 1]);
    assert!(matches!(refused, Err(OfiError::SharedNode { node: 1, ranks: [1, 3] })), "{refused:?}");
}

#[test]
fn what_the_network_lacks_is_named() {
    let refused = Ranks::try_over(2, domain, AtomicsBy::Nic).map(drop);
    let Err(OfiError::NoAtomic { provider, width: 4, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(provider, "tcp;ofi_rxm");
}

#[test]
fn all_words_but_own_loads_and_stores_go_by_atomics() {
    let ranks = ranks(2);
    let region = ranks.region(1, 64);
    let at = |offset: u64| RemoteAddr { offset, ..ranks.at(1, &region) };
    let [remote, near] = [0, 1].map(|rank| ranks.members[rank].fabric());
    let before = [0, 1].map(|rank| ranks.members[rank].counters());
    let done = |rank: usize, what: fn(&Counters) -> u64| what(&ranks.members[rank].counters()) - what(&before[rank]);
    assert!(
        remote.caps().atomics == Atomics::Hardware && !remote.caps().coherent_atomics && !remote.caps().queue_atomics()
    );
    block_on(async {
        let (word, own) = (remote.remote_word::<u64>(at(0)).unwrap(), near.remote_word::<u64>(at(0)).unwrap());
        remote.put_word(&word, 7).await.unwrap();
        remote.flush(Rank::new(1)).await.unwrap();
        assert_eq!(remote.get_word(&word).await.unwrap(), 7);
        assert_eq!(remote.fetch_add(&word, 1).await.unwrap(), 7);
        assert_eq!(near.fetch_add(&own, 2).await.unwrap(), 8);
        assert_eq!(near.direct().atomic(&own, Amo::Add(1)), None, "not by this CPU");
        assert_eq!(near.get_word(&own).await.unwrap(), 10);
        let narrow = remote.remote_word::<u32>(at(12)).unwrap();
        remote.put_word(&narrow, u32::MAX).await.unwrap();
        assert_eq!(remote.fetch_add(&narrow, 2).await.unwrap(), u32::MAX);
        assert_eq!(remote.get_word(&narrow).await.unwrap(), 1);
    });
    let own = region.word::<u64>(&near, 0).unwrap();
    near.store(&own, 3).unwrap();
    assert_eq!(near.load(&own).unwrap(), 3);
    assert_eq!((done(0, |of| of.atomics), done(1, |of| of.atomics)), (6, 1));
    assert_eq!((done(0, |of| of.messages), done(1, |of| of.served)), (0, 0), "nobody's CPU was asked");
}

#[test]
fn a_region_outlives_the_own_atomics_on_it() {
    let ranks = ranks(2);
    let (region, net) = (ranks.region(0, 64), &ranks.members[0].net);
    let word = ranks.members[0].fabric().remote_word::<u64>(ranks.at(0, &region)).unwrap();
    let own = net.own_by_nic(word.place()).unwrap();
    let id = ranks.with(0, |state| {
        let mut flight = Flight::new(0, Job::Word(None));
        (flight.remote, flight.own, flight.posted) = (Some(own.clone()), Some(region.key()), true);
        let id = state.core.flights.add(flight);
        state.core.directory.enter(&own, Some(region.key()));
        id
    });
    let (early, dropped) = done_within(SHORT, move || drop(region));
    ranks.over_now(0, id);
    dropped.join().unwrap();
    assert!(!early);
}

/// During a wait, every value that no check has seen counts as news.
#[test]
fn news_is_what_no_look_has_seen() {
    let ranks = ranks(2);
    let (region, net) = (ranks.region(1, 64), &ranks.members[1].net);
    let (watched, below) = (net.watched.as_ref().unwrap(), net.part.fabric());
    let word = ranks.members[1].fabric().remote_word::<u64>(ranks.at(1, &region)).unwrap();
    let there = ranks.members[0].fabric();
    let there = (there.clone(), there.remote_word::<u64>(ranks.at(1, &region)).unwrap());
    let add = || block_on(there.0.fetch_add(&there.1, 1)).unwrap();
    let look = || {
        let mut bytes = [0; 8];
        below.provider().read(word.place(), &mut bytes, false).unwrap();
        watched.saw(&net.part, word.place(), &bytes);
    };
    add();
    assert!(!watched.has_news(&below), "nobody waits");
    watched.begin(word.place());
    assert!(watched.has_news(&below), "nobody has looked");
    look();
    assert!(!watched.has_news(&below));
    add();
    assert!(watched.has_news(&below));
    watched.begin(word.place());
    look();
    watched.end(word.place());
    assert!(!watched.has_news(&below));
    add();
    assert!(watched.has_news(&below), "one of two still waits");
    watched.end(word.place());
    assert!(!watched.has_news(&below));
}

/// A peer's atomic ends a parked wait, on any executor.
#[test]
fn a_parked_wait_ends_by_an_atomic() {
    let ranks = ranks(2);
    let region = ranks.region(1, 64);
    let waiting = ranks.members[1].clone();
    let own = region.word::<u64>(&waiting.fabric(), 8).unwrap();
    let waits = thread::spawn(move || {
        let fabric = waiting.fabric();
        block_on(fabric.wait_until(&own, Deps::Ranks(&[Rank::new(0)]), |word| word == 5))
    });
    thread::sleep(SHORT);
    let there = ranks.members[0].fabric();
    let word = there.remote_word::<u64>(RemoteAddr { offset: 8, ..ranks.at(1, &region) }).unwrap();
    for _ in 0..5 {
        block_on(there.fetch_add(&word, 1)).unwrap();
    }
    assert!(becomes(|| waits.is_finished()));
    assert_eq!(waits.join().unwrap(), Ok(5));
}
