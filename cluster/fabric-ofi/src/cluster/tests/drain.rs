//! Losses: the operations in flight, and ranks to which a loss is reported at different times.

use super::*;
use crate::cluster::{core::Phase, mutant::Mutant};

/// Lets all surviving ranks drain and reopen after these losses. Returns the new contact data.
pub(super) fn reopened(ranks: &Ranks, epoch: u64, lost: &[u32]) -> Vec<Option<Vec<u8>>> {
    let gone: Vec<Rank> = lost.iter().copied().map(Rank::new).collect();
    let here = |rank: &usize| !lost.contains(&(*rank as u32));
    (0..ranks.members.len()).filter(here).for_each(|rank| ranks.members[rank].drain(epoch, &gone));
    (0..ranks.members.len()).filter(here).for_each(|rank| assert!(becomes(|| ranks.told[rank].all().contains(&epoch))));
    let contact = |(rank, member): (usize, &Arc<Member>)| here(&rank).then(|| member.reopen().unwrap());
    ranks.members.iter().enumerate().map(contact).collect()
}

/// Rank 0 continues before rank 1 has the contact data. Returns whether rank 1 has answered it.
fn asks_early(mutant: Option<Mutant>) -> bool {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let word = ranks.members[0].fabric().remote_word::<u64>(ranks.at(1, &region)).unwrap();
    let contacts = reopened(&ranks, 1, &[]);
    ranks.with(1, |state| state.core.mutant = mutant);
    ranks.members[0].connect(&contacts).unwrap();
    ranks.members[0].resume(&[]);
    let fabric = ranks.members[0].fabric();
    let (early, adds) = done_within(SHORT, move || block_on(fabric.fetch_add(&word, 1)));
    assert!(!early, "rank 1 can't answer yet");
    ranks.members[1].connect(&contacts).unwrap();
    ranks.members[1].resume(&[]);
    let answered = if mutant.is_some() {
        thread::sleep(4 * SHORT);
        adds.is_finished()
    } else {
        becomes(|| adds.is_finished())
    };
    // Ends a wait that would otherwise last forever.
    ranks.members[0].aborted(Rank::new(1), "the test is over", 1);
    let _ = adds.join().unwrap();
    answered
}

#[test]
fn who_goes_on_first_is_answered_when_the_others_are_known() {
    assert!(asks_early(None));
}

#[test]
fn dropping_answers_to_ranks_that_are_not_known_yet_is_found() {
    assert!(!asks_early(Some(Mutant::DropsUnmet)));
}

#[test]
fn all_is_over_only_when_it_is() {
    for mutant in [None, Some(Mutant::DrainedAtOnce)] {
        let ranks = Ranks::new(3);
        let region = ranks.region(1, 64);
        let id = ranks.in_flight(0, (1, &region), None);
        ranks.with(0, |state| state.core.mutant = mutant);
        ranks.members[0].drain(4, &[Rank::new(2)]);
        thread::sleep(SHORT);
        assert_eq!(ranks.told[0].all().is_empty(), mutant.is_none());
        ranks.over_now(0, id);
        assert_eq!(ranks.told[0].all(), [4]);
        ranks.kill(1);
    }
}

#[test]
fn a_second_loss_begins_another_drain() {
    let ranks = Ranks::new(3);
    let region = ranks.region(2, 64);
    let _id = ranks.in_flight(0, (2, &region), None);
    ranks.members[0].drain(1, &[Rank::new(1)]);
    assert!(ranks.told[0].all().is_empty());
    // The operations with rank 2 will never complete.
    ranks.members[0].drain(2, &[Rank::new(1), Rank::new(2)]);
    assert_eq!(ranks.told[0].all(), [2]);
    ranks.members[0].reopen().unwrap();
    ranks.members[0].resume(&[Rank::new(1), Rank::new(2)]);
    ranks.kill(2);
    assert!(ranks.members[0].quiesce(LONG));
}

#[test]
fn a_rank_that_says_its_loss_does_not_end_a_drain() {
    let ranks = Ranks::new(4);
    let region = ranks.region(3, 64);
    let id = ranks.in_flight(0, (3, &region), None);
    ranks.members[0].drain(7, &[Rank::new(1)]);
    ranks.members[0].lost(Rank::new(2));
    assert_eq!(ranks.with(0, |state| state.core.phase), Phase::Draining);
    assert!(ranks.told[0].all().is_empty());
    ranks.over_now(0, id);
    assert_eq!(ranks.told[0].all(), [7]);
    ranks.kill(3);
}

#[test]
fn what_is_told_during_a_drain_is_told_afterwards() {
    let ranks = Ranks::new(2);
    ranks.members[0].drain(1, &[]);
    ranks.members[1].drain(1, &[]);
    assert_eq!((ranks.told[0].all(), ranks.told[1].all()), (vec![1], vec![1]));
    let before = ranks.members[1].counters().served;
    ranks.members[0].net.send_control_record(&[1], &[1, 2, 3]);
    thread::sleep(SHORT);
    assert_eq!(ranks.members[1].counters().served, before, "the answer might come too late");
    let contacts: Vec<_> = ranks.members.iter().map(|member| Some(member.reopen().unwrap())).collect();
    ranks.members.iter().for_each(|member| member.connect(&contacts).unwrap());
    ranks.members.iter().for_each(|member| member.resume(&[]));
    assert!(becomes(|| ranks.members[1].counters().served == before + 1));
    assert!(ranks.members[0].quiesce(LONG));
}

#[test]
fn a_rank_whose_endpoint_has_failed_delays_nobody() {
    let ranks = Ranks::new(2);
    ranks.with(0, |state| state.core.give_up(&network_error()));
    ranks.members[0].drain(1, &[]);
    assert_eq!(ranks.told[0].all(), [1]);
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    ranks.in_flight(0, (1, &region), None);
    ranks.with(0, |state| state.core.grace = Duration::from_millis(20));
    ranks.members[0].drain(1, &[]);
    assert!(ranks.told[0].all().is_empty());
    ranks.with(0, |state| state.core.give_up(&network_error()));
    assert_eq!(ranks.told[0].all(), [1], "also if it fails then");
}

#[test]
fn what_the_network_refused_ends_though_the_program_looks_all_the_time() {
    let ranks = Ranks::new(2);
    let region = ranks.region(1, 64);
    let id = ranks.in_flight(0, (1, &region), None);
    ranks.with(0, |state| {
        state.core.grace = Duration::from_millis(20);
        state.core.refuse(id, network_error());
    });
    let over = || {
        ranks.members[0].net.look();
        ranks.with(0, |state| state.core.flights.in_flight() == 0)
    };
    assert!(becomes(over));
}

#[test]
fn a_rank_that_gets_no_answers_is_not_left_waiting_for_ever() {
    let ranks = Ranks::new(2);
    ranks.with(0, |state| {
        state.core.grace = Duration::from_millis(20);
        state.core.failed_to_send(crate::cluster::outbox::answer_tag(1), network_error());
    });
    assert!(becomes(|| ranks.with(0, |state| state.core.phase == Phase::Broken)));
    let ranks = Ranks::new(2);
    ranks.with(0, |state| {
        state.core.grace = Duration::from_millis(20);
        state.core.failed_to_send(crate::cluster::outbox::answer_tag(1), network_error());
    });
    ranks.members[0].lost(Rank::new(1));
    thread::sleep(SHORT);
    assert_eq!(ranks.with(0, |state| state.core.phase), Phase::Running, "it is lost, and needs none");
}
