//! The evaluation of FMPL on the Hitachi SR8000 (section 6): what is run, what comes out, how it
//! compares. FMPL is this project's crate; MPI and BLACS are [software terms](crate::workloads::messages)
//! over the same machine.
//!
//! # Placement
//! A rank on each node. Up to 8 nodes are on one crossbar; 16 are two rows of 8. From 9 to 15 nodes
//! fill no rectangle, so there is no hardware barrier and no broadcast.
//!
//! # What is measured how
//! Messages between two ranks as half a round trip, as in the paper. A barrier, broadcast or reduction
//! is measured alone, from the moment when all ranks begin until the last has ended; the mean over
//! roots. The paper repeats them one after the other, with a new root each time. Table 1 is read off
//! the timeline of a ping-pong.

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
    /// Who does it.
    pub library: Library,
    /// On how many nodes.
    pub nodes: u32,
    /// The sizes of broadcasts, in bytes.
    pub sizes: Vec<usize>,
}

/// What to run. [`FmplPlan::paper`] is the paper's evaluation; the fields may be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FmplPlan {
    /// The libraries that exchange messages between two ranks.
    pub between_two: Vec<Library>,
    /// Sizes of these messages, in bytes.
    pub sizes: Vec<usize>,
    /// The libraries that post many receives.
    pub posting: Vec<Library>,
    /// How many receives.
    pub posted: usize,
    /// Collectives.
    pub collectives: Vec<CollectiveCase>,
    /// The machine.
    pub platform: Platform,
    /// Seed of every job: 0 keeps events of one moment in the order they were made, another number
    /// shuffles them.
    pub seed: u64,
    /// Whether less is run, as a smoke test.
    pub quick: bool,
    /// A timeline to record on the way. The jobs run the same.
    pub traced: Option<Traced>,
}

impl FmplPlan {
    /// Receives that are posted.
    pub const POSTED: usize = 600;
    /// Bytes of the longest message: 16 MB.
    pub const LONGEST: usize = 16 << 20;
    /// Bytes of the broadcasts and reductions at all numbers of nodes: 8 KB.
    pub const SHORT: usize = 8 << 10;
    /// Bytes of the broadcast whose bandwidth is printed: 8 MB.
    pub const LONG: usize = 8 << 20;
    /// How many sizes figures 7 and 10 have here: from 8 B, each twice the one before, to the longest.
    pub const SIZES: usize = (Self::LONGEST / 8).ilog2() as usize + 1;
    /// The most nodes.
    pub const NODES: u32 = 16;

    /// Returns the paper's evaluation: figures 7 to 11 over their whole ranges.
    pub fn paper(seed: u64) -> Self {
        Self::with_sizes(seed, sizes(1), false)
    }

    /// Returns the same with fewer sizes: says whether everything works, not how the curves run.
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

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        // One of them for the timeline of table 1.
        self.between_two.len() + self.posting.len() + 1 + self.collectives.len()
    }

    /// Returns from and to which members broadcasts and reductions of so many bytes go: all, or some
    /// if they are long.
    pub(crate) fn roots(nodes: u32, bytes: usize) -> Vec<usize> {
        let step = match bytes {
            0..=65_536 => 1,
            65_537..=1_048_576 => 4,
            _ => 8,
        };
        (0..nodes as usize).step_by(step).collect()
    }
}

/// 8 B, then times 2 so often each time, up to 16 MB; and the sizes that are printed.
fn sizes(doublings: usize) -> Vec<usize> {
    let printed = [8, FmplPlan::SHORT, FmplPlan::LONG, FmplPlan::LONGEST];
    let mut sizes: Vec<usize> = (3..=24).step_by(doublings).map(|bits| 1 << bits).chain(printed).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
