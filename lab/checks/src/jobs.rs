//! The jobs of tests, each monitored by the [watchdog](crate::watchdog): their ranks are threads,
//! or simulated. [`crate::killed`] starts those whose ranks are processes.

use fabric_conformance::watchdog::watch_test;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Returns a job whose ranks are threads, and watches the calling test.
#[track_caller]
pub fn threads(ranks: usize) -> Threads {
    watch_test();
    Threads::new(ranks)
}

/// Returns a job in virtual time, and watches the calling test.
#[track_caller]
pub fn virtual_time<'a>(platform: &Platform, ranks: usize) -> Job<'a> {
    watch_test();
    Job::new(platform, ranks)
}
