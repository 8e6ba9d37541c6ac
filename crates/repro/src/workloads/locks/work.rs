//! Computing for so long.

use core::{hint::black_box, time::Duration};
use rdma_fabric::Fabric;

/// Keeps a rank's CPU busy: the fabric's [`Fabric::compute`] in virtual time, as many turns of a loop on wall clock.
///
/// Turns and not a look at the clock: who is switched out meanwhile has its work still before it, as a program would.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Turns of the loop in a microsecond; `None` in virtual time.
    turns: Option<u64>,
}

/// Turns that are timed to know how long one takes.
const TRIAL: u64 = 4096;
/// The fastest of so many trials counts: no other work disturbed it.
const TRIALS: u32 = 64;

impl Work {
    /// Learn how fast this rank is.
    pub(super) async fn calibrated(fabric: &Fabric) -> Self {
        // On wall clock this takes no time, unless the rank is switched out; not every time.
        const STEP: Duration = Duration::from_micros(1);
        let mut is_virtual = true;
        for _ in 0..16 {
            let begun = fabric.now();
            fabric.compute(STEP).await;
            is_virtual &= fabric.now() - begun >= STEP;
        }
        if is_virtual {
            return Work { turns: None };
        }
        let fastest = (0..TRIALS).map(|_| {
            let begun = fabric.now();
            spin(TRIAL);
            fabric.now().picos_since(begun)
        });
        let fastest = fastest.min().unwrap_or(1).max(1);
        Work { turns: Some((TRIAL * 1_000_000).div_ceil(fastest)) }
    }

    /// Be busy for `duration`.
    #[inline]
    pub(super) async fn busy(self, fabric: &Fabric, duration: Duration) {
        match self.turns {
            None => fabric.compute(duration).await,
            Some(turns) => spin(turns * duration.as_nanos() as u64 / 1000),
        }
    }
}

fn spin(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}
