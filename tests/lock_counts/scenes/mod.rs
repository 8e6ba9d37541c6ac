//! The paths: who does what, and what each rank posts for it.
//!
//! The numbers as printed are those of the operations that Mellor-Crummey and Scott's Figure 7 would be on a fabric: what it does to the
//! lock's words is an operation at the home, what it does to somebody else's queue node one at a peer, and own nodes are own memory.

mod between;
mod fair;
mod meeting;
mod packed;
mod quitting;
mod writers_first;

use crate::{
    mutant::Subject,
    scene::{Act, Cue, Line, Scene},
};

/// A writer whom nobody meets.
pub(crate) const ALONE: &str = "exclusive, nobody about";
/// A reader whose second look is needed.
pub(crate) const LOOKS_AGAIN: &str = "reader counted, writer sweeps, reader looks again";
/// A reader that does not wait for its turn.
pub(crate) const GIVES_UP: &str = "reader behind a writer gives up";

const W_LOCK: &str = "W2 swap, W3 put, W3 flush, W4 add, W5 cas";
const W_UNLOCK: &str = "flush_all, X2 add, X4 cas";
const W_QUEUES: &str = "W2 swap, W6 swap@peer";
const R_LOCK: &str = "R1 add";
const R_UNLOCK: &str = "flush_all, U1 add";
const R_QUEUES: &str = "R1 add, R3 swap, R4 get";
const R_LAST: &str = "flush_all, U1 add, U2 cas, U3 get, U4 cas@peer";

/// Why a leaving writer posts fewer.
const NO_X1: &str = "X1 is redundant";
const NO_X1_X3: &str = "X1 is redundant; X3 looks only if readers are counted";
const HAND_OVER: &str = "flush_all, X2 add, X5 put, X5 flush, X6 add, X7 cas, X7 get, wake cas@peer";

/// A rank whose operations take longer than those of ranks 1 to 3: far from the home, in a job of [`MANY`].
const FAR: u32 = 150;
const MANY: usize = 300;

fn line(phase: u32, rank: u32, what: &'static str, steps: &'static str) -> Line {
    Line { phase, rank, what, steps, printed: None, because: "" }
}

/// What is told elsewhere.
fn also(phase: u32, rank: u32, steps: &'static str) -> Line {
    line(phase, rank, "", steps)
}

impl Line {
    fn printed(self, home: u64, peers: u64) -> Line {
        Line { printed: Some((home, peers)), ..self }
    }

    fn because(self, because: &'static str) -> Line {
        Line { because, ..self }
    }
}

/// Acts at their phases' beginning.
fn scene<const C: usize, const L: usize>(name: &'static str, cues: [(u32, u32, Act); C], lines: [Line; L]) -> Scene {
    let cues: Vec<_> = cues.into_iter().map(|(phase, rank, act)| Cue { phase, rank, after: 0, act }).collect();
    let ranks = 1 + cues.iter().map(|cue| cue.rank).max().unwrap_or(0) as usize;
    Scene { lock: Subject::Flat, name, calm: false, ranks, cues, lines: lines.to_vec() }
}

impl Scene {
    fn calm(self) -> Scene {
        Scene { calm: true, ..self }
    }

    /// Delay what `rank` does in `phase` by nanoseconds.
    fn delayed(mut self, phase: u32, rank: u32, nanos: u64) -> Scene {
        self.cues.iter_mut().filter(|cue| (cue.phase, cue.rank) == (phase, rank)).for_each(|cue| cue.after = nanos);
        self
    }
}

pub(crate) fn scenes() -> Vec<Scene> {
    [
        meeting::scenes(),
        between::scenes(),
        quitting::scenes(),
        packed::scenes(),
        writers_first::scenes(),
        fair::scenes(),
    ]
    .concat()
}

/// Scenes written for another lock than the one as printed.
fn of(lock: Subject, scenes: Vec<Scene>) -> Vec<Scene> {
    scenes.into_iter().map(|scene| Scene { lock, ..scene }).collect()
}
