//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::kills;
use checks::killed::{self, Asked, Outcome};
use std::time::Duration;

/// The time that the other ranks have to end after one has died.
const GRACE: Duration = Duration::from_secs(20);

/// Runs a job of `ranks` ranks that does what `asked` says.
pub(crate) fn launch(ranks: usize, asked: &str) -> Vec<Outcome> {
    let with = |launcher: tofu2_sim::shm::Launcher| launcher.grace(GRACE).shared_address_space(true);
    killed::launch(ranks, env!("CARGO_TARGET_TMPDIR"), asked, with).outcomes
}

/// Runs one rank of a job that [`launch`] started; does nothing without a job.
#[test]
fn is_a_rank() {
    if let Some(asked) = Asked::of_this_process() {
        let words = asked.words().to_vec();
        asked.play(&async |fabric| kills::play(fabric, &words).await, || None);
    }
}
