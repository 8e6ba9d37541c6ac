//! Jobs under a watchdog, which names a test that hangs.

use fabric_conformance::watchdog::watch_test;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Returns a job whose ranks are threads, and watches the calling test.
#[track_caller]
pub(crate) fn threads(ranks: usize) -> Threads {
    watch_test();
    Threads::new(ranks)
}

/// Returns a job in virtual time, and watches the calling test.
#[track_caller]
pub(crate) fn virtual_time<'a>(platform: &Platform, ranks: usize) -> Job<'a> {
    watch_test();
    Job::new(platform, ranks)
}
