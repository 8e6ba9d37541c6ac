//! The examples, and their expected ends.

use super::{bounded::Ended, launcher::Launcher, report::Outcome};
use core::time::Duration;

/// A program of `examples/`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) ranks: usize,
    /// Its own options.
    pub(crate) words: &'static [&'static str],
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// All ranks succeed, and this is printed.
    Well(&'static str),
    /// A rank kills itself, and the others print this.
    Survived(&'static str),
}
use End::{Survived, Well};

const fn of_four(name: &'static str, end: End) -> Example {
    Example { name, ranks: 4, words: &[], end }
}

/// The example that represents all of them.
pub(crate) const QUICK: &str = "shared_counter";

/// All examples that start ranks as specified by their options.
pub(crate) const EXAMPLES: [Example; 22] = [
    of_four("counter", Well("sees 4")),
    of_four("shared_counter", Well("none lost")),
    of_four("window_lock", Well("none torn")),
    of_four("distributed_hashtable", Well("none lost")),
    of_four("stencil_rma", Well("fence, put, fence")),
    of_four("token_ring", Well("hops")),
    of_four("ping_pong", Well("one way")),
    of_four("server_any", Well("rank 0 answered")),
    of_four("matmul_summa", Well("equal to the serial product")),
    of_four("halo_1d", Well("steps right")),
    of_four("heat_2d", Well("bit by bit")),
    of_four("life", Well("a glider came back")),
    of_four("scale_dynamics", Well("warmest in layer")),
    of_four("ga_broadcast", Well("has both messages")),
    of_four("word_count", Well("different words")),
    of_four("own_protocol", Well(": 6")),
    of_four("crash_recovery", Survived("3 survivors went on")),
    Example { name: "existing_memory", ranks: 2, words: &[], end: Well("take") },
    of_four("overlapped_sum", Well("3.14159")),
    of_four("session_chain", Well("over 3 hops")),
    of_four("tokio_current_thread", Well("got the lock")),
    of_four("tokio_multi_thread", Well("words each")),
];

impl Example {
    pub(crate) fn loses_a_rank(&self) -> bool {
        matches!(self.end, Survived(_))
    }

    /// Returns the reason why this example is meaningless under a launcher, if it is.
    pub(crate) fn unfit_for(&self, launcher: Launcher) -> Option<&'static str> {
        let kills = launcher == Launcher::Mpich && self.loses_a_rank();
        kills.then_some("mpirun.mpich kills all ranks when one was killed")
    }

    /// Returns the outcome of a run that has ended, and the reason.
    pub(crate) fn judge(&self, ended: &Ended, within: Duration) -> (Outcome, String) {
        let Some(status) = ended.status else {
            return (Outcome::Failed, format!("did not end within {} s", within.as_secs()));
        };
        if let Some(line) = line_with(&ended.err, "libfabric has no provider") {
            return (Outcome::Skipped, line.to_owned());
        }
        if ended.left > 0 {
            return (Outcome::Failed, format!("left {} processes behind", ended.left));
        }
        let told = || {
            let line = line_with(&ended.err, "error: ").or(ended.err.lines().last());
            format!("{status}: {}", line.unwrap_or("nothing on standard error"))
        };
        match self.end {
            Well(text) if status.success() && ended.out.contains(text) => (Outcome::Ran, String::new()),
            Survived(text) if ended.out.contains(text) => (Outcome::Ran, String::new()),
            Well(text) | Survived(text) if status.success() => {
                (Outcome::Failed, format!("ended well, but did not print `{text}`"))
            }
            _ => (Outcome::Failed, told()),
        }
    }
}

/// Returns the first line with this text.
fn line_with<'a>(lines: &'a str, text: &str) -> Option<&'a str> {
    lines.lines().find(|line| line.contains(text)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

    fn judged(name: &str, code: i32, out: &str, err: &str) -> (Outcome, String) {
        let example = EXAMPLES.iter().find(|example| example.name == name).unwrap();
        let (status, took) = (Some(ExitStatus::from_raw(code << 8)), Duration::ZERO);
        example.judge(&Ended { status, out: out.into(), err: err.into(), took, left: 0 }, Duration::from_secs(1))
    }

    #[test]
    fn a_run_is_judged_by_its_output_too() {
        assert_eq!(judged("counter", 0, "rank 2 sees 4\n", "").0, Outcome::Ran);
        // Four jobs of one rank each.
        assert_eq!(judged("counter", 0, "rank 0 sees 1\n", "").0, Outcome::Failed);
        assert_eq!(judged("counter", 1, "rank 2 sees 4\n", "error: no").0, Outcome::Failed);
        assert_eq!(judged("crash_recovery", 137, "3 survivors went on; the", "").0, Outcome::Ran);
        assert_eq!(judged("crash_recovery", 137, "", "").0, Outcome::Failed);
        let nowhere = "[1] error: libfabric has no provider `x` here; it has tcp\n";
        assert_eq!(judged("counter", 1, "", nowhere).0, Outcome::Skipped);
    }
}
