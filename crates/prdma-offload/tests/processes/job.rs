//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::killed_putting;
use checks::killed::{self, Asked, Report};
use std::time::Duration;

/// The time that the other ranks have to end after one has died.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a job of `ranks` ranks, each with `bytes` of memory, that does what `asked` says.
pub(crate) fn launch(ranks: usize, bytes: usize, asked: &str) -> Report {
    killed::launch(ranks, env!("CARGO_TARGET_TMPDIR"), asked, |launcher| launcher.segment_bytes(bytes).grace(GRACE))
}

/// Runs one rank of a job that [`launch`] started; does nothing without a job.
#[test]
fn is_a_rank() {
    let Some(asked) = Asked::of_this_process() else { return };
    let words = asked.words().to_vec();
    asked.play(&async |fabric| killed_putting::play(fabric, &words).await, || None);
}
