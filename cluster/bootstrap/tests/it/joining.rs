//! The start of jobs, failed starts, and exchanges.

use crate::team::{ANYWHERE, LONG, answer, at_once, coordinator, hello, join, join_all, plan, team};
use bootstrap::{Coordinator, End, Error, Patience, Refusal, Secret, Session};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

#[test]
fn ranks_join_and_exchange_items_any_number_of_times() {
    let (coordinator, team) = team(plan(5));
    for rank in &team {
        let welcome = rank.session.welcome();
        assert_eq!(welcome.nodes[..], [0, 0, 1, 1, 2]);
        assert_eq!(welcome.hosts, ["host0", "host1", "host2"]);
        assert_eq!(welcome.segment, b"segment");
        assert_eq!(welcome.job, team[0].session.welcome().job);
        assert!(welcome.age < LONG);
    }
    for round in 0..50 {
        let item = |rank: usize| vec![rank as u8; (rank + 1) * round];
        for got in at_once(&team, |rank, session| session.exchange(&item(rank), LONG).unwrap()) {
            assert_eq!(got, (0..5).map(item).collect::<Vec<_>>());
        }
    }
    let largest = vec![7; bootstrap::ITEM_LIMIT];
    assert!(at_once(&team, |_, session| session.exchange(&largest, LONG).unwrap()).iter().all(|got| got[4] == largest));
    let error = team[0].session.exchange(&vec![7; bootstrap::ITEM_LIMIT + 1], LONG).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(coordinator.ends(), vec![None; 5]);
}

#[test]
fn sixty_four_ranks_exchange_in_some_milliseconds() {
    let (_coordinator, team) = team(plan(64));
    let begun = Instant::now();
    for _ in 0..20 {
        at_once(&team, |rank, session| session.exchange(&[rank as u8; 100], LONG).unwrap());
    }
    let each = begun.elapsed() / 20;
    println!("an exchange of 64 threads: {each:?}");
    assert!(each < Duration::from_millis(200), "{each:?}");
}

#[test]
fn an_exchange_names_absent_ranks_and_the_next_succeeds() {
    let (_coordinator, team) = team(plan(3));
    let short = Duration::from_millis(100);
    let got = at_once(&team[..2], |_, session| session.exchange(b"", short));
    for error in got.into_iter().map(Result::unwrap_err) {
        assert!(matches!(&error, Error::Incomplete { absent, ended } if *absent == [2] && ended.is_empty()), "{error}");
    }
    let error = team[2].session.exchange(b"", LONG).unwrap_err();
    assert!(matches!(&error, Error::Incomplete { absent, .. } if *absent == [2]), "{error}");
    at_once(&team, |_, session| session.exchange(b"", LONG).unwrap());
}

/// Returns an address at which no process will ever listen: no other test uses this loopback
/// address, so none is assigned its port.
fn nobodys_address(loopback: [u8; 4]) -> SocketAddr {
    TcpListener::bind((Ipv4Addr::from(loopback), 0)).and_then(|listener| listener.local_addr()).unwrap()
}

#[test]
fn ranks_that_come_before_their_coordinator_wait_for_it() {
    let address = nobodys_address([127, 77, 0, 1]);
    let secret = Secret::random().unwrap();
    let joining = {
        let secret = secret.clone();
        thread::spawn(move || join(address, &secret, hello(0, 1), answer(0)).map(drop))
    };
    thread::sleep(Duration::from_millis(100));
    let _coordinator = Coordinator::start(address, secret, plan(1)).unwrap();
    joining.join().unwrap().unwrap();
}

#[test]
fn a_missing_coordinator_is_named() {
    let address = nobodys_address([127, 77, 0, 2]);
    let within = Duration::from_millis(100);
    let error = Session::join(address, &Secret::random().unwrap(), hello(0, 1), within, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()));
    let patience = Patience { within: Duration::from_secs(600), refused: within };
    let error = Session::join(address, &Secret::random().unwrap(), hello(0, 1), patience, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { within: after, .. } if after == within), "{error}");
    let silent = TcpListener::bind(ANYWHERE).unwrap();
    let address = silent.local_addr().unwrap();
    let error = Session::join(address, &Secret::random().unwrap(), hello(0, 1), within, |_, _| ()).unwrap_err();
    assert!(matches!(error, Error::Silent { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()));
}

