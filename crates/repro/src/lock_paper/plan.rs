//! Which jobs stand for the paper's measurements.

use crate::{runner::Traced, shape::Shape};

impl Shape {
    /// The three shapes of 128 nodes that are tried; the first is the default.
    pub const OF_128_NODES: [Shape; 3] = [Shape::new(&[2, 4, 16]), Shape::new(&[4, 4, 8]), Shape::new(&[8, 16])];

    /// A shape of the network's own six axes, X Y Z and the group of 2×3×2, of which 128 nodes are used.
    pub const OF_SIX_AXES: Shape = Shape::new(&[2, 3, 2, 2, 3, 2]);
}

/// How many job shapes the figures that depend on arbitration are shown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shapes {
    /// One.
    #[default]
    One,
    /// All of [`Shape::OF_128_NODES`], and [`Shape::OF_SIX_AXES`].
    All,
}

/// What to run. [`LockPlan::paper`] is the paper's evaluation; the fields may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlan {
    /// Lock and unlock pairs per rank, except at K scale. The paper: 1000.
    pub pairs: u32,
    /// Numbers of ranks of Fig. 8, at 32 ranks per node.
    pub scaling: Vec<u32>,
    /// Ranks per node on all 128 nodes, Fig. 10.
    pub ranks_per_node: Vec<u32>,
    /// Job shapes; the first is used for everything, the others for the fullest run of Fig. 10 only.
    pub shapes: Vec<Shape>,
    /// Ranks of the K-scale run; 0 leaves it out.
    pub k_ranks: u32,
    /// Pairs per rank of the K-scale run.
    pub k_pairs: u32,
    /// Numbers of ranks of the waves that show what other forms of the lock would do; empty leaves them out.
    pub what_if_ranks: Vec<u32>,
    /// Receiving TNIs of each node in them.
    pub what_if_tnis: Vec<u32>,
    /// Numbers of ranks of the stencils of Figs. 4 and 5; empty leaves them out.
    pub stencil_ranks: Vec<u32>,
    /// Seed of every job: 0 keeps events of one moment in the order they were made, another number shuffles them.
    pub seed: u64,
    /// Whether fewer pairs than the paper's are run, as a smoke test.
    pub quick: bool,
    /// A timeline to record on the way. The jobs run the same.
    pub traced: Option<Traced>,
}

impl LockPlan {
    /// Pairs per rank in the paper's runs; totals are scaled to it.
    pub const PAPER_PAIRS: u32 = 1000;

    /// The paper's evaluation.
    pub fn paper(shapes: Shapes, seed: u64) -> Self {
        let mut tried = Shape::OF_128_NODES.to_vec();
        match shapes {
            Shapes::One => tried.truncate(1),
            Shapes::All => tried.push(Shape::OF_SIX_AXES),
        }
        LockPlan {
            pairs: Self::PAPER_PAIRS,
            scaling: (2..=12).map(|power| 1 << power).collect(),
            ranks_per_node: vec![1, 8, 32],
            shapes: tried,
            k_ranks: 663_552,
            k_pairs: 10,
            what_if_ranks: vec![4, 64, 1024, 16_384, 131_072, 663_552],
            what_if_tnis: vec![1, 4],
            stencil_ranks: vec![64, 1024, 8192],
            seed,
            quick: false,
            traced: None,
        }
    }

    /// The same with a twentieth of the pairs: says whether everything works, not how well it agrees.
    pub fn quick(shapes: Shapes, seed: u64) -> Self {
        let what_if_ranks = vec![4, 64, 1024, 16_384];
        LockPlan {
            pairs: 50,
            k_pairs: 1,
            what_if_ranks,
            stencil_ranks: vec![64, 1024],
            quick: true,
            ..Self::paper(shapes, seed)
        }
    }

    /// How many jobs that is.
    pub fn jobs(&self) -> usize {
        super::runs::jobs(self) + super::what_if::jobs(self) + super::stencil::jobs(self)
    }

    /// How many of them, the first ones, can leave a timeline.
    pub fn traceable(&self) -> usize {
        super::runs::jobs(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_128_nodes_and_readable_names() {
        assert!(Shape::OF_128_NODES.iter().all(|shape| shape.nodes() == 128));
        assert_eq!(Shape::OF_128_NODES[0].to_string(), "2×4×16");
    }

    #[test]
    fn the_papers_plan_covers_its_ranges() {
        let plan = LockPlan::paper(Shapes::One, 0);
        assert_eq!((plan.scaling[0], plan.scaling.last().copied()), (4, Some(4096)));
        assert_eq!(plan.shapes.len(), 1);
        assert_eq!(LockPlan::quick(Shapes::All, 0).shapes.len(), 4);
    }
}
