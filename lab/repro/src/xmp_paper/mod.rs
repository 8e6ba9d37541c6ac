//! The evaluation of XcalableMP's `reflect` on the K computer (section 6): its jobs, results and
//! comparison with the paper.
//!
//! The paper prints only orderings, and the machine's software is not published. So nothing is
//! calibrated: every constant is external or assumed ([`Platform::k`]), and the values at which
//! each ordering flips are determined over [ranges](Assumed) of the assumed constants. The paper's
//! message layer handles derived datatypes in an unknown way, so both ways that the paper mentions
//! are run (section 4.3): the layer [gathers](Version::Datatypes) blocks, or puts [block after
//! block](Version::Scattered).
//!
//! # Placement
//! One rank runs on each node of a torus of the node set's own shape, so that neighbours are one
//! link away; in the flat-parallel runs, eight ranks run on each node. All of a rank's commands go
//! through one of its node's four TNIs. The network has latencies and no contention: with routers,
//! times per array differ by less than 3 % (a test).
//!
//! # Measurement
//! All stages and steps are alike, since nothing depends on data, so one stage is measured instead
//! of the paper's three in each of 500 steps. The time reported is that of the slowest rank.

mod compare;
mod orderings;
mod ranges;
mod running;
mod runs;
mod version;

pub use compare::compare;
pub use orderings::{MUCH, Ordering, SAME, Times};
pub use ranges::{Assumed, Flip, Point, RANGES, Swept};
pub use runs::{ReflectRun, XmpRuns, run};
pub use version::{Nodes, Version};

use crate::{
    shape::Shape,
    simulate::Traced,
    workloads::{
        dynamics::{FIELDS, STAGES},
        reflects::Grid,
    },
};
use std::num::NonZeroUsize;
use tofu2_sim::virt::Platform;

/// The jobs to run. [`XmpPlan::paper`] contains the paper's evaluation and our predictions; the
/// fields may be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct XmpPlan {
    /// Numbers of nodes with one rank each, ascending.
    pub nodes: Vec<Nodes>,
    /// Numbers of nodes with eight ranks each.
    pub flat: Vec<Nodes>,
    /// The versions with one rank per node.
    pub versions: Vec<Version>,
    /// Whether to run the unmeasured cases on FX100.
    pub what_if: bool,
    /// The number of measured steps.
    pub steps: u32,
    /// The number of measured stages of a step, out of [`XmpPlan::STAGES`].
    pub stages: u32,
    /// The constants to vary.
    pub ranges: Vec<&'static Assumed>,
    /// The machine.
    pub platform: Platform,
    /// Seed of every job: 0 keeps simultaneous events in the order of their creation, another
    /// number shuffles them.
    pub seed: u64,
    /// Whether this is a smoke test with fewer nodes.
    pub quick: bool,
    /// A timeline to record during the run, which does not affect the jobs.
    pub traced: Option<Traced>,
}

impl XmpPlan {
    /// The paper's number of cells in i and j.
    pub const HORIZONTAL: usize = 512;
    /// The paper's number of cells of a column.
    pub const VERTICAL: usize = 128;
    /// The paper's number of steps.
    pub const STEPS: u32 = 500;
    /// The number of arrays whose shadows are updated: the prognostic variables of SCALE-LES. The
    /// paper writes `dens, …`.
    pub const VARIABLES: usize = FIELDS;
    /// The number of stages of a step: those of SCALE-LES's Runge–Kutta scheme. The paper does not
    /// state it.
    pub const STAGES: u32 = STAGES.len() as u32;
    /// The time of a node for a stage of a cell, in picoseconds: assumed.
    pub const CELL: u64 = 25_000;

    /// Returns the paper's evaluation, for one stage, flat-parallel on up to 64 nodes, and the
    /// cases that the paper did not measure.
    pub fn paper(seed: u64) -> Self {
        XmpPlan {
            nodes: Nodes::ALL.to_vec(),
            flat: Nodes::ALL[1..4].to_vec(),
            versions: Version::ALL.to_vec(),
            what_if: true,
            steps: 1,
            stages: 1,
            ranges: RANGES.iter().collect(),
            platform: Platform::k(),
            seed,
            quick: false,
            traced: None,
        }
    }

    /// Returns the same plan with all of the paper's steps, and flat-parallel on all nodes.
    pub fn full(seed: u64) -> Self {
        XmpPlan { flat: Nodes::ALL[1..].to_vec(), steps: Self::STEPS, stages: Self::STAGES, ..Self::paper(seed) }
    }

    /// Returns the same plan on fewer nodes, without ranges. It shows whether everything works, not
    /// which orderings hold.
    pub fn quick(seed: u64) -> Self {
        let nodes = Nodes::ALL[..4].to_vec();
        XmpPlan { nodes, flat: Nodes::ALL[1..2].to_vec(), ranges: Vec::new(), quick: true, ..Self::paper(seed) }
    }

    /// Returns the same plan without the jobs that no published figure needs.
    pub fn published(self) -> Self {
        XmpPlan { versions: ranges::SWEPT.to_vec(), what_if: false, ranges: Vec::new(), ..self }
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        let flat = self.flat.len() * Version::FLAT.len();
        let ranges: usize = self.ranges.iter().map(|assumed| assumed.jobs()).sum();
        // Two versions have barriers, for which two sizes are compared.
        let at_default = if self.ranges.is_empty() { 0 } else { ranges::SWEPT.len() + 2 * 2 };
        let what_if = if self.what_if { runs::WHAT_IF.len() } else { 0 };
        self.nodes.len() * self.versions.len() + flat + what_if + at_default + ranges + 1
    }

    /// Returns the paper's grid on these numbers of ranks in i and j.
    pub fn grid(ranks: [u32; 2]) -> Grid {
        let nodes = ranks.map(|ranks| NonZeroUsize::new(ranks as usize).unwrap_or(NonZeroUsize::MIN));
        Grid { horizontal: [Self::HORIZONTAL; 2], vertical: Self::VERTICAL, nodes }
    }
}

/// The torus of 16 nodes with blocks of the same size as in the largest run: if neighbours
/// synchronize only with neighbours, an array takes the same time there.
pub(crate) const SMALL: Shape = Shape::new(&[4, 4]);
