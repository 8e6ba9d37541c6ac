//! The evaluation of persistent neighbourhood collectives in session mode: its jobs, results and
//! comparison with the paper. Some jobs reproduce the paper's measurements, others are predictions
//! of our own.
//!
//! # Placement
//! Of its mapping, the paper states only that communicating ranks are on adjacent nodes. Here each
//! rank has its own node in a torus of the grid's own shape, so that every neighbour along an axis
//! is one link away, including at the ends, and messages to different neighbours share no link. On
//! Tofu a line of 36 nodes can be such a ring too, because the six axes contain one
//! (`Folding::Snake`). Neighbours at a corner are two or three links away.
//!
//! Patterns of pairs have two ranks on each of the 36 nodes, as the paper recommends for a machine
//! with two memory groups (CMG) per node: each rank has one neighbour on its own node, along the
//! last axis. A node has one memory here, without groups.

mod forms;
mod machine;
mod runs;

pub use forms::{FormTrace, forms, label};
pub use machine::Machine;
pub use runs::compare;
pub use runs::{ExchangeRun, PrdmaRuns, run};

use crate::{
    shape::Shape,
    simulate::Traced,
    workloads::{Exchange, Kept},
};
use prdma_offload::{EndOfData, Form};
use std::fmt;
use tofu2_sim::virt::Platform;

/// The neighbour relation: the stencil, on 36 nodes, and the ranks of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One dimension, 3 points: two neighbours. The pattern measured in the paper.
    Line,
    /// Two dimensions, 5 points: four neighbours. The paper describes it (Fig. 8 (C)) and did not
    /// measure it.
    Plane,
    /// Three dimensions, 7 points: six neighbours.
    Space,
    /// Three dimensions, 27 points: 26 neighbours.
    Corners,
    /// One dimension, 3 points, two ranks a node.
    LineOfPairs,
    /// Two dimensions, 5 points, two ranks a node.
    PlaneOfPairs,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 6] =
        [Pattern::Line, Pattern::Plane, Pattern::Space, Pattern::Corners, Pattern::LineOfPairs, Pattern::PlaneOfPairs];

    /// Those that run at a single size.
    pub const AT_ONE_SIZE: [Pattern; 4] =
        [Pattern::Space, Pattern::Corners, Pattern::LineOfPairs, Pattern::PlaneOfPairs];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Line => "1-D 3-point",
            Pattern::Plane => "2-D 5-point",
            Pattern::Space => "3-D 7-point",
            Pattern::Corners => "3-D 27-point",
            Pattern::LineOfPairs => "1-D 3-point, two a node",
            Pattern::PlaneOfPairs => "2-D 5-point, two a node",
        }
    }

    /// Returns the torus of nodes.
    pub const fn shape(self) -> Shape {
        match self {
            Pattern::Line | Pattern::LineOfPairs => Shape::new(&[36]),
            Pattern::Plane | Pattern::PlaneOfPairs => Shape::new(&[6, 6]),
            Pattern::Space | Pattern::Corners => Shape::new(&[3, 3, 4]),
        }
    }

    /// Returns the number of ranks on a node.
    pub const fn ranks_per_node(self) -> u32 {
        match self {
            Pattern::LineOfPairs | Pattern::PlaneOfPairs => 2,
            _ => 1,
        }
    }

    /// Returns the grid of ranks: the torus of nodes, with the ranks of a node along the last axis,
    /// in which their numbers are consecutive.
    pub fn grid(self) -> Vec<usize> {
        let mut sides: Vec<usize> = self.shape().sides().iter().map(|&side| side as usize).collect();
        if let Some(last) = sides.last_mut() {
            *last *= self.ranks_per_node() as usize;
        }
        sides
    }

    /// Returns the number of neighbours of each rank.
    pub const fn neighbours(self) -> u32 {
        match self {
            Pattern::Line | Pattern::LineOfPairs => 2,
            Pattern::Plane | Pattern::PlaneOfPairs => 4,
            Pattern::Space => 6,
            Pattern::Corners => 26,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The form in which the exchange is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct How {
    /// The executing component and its number of queues.
    pub form: Form,
    /// Whether the request is persistent.
    pub kept: Kept,
}

impl How {
    /// Returns a persistent request of that form.
    pub const fn persistent(form: Form) -> How {
        How { form, kept: Kept::Persistent }
    }

    /// Returns that form with a new request for each iteration.
    pub const fn anew(form: Form) -> How {
        How { form, kept: Kept::Anew }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Fast => "FAST".to_owned(),
            Form::Mrc => "MRC".to_owned(),
            Form::Cpu => "CPU".to_owned(),
            form => form.to_string(),
        };
        match self.kept {
            Kept::Persistent => f.pad(&form),
            Kept::Anew => f.pad(&format!("{form}, made anew")),
        }
    }
}

/// One job: a form on a pattern, for some sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeCase {
    /// The pattern of neighbours.
    pub pattern: Pattern,
    /// The form of the exchange.
    pub how: How,
    /// Bytes to and from each neighbour.
    pub sizes: Vec<usize>,
}

/// The jobs to run. [`PrdmaPlan::paper`] contains the paper's evaluation and our predictions; the
/// fields may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrdmaPlan {
    /// The jobs, in order.
    pub jobs: Vec<ExchangeCase>,
    /// Iterations of each size that are not measured.
    pub warm_up: u32,
    /// Measured iterations of each size: all take the same time, except for the seed's shuffling.
    pub iterations: u32,
    /// The machine.
    pub platform: Platform,
    /// Seed of every job: 0 keeps simultaneous events in the order of their creation, another
    /// number shuffles them.
    pub seed: u64,
    /// Whether this is a smoke test with fewer sizes and iterations.
    pub quick: bool,
    /// A timeline to record during the run, which does not affect the jobs.
    pub traced: Option<Traced>,
}

