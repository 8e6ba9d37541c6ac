//! Deadlock detection: reports that this rank waits for others to the coordinator, which sees
//! whether all ranks do.

use super::membership::Membership;
use bootstrap::Speaker;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Number of unsuccessful polls since the rank's wait was first observed; two, because the first
/// poll may have begun before.
const REQUIRED_POLLS: u64 = 2;

/// A thread that checks the rank's wait periodically; it ends when this is dropped.
pub(crate) struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to report when the rank has waited for others for `bound`, and when that wait ends.
    /// If the machine has no thread for this, nothing is reported.
    pub(crate) fn start(bound: Duration, membership: &Arc<Membership>, speaker: &Speaker) -> Self {
        let ends = Arc::<AtomicBool>::default();
        let (membership, speaker, ended) = (membership.clone(), speaker.clone(), ends.clone());
        let look = move || watch(bound, &membership, &speaker, &ended);
        let thread = thread::Builder::new().name("deadlock".to_owned()).stack_size(128 << 10).spawn(look);
        Watch { ends, thread: thread.ok() }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

fn watch(bound: Duration, membership: &Membership, speaker: &Speaker, ends: &AtomicBool) {
    let pause = (bound / 8).clamp(Duration::from_millis(5), Duration::from_secs(1));
    let (mut wait, mut told) = (None, false);
    while !ends.load(Relaxed) {
        let now = membership.wait_status();
        match (now, wait) {
            (Some(now), Some((stamp, looks, since))) if now.stamp == stamp => {
                let since: Instant = since;
                let has_looked = now.looks.wrapping_sub(looks) >= REQUIRED_POLLS;
                if !told && has_looked && since.elapsed() >= bound {
                    told = speaker.waits(Some(stamp)).is_ok();
                }
            }
            _ => {
                if told {
                    // If the report can't be sent, the coordinator is lost.
                    let _ = speaker.waits(None);
                }
                told = false;
                wait = now.map(|now| (now.stamp, now.looks, Instant::now()));
            }
        }
        thread::park_timeout(pause);
    }
}
