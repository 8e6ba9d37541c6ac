//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::{late, parts};
use checks::killed::{self, Asked, Outcome};
use std::{path::Path, time::Duration};

/// The time within which the other ranks must end after one has died.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a job of `ranks` ranks with the part `asked`.
#[track_caller]
pub(crate) fn launch(ranks: usize, asked: &str) -> Vec<Outcome> {
    launch_with(ranks, asked, 1 << 20)
}

/// Runs a job as [`launch`] does, with segments of `bytes` bytes.
#[track_caller]
pub(crate) fn launch_with(ranks: usize, asked: &str, bytes: usize) -> Vec<Outcome> {
    let with =
        |launcher: tofu2_sim::shm::Launcher| launcher.grace(GRACE).shared_address_space(true).segment_bytes(bytes);
    killed::launch(ranks, env!("CARGO_TARGET_TMPDIR"), asked, with).outcomes
}

/// Runs one rank of a job that [`launch`] started; does nothing without a job.
#[test]
fn is_a_rank() {
    if let Some(asked) = Asked::of_this_process() {
        let words = asked.words().to_vec();
        let program = async |fabric| match words.as_slice() {
            [late, directory] if late == "late" => late::play(fabric, Path::new(directory)).await,
            words => parts::play(fabric, words).await,
        };
        asked.play(&program, || None);
    }
}
