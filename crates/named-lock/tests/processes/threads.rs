//! Threads that share a handle.

use crate::children::{Place, SOON};
use named_lock::Error;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

pub(crate) fn threads_exclude_each_other() {
    let place = Place::new();
    let lock = Arc::new(place.open());
    let (inside, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    // More than may wait at a time.
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let (lock, inside, count) = (lock.clone(), inside.clone(), count.clone());
            thread::spawn(move || {
                for turn in 0..100 {
                    if (number + turn) % 3 == 0 {
                        let guard = lock.read().expect("held");
                        assert_eq!(inside.load(Relaxed), 0, "beside a writer");
                        guard.release().expect("released");
                        continue;
                    }
                    let guard = lock.write().expect("held");
                    assert_eq!(inside.fetch_add(1, Relaxed), 0, "beside a writer");
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
    // More often than there are queue nodes.
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