#[test]
fn all_hear_which_ranks_are_missing() {
    let plan = bootstrap::Plan { join_within: Duration::from_millis(200), ..plan(30) };
    let (coordinator, secret) = coordinator(plan);
    let errors = join_all(coordinator.address(), &secret, vec![hello(0, 30), hello(7, 30)]);
    for error in errors.into_iter().map(|joined| joined.err().unwrap()) {
        let Error::Refused(Refusal::Missing { first, count, ranks, .. }) = &error else { panic!("{error}") };
        assert_eq!((&first[..], *count, *ranks), (&[1, 2, 3, 4, 5, 6, 8, 9][..], 28, 30));
    }
    let outcome = coordinator.wait(LONG).unwrap();
    assert!(matches!(outcome.refusal, Some(Refusal::Missing { .. })));
    assert_eq!(outcome.ends[..3], [End::Refused, End::NeverCame, End::NeverCame]);
    // Once a rank has been notified of an end, the coordinator's owner sees it without delay.
    for rank in [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13] {
        let late = join(coordinator.address(), &secret, hello(rank, 30), answer(rank)).err().unwrap();
        assert!(matches!(late, Error::Refused(Refusal::Missing { .. })), "{late}");
        assert_eq!(coordinator.ends()[rank as usize], Some(End::Refused), "rank {rank}");
    }
    let ends = coordinator.wait(Duration::ZERO).unwrap().ends;
    assert_eq!((&ends[0], &ends[13], &ends[14]), (&End::Refused, &End::Refused, &End::NeverCame));
}

/// Starts a job of three in which `wrong` joins after rank 0, and returns the refusal of both.
fn refused(wrong: bootstrap::Hello) -> Refusal {
    let (coordinator, secret) = coordinator(plan(3));
    let address = coordinator.address();
    let first = {
        let secret = secret.clone();
        thread::spawn(move || join(address, &secret, hello(0, 3), answer(0)).err().unwrap())
    };
    thread::sleep(Duration::from_millis(100));
    let (own, other) = (join(address, &secret, wrong, answer(1)).err().unwrap(), first.join().unwrap());
    let (Error::Refused(own), Error::Refused(other)) = (own, other) else { panic!("not refused") };
    assert_eq!(own, other);
    assert_eq!(coordinator.wait(LONG).unwrap().refusal, Some(own.clone()));
    own
}

#[test]
fn both_hear_what_does_not_fit() {
    let taken = refused(bootstrap::Hello { host: "elsewhere".into(), ..hello(0, 3) });
    assert_eq!(taken, Refusal::RankTaken { rank: 0, first: "host0".into(), second: "elsewhere".into() });
    let out = refused(hello(3, 3));
    assert_eq!(out, Refusal::RankOutOfRange { rank: 3, host: "host1".into(), ranks: 3 });
    let ranks = refused(hello(1, 4));
    assert_eq!(ranks, Refusal::OtherRanks { rank: 1, host: "host0".into(), theirs: 4, ours: 3 });
    let build = refused(bootstrap::Hello { build: "build 2".into(), ..hello(2, 3) }).to_string();
    assert!(build.contains("build 1") && build.contains("build 2"), "{build}");
    let provider = refused(bootstrap::Hello { provider: "fibres".into(), ..hello(2, 3) }).to_string();
    assert!(provider.contains("threads") && provider.contains("fibres"), "{provider}");
}

#[test]
fn a_second_of_a_rank_does_not_disturb_a_job_that_runs() {
    let (coordinator, secret) = coordinator(plan(2));
    let hellos = (0..2).map(|rank| hello(rank, 2)).collect();
    let team: Vec<_> = join_all(coordinator.address(), &secret, hellos).into_iter().map(Result::unwrap).collect();
    let error = join(coordinator.address(), &secret, hello(1, 2), answer(1)).err().unwrap();
    assert!(matches!(error, Error::Refused(Refusal::RankTaken { rank: 1, .. })), "{error}");
    at_once(&team, |_, session| session.exchange(b"", LONG).unwrap());
}

#[test]
fn a_rank_that_ends_before_all_have_come_is_named() {
    let (coordinator, secret) = coordinator(plan(3));
    let address = coordinator.address();
    let first = thread::spawn(move || join(address, &secret, hello(0, 3), answer(0)).err().unwrap());
    thread::sleep(Duration::from_millis(100));
    coordinator.gone(2, "killed by signal 9");
    let error = first.join().unwrap();
    assert!(matches!(&error, Error::Refused(Refusal::Died { rank: 2, .. })), "{error}");
    assert!(error.to_string().contains("signal 9"));
}

#[test]
fn hundreds_of_ranks_join_at_once() {
    let begun = Instant::now();
    let (_coordinator, team) = team(plan(300));
    println!("300 threads joined after {:?}", begun.elapsed());
    let begun = Instant::now();
    at_once(&team, |rank, session| {
        let got = session.exchange(&[rank as u8; 1000], LONG).unwrap();
        assert!(got.len() == 300 && got.iter().enumerate().all(|(rank, item)| *item == [rank as u8; 1000]));
    });
    println!("an exchange of 1000 bytes of 300 threads: {:?}", begun.elapsed());
}
