//! The small ones among the jobs that must be searched; `cargo xtask twin` searches all of them,
//! and also without making moves at once.

use std::time::Instant;
use twin::{Case, Lock, Search, Verdict};

/// The number of states of each required job that is small.
const STATES: [(Lock, [Option<u64>; 4]); 5] = [
    (Lock::Flat, [Some(4_264), Some(249_595), Some(143_996), Some(31_731)]),
    (Lock::Packed, [Some(3_827), None, Some(172_091), Some(30_374)]),
    (Lock::WritersFirst, [Some(4_640), None, None, Some(306_232)]),
    (Lock::Fair, [Some(5_079), Some(278_242), Some(97_436), Some(24_853)]),
    (Lock::Aggregated, [Some(26_512), None, None, Some(192_867)]),
];

#[test]
fn required_jobs_are_exhausted() {
    let jobs = STATES.into_iter().flat_map(|(lock, states)| {
        Case::REQUIRED.into_iter().zip(states).map(move |(case, states)| (lock, case, states))
    });
    for (lock, case, states) in jobs {
        let Some(states) = states else { continue };
        let (job, start) = (case.of(lock), Instant::now());
        let report = Search::new(&job).run();
        println!("{lock:?} {}: {report}, {:.2} s", case.name, start.elapsed().as_secs_f64());
        assert_eq!(report.verdict, Verdict::Exhausted, "{lock:?} {}", case.name);
        assert_eq!(report.states, states, "{lock:?} {}", case.name);
        assert!(report.together, "{lock:?} {}: readers are never inside together", case.name);
    }
}
