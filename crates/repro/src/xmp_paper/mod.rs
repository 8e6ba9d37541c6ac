//! The evaluation of XcalableMP's `reflect` on the K computer (section 6): what is run, what comes out,
//! how it compares.
//!
//! The paper prints orderings only, and the machine's software is not published. So nothing is
//! calibrated: every constant is external or assumed ([`Platform::k`]), and where each ordering flips is
//! looked for over [ranges](Assumed) of the assumed ones. What the paper's message layer does with
//! derived datatypes is not known either, so both ways are run that it names (section 4.3): the layer
//! [gathers](Version::Datatypes) blocks, or puts [block after block](Version::Scattered).
//!
//! # Placement
//! A rank on each node of a torus of the node set's own shape, so that neighbours are one link away;
//! eight ranks on each node for the flat-parallel runs. All of a rank's commands go through one of its
//! node's four TNIs. The network has latencies and no contention: with routers, times per array differ
//! by less than 3 % (a test).
//!
//! # What is measured
//! Stages and steps are alike, since nothing depends on data: one stage is measured where the paper has
//! three in each of 500 steps. The slowest rank's time counts.

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
    simulate::{Shape, Traced},
    workloads::{
        dynamics::{FIELDS, STAGES},
        reflects::Grid,
    },
};
use std::num::NonZeroUsize;
use tofu2_sim::virt::Platform;

/// What to run. [`XmpPlan::paper`] is the paper's evaluation and our predictions; the fields may be
/// changed.
#[derive(Clone, Debug, PartialEq)]
pub struct XmpPlan {
    /// Numbers of nodes with one rank each, ascending.
    pub nodes: Vec<Nodes>,
    /// Numbers of nodes with eight ranks each.
    pub flat: Vec<Nodes>,
    /// Steps that are measured.
    pub steps: u32,
    /// Stages of a step that are measured, of [`XmpPlan::STAGES`].
    pub stages: u32,
    /// Which constants are varied, over how many of their values.
    pub ranges: Vec<&'static Assumed>,
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

impl XmpPlan {
    /// The paper's cells in i and j.
    pub const HORIZONTAL: usize = 512;
    /// The paper's cells of a column.
    pub const VERTICAL: usize = 128;
    /// The paper's steps.
    pub const STEPS: u32 = 500;
    /// Arrays whose shadows are updated: the prognostic variables of SCALE-LES. The paper says `dens, …`.
    pub const VARIABLES: usize = FIELDS;
    /// Stages of a step: SCALE-LES's Runge–Kutta scheme. The paper says nothing.
    pub const STAGES: u32 = STAGES.len() as u32;
    /// What a node takes for a stage of a cell, in picoseconds: assumed.
    pub const CELL: u64 = 25_000;

    /// Returns the paper's evaluation, for one stage, flat-parallel on up to 64 nodes, and what it did
    /// not measure.
    pub fn paper(seed: u64) -> Self {
        XmpPlan {
            nodes: Nodes::ALL.to_vec(),
            flat: Nodes::ALL[1..4].to_vec(),
            steps: 1,
            stages: 1,
            ranges: RANGES.iter().collect(),
            platform: Platform::k(),
            seed,
            quick: false,
            traced: None,
        }
    }

    /// Returns the same with all of its steps, and flat-parallel on all nodes.
    pub fn full(seed: u64) -> Self {
        XmpPlan { flat: Nodes::ALL[1..].to_vec(), steps: Self::STEPS, stages: Self::STAGES, ..Self::paper(seed) }
    }

    /// Returns the same on fewer nodes, without ranges: says whether everything works, not which
    /// orderings hold.
    pub fn quick(seed: u64) -> Self {
        let nodes = Nodes::ALL[..4].to_vec();
        XmpPlan { nodes, flat: Nodes::ALL[1..2].to_vec(), ranges: Vec::new(), quick: true, ..Self::paper(seed) }
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        let flat = self.flat.len() * Version::FLAT.len();
        let ranges: usize = self.ranges.iter().map(|assumed| assumed.jobs()).sum();
        // Two versions have barriers, of which two sizes are compared.
        let at_default = if self.ranges.is_empty() { 0 } else { ranges::SWEPT.len() + 2 * 2 };
        self.nodes.len() * Version::ALL.len() + flat + runs::WHAT_IF.len() + at_default + ranges
    }

    /// Returns the paper's grid on so many ranks in i and j.
    pub fn grid(ranks: [u32; 2]) -> Grid {
        let nodes = ranks.map(|ranks| NonZeroUsize::new(ranks as usize).unwrap_or(NonZeroUsize::MIN));
        Grid { horizontal: [Self::HORIZONTAL; 2], vertical: Self::VERTICAL, nodes }
    }
}

/// The torus of 16 nodes whose blocks are those of the largest run: where neighbours only meet
/// neighbours, an array takes as long there.
pub(crate) const SMALL: Shape = Shape::new(&[4, 4]);