impl PrdmaPlan {
    /// The largest size: 64 KiB.
    pub const MOST: usize = 65_536;
    /// The distance between two sizes of the paper.
    pub const STEP: usize = 1024;
    /// The size for the predictions in three dimensions and with two ranks a node.
    pub const IN_SPACE: usize = 8192;
    /// The number of measured iterations. With one queue, or with as many queues as neighbours, all
    /// iterations take the same time.
    pub const ITERATIONS: u32 = 20;

    /// Returns the paper's evaluation, and the cases that the paper did not measure.
    pub fn paper(seed: u64) -> Self {
        PrdmaPlan::stepping(Self::STEP, Self::ITERATIONS, seed)
    }

    /// Returns the same plan with fewer sizes and iterations. It shows whether everything works,
    /// not how well it agrees with the paper.
    pub fn quick(seed: u64) -> Self {
        PrdmaPlan { quick: true, ..PrdmaPlan::stepping(8 * Self::STEP, 5, seed) }
    }

    /// Returns the same plan without the jobs that no published figure needs.
    pub fn published(mut self) -> Self {
        let measured = [Form::Fast, Form::Mrc].map(How::persistent);
        self.jobs.retain(|job| job.pattern == Pattern::Line && measured.contains(&job.how));
        self
    }

    fn stepping(step: usize, iterations: u32, seed: u64) -> Self {
        let sizes: Vec<usize> = (0..=Self::MOST).step_by(step).collect();
        let job = |pattern, how, sizes: &[usize]| ExchangeCase { pattern, how, sizes: sizes.to_vec() };
        let (fast, mrc) = (How::persistent(Form::Fast), How::persistent(Form::Mrc));
        let (two, cpu) = (How::persistent(Form::Queues(2)), How::persistent(Form::Cpu));
        let mut jobs: Vec<ExchangeCase> = [fast, mrc, cpu].map(|how| job(Pattern::Line, how, &sizes)).into();
        let few: Vec<usize> = (0..=Self::MOST).step_by(Self::MOST / 4).collect();
        jobs.push(job(Pattern::Line, How::anew(Form::Fast), &few));
        jobs.extend([fast, two, mrc].map(|how| job(Pattern::Plane, how, &sizes)));
        for pattern in Pattern::AT_ONE_SIZE {
            let four = How::persistent(Form::Queues(4));
            jobs.extend([fast, four, two, mrc, cpu].map(|how| job(pattern, how, &[Self::IN_SPACE])));
        }
        let platform = Platform::fx100();
        PrdmaPlan { jobs, warm_up: 10, iterations, platform, seed, quick: false, traced: None }
    }

    /// Returns the number of jobs: the plan's, and then those about the machine.
    pub fn count(&self) -> usize {
        self.jobs.len() + machine::JOBS
    }

    /// Returns the exchange that a job's ranks run.
    pub(super) fn exchange(&self, job: &ExchangeCase) -> Exchange {
        Exchange {
            grid: job.pattern.grid(),
            periodic: true,
            corners: job.pattern == Pattern::Corners,
            form: job.how.form,
            end: EndOfData::WithData,
            kept: job.how.kept,
            sizes: job.sizes.clone(),
            warm_up: self.warm_up,
            iterations: self.iterations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prdma_offload::Cartesian;
    use tofu2_sim::virt::{Fold, Folding, TofuShape, Torus};

    #[test]
    fn the_plan_has_the_papers_sizes_on_36_nodes() {
        let plan = PrdmaPlan::paper(0);
        assert_eq!(plan.jobs[0].sizes.len(), 65);
        assert!(Pattern::ALL.iter().all(|pattern| pattern.shape().nodes() == 36));
    }

    /// Along the last axis a rank has one neighbour on its node and one at a distance of one hop; along
    /// the others, both are one hop away.
    #[test]
    fn two_ranks_of_a_node_are_neighbours() {
        for pattern in [Pattern::LineOfPairs, Pattern::PlaneOfPairs] {
            let (grid, torus) = (pattern.grid(), Torus::new(pattern.shape().sides()).unwrap());
            let grid = Cartesian::new(&grid, &vec![true; grid.len()]).unwrap();
            for me in 0..72 {
                let topology = grid.topology(me);
                let to = topology.destinations().iter().flatten().map(|edge| edge.member);
                let mut hops: Vec<u32> = to.map(|other| torus.hops(me as u32 / 2, other as u32 / 2)).collect();
                hops.sort_unstable();
                assert_eq!(hops, [&[0][..], &vec![1; hops.len() - 1]].concat(), "{pattern}, rank {me}");
                assert_eq!(hops.len(), pattern.neighbours() as usize);
            }
        }
    }

    #[test]
    fn neighbours_of_the_line_are_next_to_each_other_on_tofu_too() {
        let torus = Torus::new(Pattern::Line.shape().sides()).unwrap();
        let fold = Fold::new(TofuShape::of_groups([3, 1, 1]).unwrap(), Folding::Snake);
        let at = |place| fold.coordinates(place).and_then(|at| fold.shape().node(at)).unwrap();
        for place in 0..36 {
            let next = (place + 1) % 36;
            assert_eq!(torus.hops(place, next), 1);
            assert_eq!(fold.shape().hops(at(place), at(next), None).unwrap(), 1, "{place}");
        }
    }
}
