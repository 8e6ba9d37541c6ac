//! Ranks that leave, fail and abort.

use crate::team::{LONG, at_once, plan, team};
use bootstrap::{End, Error, Event};
use std::time::Duration;

#[test]
fn ranks_leave_and_all_hear_of_it() {
    let (coordinator, team) = team(plan(3));
    team[0].session.left().unwrap();
    assert_eq!(team[1].next(), Event::Left { rank: 0 });
    assert_eq!(team[2].next(), Event::Left { rank: 0 });
    let error = team[1].session.wait_all_ended(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(&error, Error::NotEnded { ranks, .. } if *ranks == [1, 2]), "{error}");
    let error = team[1].session.exchange(b"", LONG).unwrap_err();
    assert!(matches!(&error, Error::Incomplete { ended, .. } if ended[0].0 == 0), "{error}");
    assert!(matches!(team[0].session.exchange(b"", LONG), Err(Error::AlreadyEnded)));
    assert!(matches!(team[0].session.left(), Err(Error::AlreadyEnded)));
    team[2].session.lost("its program failed").unwrap();
    let told = Event::Lost { rank: 2, text: "its program failed".into() };
    assert_eq!(team[1].next(), told);
    assert_eq!(team[0].next(), told);
    assert_eq!(coordinator.wait(Duration::from_millis(20)), None);
    team[1].session.left().unwrap();
    at_once(&team, |_, session| session.wait_all_ended(LONG).unwrap());
    for rank in &team {
        let last = std::iter::from_fn(|| Some(rank.next())).find(|event| *event == Event::AllEnded);
        assert!(last.is_some());
    }
    let outcome = coordinator.wait(LONG).unwrap();
    assert_eq!(outcome.ends, [End::Left, End::Left, End::Lost("its program failed".into())]);
    assert!(!outcome.is_good());
    drop(coordinator);
    for rank in team {
        drop(rank.session);
        assert_eq!(rank.events.recv_timeout(LONG).ok(), None, "nothing follows AllEnded");
    }
}

#[test]
fn a_rank_that_leaves_and_goes_at_once_has_left() {
    for _ in 0..20 {
        let (coordinator, team) = team(plan(2));
        for rank in team {
            rank.session.left().unwrap();
        }
        assert!(coordinator.wait(LONG).unwrap().is_good());
    }
}

#[test]
fn the_first_abort_counts_and_everyone_hears_it() {
    let (coordinator, team) = team(plan(3));
    team[2].session.left().unwrap();
    // The coordinator reads each rank's connection by itself.
    for rank in &team[..2] {
        assert_eq!(rank.next(), Event::Left { rank: 2 });
    }
    at_once(&team[..2], |rank, session| session.abort(rank as i32, "no more").unwrap());
    let aborts: Vec<_> = team
        .iter()
        .map(|rank| {
            let mut events = std::iter::from_fn(|| Some(rank.next()));
            events.find(|event| matches!(event, Event::Aborted { .. })).unwrap()
        })
        .collect();
    assert!(aborts.iter().all(|abort| *abort == aborts[0]), "{aborts:?}");
    let outcome = coordinator.wait(LONG).unwrap();
    let abort = outcome.abort.unwrap();
    assert_eq!(abort.rank, Some(abort.code as u32));
    assert_eq!(outcome.ends, [End::Aborted, End::Aborted, End::Left]);
    assert!(matches!(team[0].session.exchange(b"", LONG), Err(Error::Aborted { .. })));
    assert!(matches!(team[0].session.wait_all_ended(LONG), Err(Error::Aborted { .. })));
    drop(coordinator);
    for rank in &team {
        assert!(rank.events.recv_timeout(Duration::from_millis(100)).is_err(), "nothing follows an abort");
    }
}

#[test]
fn the_owner_of_the_coordinator_aborts() {
    let (coordinator, team) = team(plan(2));
    coordinator.abort(130, "interrupted");
    for rank in &team {
        assert_eq!(rank.next(), Event::Aborted { rank: None, code: 130, text: "interrupted".into() });
    }
    assert_eq!(coordinator.wait(LONG).unwrap().abort.unwrap().code, 130);
}

#[test]
fn a_coordinator_that_ends_is_heard_of() {
    let (coordinator, team) = team(plan(2));
    drop(coordinator);
    for rank in &team {
        assert_eq!(rank.next(), Event::CoordinatorLost);
        assert!(matches!(rank.session.exchange(b"", LONG), Err(Error::CoordinatorLost { .. })));
        assert!(matches!(rank.session.wait_all_ended(LONG), Err(Error::CoordinatorLost { .. })));
    }
}
