//! The jobs that must be searched, those of them that are small; `cargo xtask twin` searches all, and every move apart.

use std::time::Instant;
use twin::{Case, Lock, Search, Verdict};

/// How many states each has, where it is small.
fn search(lock: Lock, states: [Option<u64>; 4]) {
    for (case, states) in Case::REQUIRED.iter().zip(states) {
        let Some(states) = states else { continue };
        let (job, start) = (case.of(lock), Instant::now());
        let report = Search::new(&job).run();
        println!("{lock:?} {}: {report}, {:.2} s", case.name, start.elapsed().as_secs_f64());
        assert_eq!(report.verdict, Verdict::Exhausted, "{lock:?} {}", case.name);
        assert_eq!(report.states, states, "{lock:?} {}", case.name);
        assert!(report.together, "{lock:?} {}: readers are never inside together", case.name);
    }
}

#[test]
fn flat() {
    search(Lock::Flat, [Some(4_264), Some(249_595), Some(143_996), Some(31_731)]);
}

#[test]
fn packed() {
    search(Lock::Packed, [Some(3_827), None, Some(172_091), Some(30_374)]);
}

#[test]
fn writers_first() {
    search(Lock::WritersFirst, [Some(4_640), None, None, Some(306_232)]);
}

#[test]
fn fair() {
    search(Lock::Fair, [Some(5_079), Some(278_242), Some(97_436), Some(24_853)]);
}

#[test]
fn aggregated() {
    search(Lock::Aggregated, [Some(26_512), None, None, Some(192_867)]);
}
