//! Detection that all ranks wait for each other.

use crate::team::{LONG, Rank, plan, team};
use bootstrap::{Event, Session};
use std::time::Duration;

fn waits(session: &Session, stamp: u64) {
    session.speaker().waits(Some(stamp)).unwrap();
}

/// Receives the question, and answers it.
fn confirm(rank: &Rank, stamp: Option<u64>) {
    let Event::Confirm { wave } = rank.next() else { panic!("no question") };
    rank.session.speaker().still_waiting(wave, stamp).unwrap();
}

fn hears_nothing(rank: &Rank) {
    assert_eq!(rank.events.recv_timeout(Duration::from_millis(50)).ok(), None);
}

#[test]
fn all_that_run_wait_and_still_do() {
    let (_coordinator, team) = team(plan(3));
    team[2].session.left().unwrap();
    assert_eq!([team[0].next(), team[1].next()], [Event::Left { rank: 2 }, Event::Left { rank: 2 }]);
    waits(&team[0].session, 7);
    hears_nothing(&team[0]);
    waits(&team[1].session, 8);
    team[..2].iter().zip([7, 8]).for_each(|(rank, stamp)| confirm(rank, Some(stamp)));
    team[..2].iter().for_each(|rank| assert_eq!(rank.next(), Event::Deadlock { waiting: 2 }));
    // The ranks may wait for each other again.
    waits(&team[0].session, 9);
    waits(&team[1].session, 10);
    team[..2].iter().zip([9, 10]).for_each(|(rank, stamp)| confirm(rank, Some(stamp)));
    team[..2].iter().for_each(|rank| assert_eq!(rank.next(), Event::Deadlock { waiting: 2 }));
}

#[test]
fn a_rank_that_has_gone_on_meanwhile_makes_it_void() {
    let (_coordinator, team) = team(plan(2));
    for changed in [None, Some(3)] {
        waits(&team[0].session, 1);
        waits(&team[1].session, 2);
        confirm(&team[0], changed);
        confirm(&team[1], Some(2));
        team.iter().for_each(hears_nothing);
        // Only after it has reported again that it waits.
        waits(&team[0].session, 4);
        confirm(&team[0], Some(4));
        confirm(&team[1], Some(2));
        team.iter().for_each(|rank| assert_eq!(rank.next(), Event::Deadlock { waiting: 2 }));
    }
}

#[test]
fn a_rank_that_waits_no_more_is_not_asked() {
    let (_coordinator, team) = team(plan(2));
    waits(&team[0].session, 1);
    team[0].session.speaker().waits(None).unwrap();
    waits(&team[1].session, 2);
    team.iter().for_each(hears_nothing);
}

#[test]
fn an_end_is_reported_before_the_question() {
    let (_coordinator, team) = team(plan(3));
    waits(&team[0].session, 1);
    waits(&team[1].session, 2);
    waits(&team[2].session, 3);
    // Rank 2 makes progress and leaves before it answers.
    let Event::Confirm { .. } = team[2].next() else { panic!("no question") };
    confirm(&team[0], Some(1));
    confirm(&team[1], Some(2));
    team[2].session.left().unwrap();
    assert_eq!(team[0].next(), Event::Left { rank: 2 });
    confirm(&team[0], Some(100));
    hears_nothing(&team[0]);
    assert_eq!(team[1].next(), Event::Left { rank: 2 });
    confirm(&team[1], Some(2));
    hears_nothing(&team[1]);
    waits(&team[0].session, 100);
    confirm(&team[0], Some(100));
    confirm(&team[1], Some(2));
    assert_eq!(team[0].next(), Event::Deadlock { waiting: 2 });
}

#[test]
fn nothing_is_asked_during_an_epoch() {
    let (coordinator, mut team) = team(plan(3));
    waits(&team[0].session, 1);
    drop(team.pop());
    let heard = |rank: &Rank| (0..3).map(|_| rank.next()).collect::<Vec<_>>();
    let (first, second) = (heard(&team[0]), heard(&team[1]));
    for events in [first, second] {
        assert!(matches!(events[..], [Event::Drain { .. }, Event::Reopen { .. }, Event::Resume { .. }]), "{events:?}");
    }
    waits(&team[1].session, 2);
    confirm(&team[0], Some(1));
    confirm(&team[1], Some(2));
    assert_eq!(team[0].next(), Event::Deadlock { waiting: 2 });
    team.iter().for_each(|rank| rank.session.left().unwrap());
    assert!(coordinator.wait(LONG).is_some());
}
