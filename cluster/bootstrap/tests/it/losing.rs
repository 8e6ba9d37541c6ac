//! Reports of losses.

use crate::team::{LONG, Rank, answer, contact, coordinator, hello, join, plan, team};
use bootstrap::{End, Error, Event, Hello, Plan, Speaker};
use std::{thread::spawn, time::Duration};

/// Returns the events of one rank up to its `Resume`, which is the last.
fn until_resume(rank: &Rank) -> Vec<Event> {
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Resume { .. })) {
        events.push(rank.next());
    }
    events
}

/// Asserts that these epochs only increase, and returns the numbers and losses of the `Resume`.
fn resumed(events: &[Event]) -> (u64, Vec<u32>) {
    let mut last = 0;
    for event in events {
        if let Event::Drain { epoch, .. } = event {
            assert!(*epoch > last, "{events:?}");
            last = *epoch;
        }
    }
    let Some(Event::Resume { epoch, lost, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(*epoch, last, "{events:?}");
    (*epoch, lost.iter().map(|(rank, _)| *rank).collect())
}

#[test]
fn survivors_drain_and_reopen_before_a_loss_is_reported() {
    let (coordinator, mut team) = team(plan(4));
    drop(team.remove(1));
    let contacts = [0, 1, 2, 3].map(|rank| (rank != 1).then(|| contact(1, rank)));
    for rank in &team {
        assert_eq!(rank.next(), Event::Drain { epoch: 1, lost: vec![1] });
        assert_eq!(rank.next(), Event::Reopen { epoch: 1 });
        let Event::Resume { epoch: 1, contacts: got, lost } = rank.next() else { panic!("no resume") };
        assert_eq!((&got[..], lost[0].0, lost.len()), (&contacts[..], 1, 1));
    }
    let error = team[0].session.exchange(b"", LONG).unwrap_err();
    assert!(matches!(&error, Error::Incomplete { ended, .. } if ended[0].0 == 1), "{error}");
    assert!(matches!(&coordinator.ends()[..], [None, Some(End::Lost(_)), None, None]));
}

#[test]
fn an_exchange_fails_after_the_loss_is_reported() {
    let (_coordinator, mut team) = team(plan(3));
    let dying = team.pop().unwrap();
    let error = std::thread::scope(|scope| {
        let first = &team[0].session;
        let exchange = scope.spawn(|| first.exchange(b"", LONG).unwrap_err());
        std::thread::sleep(Duration::from_millis(50));
        drop(dying);
        exchange.join().unwrap()
    });
    assert!(matches!(&error, Error::Incomplete { ended, absent } if ended[0].0 == 2 && absent.is_empty()), "{error}");
    assert_eq!(resumed(&until_resume(&team[0])).1, [2]);
}

#[test]
fn a_departed_rank_still_drains() {
    let (_coordinator, mut team) = team(plan(3));
    team[0].session.left().unwrap();
    drop(team.remove(1));
    for rank in &team {
        assert_eq!(resumed(&until_resume(rank)), (1, vec![1]));
    }
    team[1].session.left().unwrap();
    for rank in &team {
        rank.session.wait_all_ended(LONG).unwrap();
    }
}

/// Starts a job whose last rank answers by `answers` instead.
fn odd_team(plan: Plan, answers: impl FnMut(&Speaker, &Event) + Send + 'static) -> (bootstrap::Coordinator, Vec<Rank>) {
    let ranks = plan.ranks;
    let (coordinator, secret) = coordinator(plan);
    let address = coordinator.address();
    let odd = ranks as u32 - 1;
    let mut joining = Vec::new();
    for rank in 0..odd {
        let secret = secret.clone();
        joining.push(spawn(move || join(address, &secret, hello(rank, ranks), answer(rank)).unwrap()));
    }
    let odd = join(address, &secret, hello(odd, ranks), answers).unwrap();
    let mut team: Vec<_> = joining.into_iter().map(|joining| joining.join().unwrap()).collect();
    team.push(odd);
    (coordinator, team)
}

#[test]
fn a_rank_that_does_not_drain_is_lost() {
    let lease = Duration::from_millis(400);
    let (_coordinator, mut team) = odd_team(Plan { lease, ..plan(4) }, |_, _| ());
    drop(team.remove(0));
    for rank in &team[..2] {
        assert_eq!(resumed(&until_resume(rank)), (2, vec![0, 3]));
    }
    assert_eq!(team[2].next(), Event::Drain { epoch: 1, lost: vec![0] });
    let Event::Dismissed { text } = team[2].next() else { panic!("not dismissed") };
    assert!(text.contains("did not drain"), "{text}");
}

#[test]
fn a_rank_that_does_not_reopen_is_lost() {
    let lease = Duration::from_millis(400);
    let only_drains = |speaker: &Speaker, event: &Event| {
        if let Event::Drain { epoch, .. } = event {
            speaker.drained(*epoch).unwrap();
        }
    };
    let (_coordinator, mut team) = odd_team(Plan { lease, ..plan(4) }, only_drains);
    drop(team.remove(0));
    for rank in &team[..2] {
        assert_eq!(resumed(&until_resume(rank)), (2, vec![0, 3]));
    }
}

#[test]
fn answers_to_an_earlier_epoch_count_for_nothing() {
    let (_coordinator, mut team) = odd_team(plan(4), |_, _| ());
    let odd = team.pop().unwrap();
    drop(team.remove(0));
    assert_eq!(odd.next(), Event::Drain { epoch: 1, lost: vec![0] });
    drop(team.remove(0));
    assert_eq!(odd.next(), Event::Drain { epoch: 2, lost: vec![0, 1] });
    odd.session.drained(1).unwrap();
    odd.session.reopened(2, Vec::new()).unwrap();
    assert!(odd.events.recv_timeout(Duration::from_millis(100)).is_err(), "not drained in this epoch");
    odd.session.drained(2).unwrap();
    assert_eq!(odd.next(), Event::Reopen { epoch: 2 });
    odd.session.reopened(1, b"old".to_vec()).unwrap();
    odd.session.reopened(2, b"new".to_vec()).unwrap();
    let Event::Resume { epoch: 2, contacts, .. } = odd.next() else { panic!("no resume") };
    assert_eq!(contacts, [None, None, Some(contact(2, 2)), Some(b"new".to_vec())]);
}

#[test]
fn a_rank_that_reports_its_loss_need_not_answer() {
    let (_coordinator, mut team) = odd_team(plan(4), |_, _| ());
    drop(team.remove(0));
    assert!(matches!(team[2].next(), Event::Drain { .. }));
    team[2].session.lost("failed while others drained").unwrap();
    for rank in &team[..2] {
        assert_eq!(resumed(&until_resume(rank)), (1, vec![0]));
        rank.session.left().unwrap();
    }
    for rank in &team {
        rank.session.wait_all_ended(LONG).unwrap();
    }
}

#[test]
fn hosts_are_distinguished_by_their_nodes() {
    let (coordinator, secret) = coordinator(plan(2));
    let same = |rank| Hello { host: "name".into(), node: "machine".into(), ..hello(rank, 2) };
    let team = crate::team::join_all(coordinator.address(), &secret, vec![same(0), same(1)]);
    for rank in team {
        assert_eq!(rank.unwrap().session.welcome().nodes[..], [0, 0]);
    }
}
