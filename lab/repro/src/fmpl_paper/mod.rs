//! The evaluation of FMPL on the Hitachi SR8000 (section 6): its jobs, results and comparison with
//! the paper. FMPL and BLACS on it are this project's crates; MPI, and BLACS on MPI, are
//! [software terms](crate::workloads::messages) over the same machine.
//!
//! # Placement
//! One rank runs on each node. Up to 8 nodes share one crossbar; 16 nodes form two rows of 8. Jobs
//! of 9 to 15 nodes do not fill a rectangle, so they have no hardware barrier and no broadcast.
//!
//! # Method
//! Messages between two ranks are measured as half a round trip, as in the paper. A barrier,
//! broadcast or reduction is measured alone, from the moment when all ranks begin until the last
//! one has ended, as the mean over roots. The paper repeats them one after another, with a new root
//! each time. Table 1 is derived from the timeline of a ping-pong.

mod breakdown;
mod compare;
mod runs;

pub use breakdown::{Breakdown, Phases};
pub use compare::compare;
pub use runs::{Alone, FmplRuns, PostedRun, SizesRun, run};

use crate::{
    simulate::Traced,
    workloads::messages::{Library, Memory},
};
use tofu2_sim::virt::Platform;

/// Barriers, broadcasts and reductions of one library at one number of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveCase {
    /// The library.
    pub library: Library,
    /// The number of nodes.
    pub nodes: u32,
    /// The sizes of broadcasts, in bytes.
    pub sizes: Vec<usize>,
}

/// The jobs to run. [`FmplPlan::paper`] contains the paper's evaluation; the fields may be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FmplPlan {
    /// The libraries that exchange messages between two ranks.
    pub between_two: Vec<Library>,
    /// Sizes of these messages, in bytes.
    pub sizes: Vec<usize>,
    /// The libraries that post many receives.
    pub posting: Vec<Library>,
    /// The number of receives.
    pub posted: usize,
    /// Collectives.
    pub collectives: Vec<CollectiveCase>,
    /// The machine.
    pub platform: Platform,
    /// Seed of every job: 0 keeps simultaneous events in the order of their creation, another
    /// number shuffles them.
    pub seed: u64,
    /// Whether this is a smoke test with fewer sizes.
    pub quick: bool,
    /// A timeline to record during the run, which does not affect the jobs.
    pub traced: Option<Traced>,
}

impl FmplPlan {
    /// The number of posted receives.
    pub const POSTED: usize = 600;
    /// The size of the longest message in bytes: 16 MB.
    pub const LONGEST: usize = 16 << 20;
    /// The size of the broadcasts and reductions at all numbers of nodes, in bytes: 8 KB.
    pub const SHORT: usize = 8 << 10;
    /// The size of the broadcast whose bandwidth is printed, in bytes: 8 MB.
    pub const LONG: usize = 8 << 20;
    /// The number of sizes in figures 7 and 10 here: powers of two from 8 B to the longest.
    pub const SIZES: usize = (Self::LONGEST / 8).ilog2() as usize + 1;
    /// The maximum number of nodes.
    pub const NODES: u32 = 16;

    /// Returns the paper's evaluation: figures 7 to 11 over their whole ranges.
    pub fn paper(seed: u64) -> Self {
        Self::with_sizes(seed, sizes(1), false)
    }

    /// Returns the same plan with fewer sizes. It shows whether everything works, not the form of
    /// the curves.
    pub fn quick(seed: u64) -> Self {
        Self::with_sizes(seed, sizes(7), true)
    }

    fn with_sizes(seed: u64, sizes: Vec<usize>, quick: bool) -> Self {
        let case = |library, nodes| {
            let all = nodes == Self::NODES;
            let sizes = if all { sizes.clone() } else { vec![Self::SHORT] };
            CollectiveCase { library, nodes, sizes }
        };
        let collectives = Library::COLLECTIVE.into_iter();
        FmplPlan {
            between_two: Library::BETWEEN_TWO.to_vec(),
            posting: vec![Library::Fmpl, Library::Mpi(Memory::Rdma)],
            posted: Self::POSTED,
            collectives: collectives
                .flat_map(|library| (2..=Self::NODES).map(move |nodes| (library, nodes)))
                .map(|(library, nodes)| case(library, nodes))
                .collect(),
            sizes: sizes.clone(),
            platform: Platform::sr8000(),
            seed,
            quick,
            traced: None,
        }
    }

    /// Returns the same plan with only the sizes of published figures.
    pub fn published(mut self) -> Self {
        // Those between the printed ones show where FMPL gains most.
        self.sizes = [8].into_iter().chain((10..=20).step_by(2).map(|bits| 1 << bits)).chain([Self::LONGEST]).collect();
        for case in &mut self.collectives {
            case.sizes = vec![Self::SHORT];
            if case.nodes == Self::NODES {
                case.sizes.extend(match case.library {
                    Library::Fmpl => &[Self::LONG / 2, Self::LONG][..],
                    Library::FmplSoftware | Library::BlacsFmpl | Library::Mpi(Memory::Rdma) => &[Self::LONG],
                    _ => &[],
                });
            }
        }
        self
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        // One of them provides the timeline of table 1.
        self.between_two.len() + self.posting.len() + 1 + self.collectives.len()
    }

    /// Returns the roots of broadcasts and reductions of `bytes` bytes: all members, or some of
    /// them if the data is long.
    pub(crate) fn roots(nodes: u32, bytes: usize) -> Vec<usize> {
        let step = match bytes {
            0..=65_536 => 1,
            65_537..=1_048_576 => 4,
            _ => 8,
        };
        (0..nodes as usize).step_by(step).collect()
    }
}

/// Returns sizes from 8 B to 16 MB, `doublings` doublings apart, and the printed sizes.
fn sizes(doublings: usize) -> Vec<usize> {
    let printed = [8, FmplPlan::SHORT, FmplPlan::LONG / 2, FmplPlan::LONG, FmplPlan::LONGEST];
    let mut sizes: Vec<usize> = (3..=24).step_by(doublings).map(|bits| 1 << bits).chain(printed).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
