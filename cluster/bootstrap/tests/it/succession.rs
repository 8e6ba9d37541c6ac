//! Operations that continue after the coordinator has ended and the ranks have elected another one.

use crate::team::{LONG, Rank, at_once, plan, team};
use bootstrap::{Coordinator, Error, Event, Plan, Succession};
use std::{
    sync::Mutex,
    thread::{scope, sleep},
    time::Duration,
};

fn lasting_team(ranks: usize) -> (Coordinator, Vec<Rank>) {
    team(Plan { succession: Succession::AfterAnyEnd, ..plan(ranks) })
}

/// Receives the epoch with which another coordinator begins, in which no rank is lost.
fn resumes(rank: &Rank) {
    assert!(matches!(rank.next(), Event::Drain { lost, .. } if lost.is_empty()));
    assert!(matches!(rank.next(), Event::Reopen { .. }));
    assert!(matches!(rank.next(), Event::Resume { lost, .. } if lost.is_empty()));
}

#[test]
fn an_exchange_goes_on_and_so_do_later_ones() {
    let (coordinator, team) = lasting_team(4);
    let coordinator = Mutex::new(Some(coordinator));
    at_once(&team, |_, session| session.exchange(b"before", LONG).unwrap());
    let all = at_once(&team, |rank, session| {
        if rank == 3 {
            // The other ranks have sent their items by now.
            sleep(Duration::from_millis(50));
            drop(coordinator.lock().unwrap().take());
        }
        session.exchange(&[rank as u8], LONG).unwrap()
    });
    assert!(all.iter().all(|items| *items == [[0], [1], [2], [3]]), "{all:?}");
    for round in 0..20 {
        for got in at_once(&team, |rank, session| session.exchange(&[rank as u8 + round], LONG).unwrap()) {
            assert_eq!(got, (0..4).map(|rank| vec![rank + round]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_departure_during_succession_counts() {
    let (coordinator, team) = lasting_team(3);
    team[0].session.left().unwrap();
    assert_eq!([team[1].next(), team[2].next()], [Event::Left { rank: 0 }, Event::Left { rank: 0 }]);
    scope(|scope| {
        scope.spawn(|| drop(coordinator));
        team[1].session.left().unwrap();
    });
    // An event that was reported before is not reported again.
    let mut events = Vec::new();
    let resumed = |event: &Event| matches!(event, Event::Resume { .. });
    while !events.iter().any(resumed) || !events.contains(&Event::Left { rank: 1 }) {
        events.push(team[2].next());
    }
    assert!(!events.contains(&Event::Left { rank: 0 }), "{events:?}");
    team[2].session.left().unwrap();
    at_once(&team, |_, session| session.wait_all_ended(LONG).unwrap());
}

#[test]
fn an_abort_during_succession_reaches_all() {
    let (coordinator, team) = lasting_team(3);
    scope(|scope| {
        scope.spawn(|| drop(coordinator));
        // Which of the two coordinators receives this is not determined.
        team[2].session.abort(7, "no more").unwrap();
    });
    for rank in &team {
        let aborted = std::iter::from_fn(|| Some(rank.next())).find(|event| matches!(event, Event::Aborted { .. }));
        assert_eq!(aborted, Some(Event::Aborted { rank: Some(2), code: 7, text: "no more".into() }));
        assert!(matches!(rank.session.exchange(b"", LONG), Err(Error::Aborted { .. })));
    }
}

#[test]
fn a_deadlock_is_found_by_the_next_coordinator() {
    let (coordinator, team) = lasting_team(2);
    team[0].session.speaker().waits(Some(1)).unwrap();
    drop(coordinator);
    team.iter().for_each(resumes);
    // Reports to the last coordinator do not count: a waiting rank has received the epoch, and
    // reports again.
    team[1].session.speaker().waits(Some(2)).unwrap();
    assert!(team[1].events.recv_timeout(Duration::from_millis(50)).is_err());
    team[0].session.speaker().waits(Some(3)).unwrap();
    for (rank, stamp) in team.iter().zip([3, 2]) {
        let Event::Confirm { wave } = rank.next() else { panic!("no question") };
        rank.session.speaker().still_waiting(wave, Some(stamp)).unwrap();
    }
    team.iter().for_each(|rank| assert_eq!(rank.next(), Event::Deadlock { waiting: 2 }));
}

#[test]
fn a_host_of_the_coordinator_that_ends_is_succeeded() {
    let (coordinator, mut team) = lasting_team(4);
    drop(coordinator);
    team.iter().for_each(resumes);
    // Rank 0 has the coordinator. Its session is dropped, as if its process had ended.
    drop(team.remove(0));
    for rank in &team {
        let resume = std::iter::from_fn(|| Some(rank.next())).find(|event| matches!(event, Event::Resume { .. }));
        assert!(matches!(resume, Some(Event::Resume { lost, .. }) if lost.len() == 1 && lost[0].0 == 0));
    }
    team.iter().for_each(|rank| rank.session.left().unwrap());
    at_once(&team, |_, session| session.wait_all_ended(LONG).unwrap());
}
