//! Killed holders and waiters.

use crate::{
    children::{HANG, Place, SOON, succeed},
    roles::mended,
};
use named_lock::{Error, NamedLock, WriteGuard};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

fn torn_by(outcome: Result<WriteGuard, Error>) -> u32 {
    match outcome {
        Err(Error::Torn { by, .. }) => by,
        other => panic!("{other:?}"),
    }
}

/// Mends the lock, and checks that it can be taken again.
fn mend(lock: &NamedLock, by: u32) {
    assert!(matches!(lock.read_within(SOON), Err(Error::Torn { by: reported, .. }) if reported == by), "readers, too");
    let mut guard = lock.mend_within(SOON).expect("held");
    assert_eq!(guard.torn().map(|torn| torn.by), Some(by));
    guard.clear_torn().expect("cleared");
    assert_eq!(guard.torn(), None);
    guard.release().expect("released");
    lock.write_within(SOON).expect("whole").release().expect("released");
    lock.read_within(SOON).expect("whole").release().expect("released");
}

pub(crate) fn waiters_get_an_error_after_a_writer_is_killed() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    let waiters: Vec<_> = (0..3)
        .map(|index| {
            let other = place.open();
            thread::spawn(move || match index {
                0 => other.read_within(HANG).map(|_| ()),
                _ => other.write_within(HANG).map(|_| ()),
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(50));
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "they wait");
    holder.kill();
    let killed = Instant::now();
    for waiter in waiters {
        match waiter.join().expect("no panic") {
            Err(Error::Torn { by, .. }) => assert_eq!(by, holder.id()),
            other => panic!("{other:?}"),
        }
    }
    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    mend(&lock, holder.id());
}

pub(crate) fn a_later_open_finds_a_killed_writer() {
    let place = Place::new();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    holder.kill();
    let number = holder.id();
    // No process has the lock open now.
    drop(holder);
    let began = Instant::now();
    let lock = place.open();
    assert_eq!(torn_by(lock.write_within(SOON)), number);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    drop(lock);
    mend(&place.open(), number);
}

pub(crate) fn a_try_finds_a_killed_writer() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    assert!(lock.try_read().expect("no error").is_none());
    assert!(lock.try_write().expect("no error").is_none());
    holder.kill();
    let began = Instant::now();
    let by = loop {
        match lock.try_write() {
            Ok(None) => assert!(began.elapsed() < SOON, "the death is not noticed"),
            Ok(Some(_)) => panic!("entered although the data are torn"),
            Err(Error::Torn { by, .. }) => break by,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(by, holder.id());
    mend(&lock, by);
}

pub(crate) fn repeated_short_waits_find_a_killed_writer() {
    let place = Place::new();
    let other = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    // Each leaves a node in the queue, until none is left to wait with.
    for _ in 0..6 {
        assert!(matches!(other.write_within(Duration::from_millis(10)), Err(Error::TimedOut { .. })));
    }
    holder.kill();
    let began = Instant::now();
    assert_eq!(torn_by(other.write_within(SOON)), holder.id());
    assert!(began.elapsed() < SOON);
    mend(&other, holder.id());
}

pub(crate) fn a_killed_reader_only_delays() {
    let place = Place::new();
    let lock = place.open();
    let mut reader = place.start("read", &[]);
    reader.expect_line("holds");
    lock.read_within(SOON).expect("shared").release().expect("released");
    assert!(lock.try_write().expect("no error").is_none());
    assert!(matches!(lock.write_within(Duration::from_millis(30)), Err(Error::TimedOut { .. })));
    reader.kill();
    lock.write_within(SOON).expect("nothing is torn").release().expect("released");
}

pub(crate) fn a_killed_waiter_only_delays() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    let mut waiter = place.start("wait-to-write", &[]);
    waiter.expect_line("waits");
    let mut behind = place.start("wait-to-write", &[]);
    behind.expect_line("waits");
    thread::sleep(Duration::from_millis(50));
    waiter.kill();
    thread::sleep(Duration::from_millis(20));
    holder.write("\n");
    behind.expect_line("holds");
    behind.write("\n");
    succeed(behind);
    succeed(holder);
    lock.write_within(SOON).expect("nothing is torn").release().expect("released");
}

pub(crate) fn a_killed_mender_leaves_torn_data() {
    let place = Place::new();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    holder.kill();
    let mut mender = place.start("mend", &[]);
    mender.expect_line("holds");
    mender.kill();
    let lock = place.open();
    assert_eq!(torn_by(lock.write_within(SOON)), mender.id());
    // A live process that does not repair the data leaves the lock torn.
    lock.mend_within(SOON).expect("held").release().expect("released");
    mend(&lock, mender.id());
}

pub(crate) fn a_panic_leaves_torn_data() {
    let place = Place::new();
    let (lock, other) = (place.open(), place.open());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _guard = lock.write().expect("held");
        panic!("in mid-write, as it should");
    }));
    assert!(panicked.is_err());
    assert_eq!(torn_by(other.write_within(SOON)), std::process::id());
    mend(&other, std::process::id());
}

pub(crate) fn writers_killed_at_random_never_hang_the_others() {
    let place = Place::new();
    let lock = place.open();
    let mut writers: Vec<_> = (0..4).map(|_| place.start("write-repeatedly", &[])).collect();
    writers.iter_mut().for_each(|writer| writer.expect_line("writes"));
    // More deaths than fit into one file.
    for round in 0..40u64 {
        thread::sleep(Duration::from_micros(3_000 + round * 7_919 % 4_000));
        let index = round as usize % writers.len();
        assert!(writers[index].is_running(), "a survivor has failed");
        writers[index].kill();
        writers[index] = place.start("write-repeatedly", &[]);
        let began = Instant::now();
        match lock.write_within(HANG) {
            Err(Error::Torn { .. }) => mended(&lock).release().expect("released"),
            guard => guard.expect("held").release().expect("released"),
        }
        assert!(began.elapsed() < SOON, "round {round}: {:?}", began.elapsed());
        writers[index].expect_line("writes");
    }
}

pub(crate) fn more_deaths_than_a_file_has_room_for_are_an_error() {
    let place = Place::new();
    let (lock, other) = (place.open(), place.open());
    let mut readers: Vec<_> = (0..30).map(|_| place.start("read", &[])).collect();
    readers.iter_mut().for_each(|reader| reader.expect_line("holds"));
    // It stays inside, so that the file cannot be replaced.
    let guard = lock.read().expect("held");
    let mut full = 0;
    for reader in &mut readers {
        reader.kill();
        let began = Instant::now();
        match other.write_within(Duration::from_millis(40)) {
            Err(Error::TimedOut { .. }) => {}
            Err(Error::Full { .. }) => full += 1,
            outcome => panic!("while a reader holds the lock: {outcome:?}"),
        }
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
    println!("    {full} of {} times there was no room", readers.len());
    assert!(full > 0, "the file has fewer epochs than that");
    let waits = thread::spawn(move || other.write_within(HANG).map(|_| ()));
    thread::sleep(Duration::from_millis(100));
    guard.release().expect("released");
    waits.join().expect("no panic").expect("nothing is torn");
    lock.write_within(SOON).expect("nothing is torn").release().expect("released");
}
