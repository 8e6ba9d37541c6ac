//! Many processes at the same time, and many one after the other.

use crate::{
    children::{Place, SOON, succeed},
    roles::mended,
};
use named_lock::{Error, NamedLock, PROCESSES};
use std::{
    fs, thread,
    time::{Duration, Instant},
};

pub(crate) fn sixteen_processes_count_together() {
    let place = Place::new();
    fs::write(place.data(), "0").expect("written");
    let all: Vec<_> = (0..16).map(|_| place.start("count", &["200"])).collect();
    all.into_iter().for_each(succeed);
    assert_eq!(fs::read_to_string(place.data()).expect("there"), "3200");
}

pub(crate) fn readers_and_writers_exclude_each_other() {
    let place = Place::new();
    fs::write(place.data(), "one\none\n").expect("written");
    let all: Vec<_> = (0..6).map(|_| place.start("read-and-write", &["400"])).collect();
    all.into_iter().for_each(succeed);
}

/// Starts and ends `visitors` processes one after the other, some of them killed, while one process
/// keeps the lock open.
fn come_and_go(visitors: usize) {
    let place = Place::new();
    fs::write(place.data(), "0").expect("written");
    let lock = place.open();
    let (mut written, mut killed, mut torn) = (0, 0, 0);
    for visitor in 0..visitors {
        // Occasionally one that is killed while it holds the lock, and one that is killed without
        // it.
        let (role, args): (&str, &[&str]) = match visitor % 32 {
            3 | 19 => ("visit", &["read"]),
            5 | 21 => ("visit", &["nothing"]),
            7 | 23 => ("visit", &["abandon"]),
            11 => ("write", &[]),
            13 => ("stay", &[]),
            27 => ("read", &[]),
            _ => ("visit", &["write"]),
        };
        written += u64::from(args == ["write"]);
        let mut child = place.start(role, args);
        if role == "visit" {
            succeed(child);
        } else {
            child.expect_line("holds");
            child.kill();
            killed += 1;
            if role == "write" {
                torn += 1;
                let outcome = lock.write_within(SOON);
                assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == child.id()), "{outcome:?}");
                mended(&lock).release().expect("released");
            }
        }
        let guard = lock.write_within(SOON).expect("held");
        let counted = fs::read_to_string(place.data()).expect("there");
        assert_eq!(counted, written.to_string(), "visitor {visitor}");
        guard.release().expect("released");
    }
    println!("    {visitors} processes, {killed} of them killed, {torn} in mid-write");
    assert!(torn > 0 && killed > torn);
}

pub(crate) fn many_processes_come_and_go() {
    come_and_go(480);
}

pub(crate) fn ten_thousand_processes_come_and_go() {
    come_and_go(10_000);
}

/// Processes that had to wait leave traces in the words of their ranks, which others reuse later.
pub(crate) fn many_contending_processes_come_and_go() {
    let place = Place::new();
    fs::write(place.data(), "0").expect("written");
    let rounds = 3 * PROCESSES / 6;
    for _ in 0..rounds {
        let all: Vec<_> = (0..6).map(|_| place.start("count", &["4"])).collect();
        all.into_iter().for_each(succeed);
    }
    assert_eq!(fs::read_to_string(place.data()).expect("there"), (rounds * 24).to_string());
}

pub(crate) fn many_processes_come_and_go_while_a_reader_stays() {
    let place = Place::new();
    fs::write(place.data(), "0").expect("written");
    let lock = place.open();
    let guard = lock.read().expect("held");
    // Three times as many as there are places: they reuse each other's.
    for turn in 0..3 * PROCESSES / 8 {
        let role = if turn % 5 == 0 { "nothing" } else { "read" };
        let visits: Vec<_> = (0..8).map(|_| place.start("visit", &[role])).collect();
        visits.into_iter().for_each(succeed);
    }
    let other = place.open();
    assert!(other.try_write().expect("no error").is_none(), "the reader is still inside");
    guard.release().expect("released");
    other.write_within(SOON).expect("held").release().expect("released");
}

pub(crate) fn an_open_waits_for_room_in_a_full_lock() {
    let place = Place::new();
    let mut all: Vec<_> = (0..PROCESSES).map(|_| place.open()).collect();
    let guard = all[0].read().expect("held");
    let path = place.path();
    let late = thread::spawn(move || NamedLock::open_path(path));
    thread::sleep(Duration::from_millis(500));
    assert!(!late.is_finished(), "it waits for room");
    all[1].read_within(SOON).expect("the members can still use it").release().expect("released");
    drop(guard);
    let began = Instant::now();
    // The late one makes room by a new file; none of the others has noticed.
    let late = late.join().expect("no panic").expect("room was made");
    late.write_within(SOON).expect("held").release().expect("released");
    all.pop().expect("many").write_within(SOON).expect("held").release().expect("released");
    assert!(began.elapsed() < SOON);
}

pub(crate) fn simultaneous_first_opens_make_one_lock() {
    for _ in 0..5 {
        let place = Place::new();
        fs::write(place.data(), "0").expect("written");
        let all: Vec<_> = (0..8).map(|_| place.start("count", &["5"])).collect();
        all.into_iter().for_each(succeed);
        assert_eq!(fs::read_to_string(place.data()).expect("there"), "40");
        let there: Vec<_> = fs::read_dir(place.path().parent().expect("a folder")).expect("read").collect();
        assert_eq!(there.len(), 2, "only the lock and its data: {there:?}");
    }
}
