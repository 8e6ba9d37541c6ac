//! Progress on a terminal while other processes measure.

use super::{bare::Bare, lines};
use core::{
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    time::Duration,
};
use repro::progress::Progress;
use std::thread;

/// The interval between two updates.
const INTERVAL: Duration = Duration::from_millis(500);

/// Runs `job`, and shows the current stage while it runs: `at` converts the word that identifies the stage to the
/// number of earlier ones and its name. Without a terminal no thread disturbs the ranks.
pub(super) fn watch<T>(
    progress: &Progress,
    bare: &Bare,
    at: impl Fn(u64) -> Option<(usize, String)> + Sync,
    job: impl FnOnce() -> T,
) -> T {
    let Some(mut show) = progress.display() else { return job() };
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !ended.load(Acquire) {
                thread::park_timeout(INTERVAL);
                if let Some((done, stage)) = at(bare.word(lines::PROGRESS).load(Acquire)) {
                    show(done, stage);
                }
            }
        });
        let out = job();
        ended.store(true, Release);
        watcher.thread().unpark();
        out
    })
}
