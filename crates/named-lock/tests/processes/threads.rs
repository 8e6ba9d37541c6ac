//! Threads that share a handle.

use crate::children::{Place, SOON};
use named_lock::Error;
use std::{
    os::unix::fs::MetadataExt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

pub(crate) fn threads_exclude_each_other() {
    let place = Place::new();
    let lock = Arc::new(place.open());
    let (inside, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    // More threads than may wait at a time.
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let (lock, inside, count) = (lock.clone(), inside.clone(), count.clone());
            thread::spawn(move || {
                for turn in 0..100 {
                    if (number + turn) % 3 == 0 {
                        let guard = lock.read().expect("held");
                        assert_eq!(inside.load(Relaxed), 0, "together with a writer");
                        guard.release().expect("released");
                        continue;
                    }
                    let guard = lock.write().expect("held");
                    assert_eq!(inside.fetch_add(1, Relaxed), 0, "together with a writer");
                    count.store(count.load(Relaxed) + 1, Relaxed);
                    inside.fetch_sub(1, Relaxed);
                    guard.release().expect("released");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(count.load(Relaxed), 800);
}

pub(crate) fn deadlines_are_kept() {
    let place = Place::new();
    let (lock, other) = (place.open(), place.open());
    let guard = lock.write().expect("held");
    // More times than there are queue nodes.
    for _ in 0..10 {
        let began = Instant::now();
        let refused = other.write_within(Duration::from_millis(20));
        assert!(matches!(refused, Err(Error::TimedOut { .. })), "{refused:?}");
        assert!(began.elapsed() >= Duration::from_millis(20) && began.elapsed() < SOON);
        assert!(matches!(other.read_within(Duration::ZERO), Err(Error::TimedOut { .. })));
        assert!(other.try_read().expect("no error").is_none());
    }
    guard.release().expect("released");
    other.write_within(SOON).expect("held").release().expect("released");
    lock.read_within(SOON).expect("held").release().expect("released");
}

pub(crate) fn threads_continue_in_the_next_file() {
    let place = Place::new();
    let number = |place: &Place| std::fs::metadata(place.path()).expect("there").ino();
    let locks: Vec<_> = (0..2).map(|_| Arc::new(place.open())).collect();
    let (inside, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..6)
        .map(|number| {
            let (lock, inside, stop) = (locks[number % 2].clone(), inside.clone(), stop.clone());
            thread::spawn(move || {
                let mut turns = 0u64;
                while !stop.load(Relaxed) {
                    let guard = lock.write().expect("held");
                    assert_eq!(inside.fetch_add(1, Relaxed), 0, "together with a writer");
                    thread::yield_now();
                    inside.fetch_sub(1, Relaxed);
                    guard.release().expect("released");
                    turns += 1;
                }
                turns
            })
        })
        .collect();
    let (mut files, mut last) = (0, number(&place));
    // Each death costs an epoch.
    for _ in 0..60 {
        let mut reader = place.start("read", &[]);
        reader.expect_line("holds");
        reader.kill();
        files += u32::from(number(&place) != last);
        last = number(&place);
    }
    stop.store(true, Relaxed);
    let turns: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    println!("    {files} new files, turns {turns:?}");
    assert!(files > 0 && turns.iter().all(|turns| *turns > 0));
}
