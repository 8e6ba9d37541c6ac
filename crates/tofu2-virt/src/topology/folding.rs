//! The foldings of a line or a three-dimensional torus of logical places into six dimensions.
//!
//! * *Row major*: the order of node numbers. Logical neighbours are far apart where an axis ends.
//! * *Snake*: one line through all nodes, X fastest, then Y, Z, B, C and A, each axis up and down
//!   in turn, so that neighbours are one hop apart in every shape. Its ends meet (the line is a
//!   ring) if the last axis longer than one has even length and is a ring or of length two. This
//!   holds for all shapes of full groups, since A has length two. (The system's own tool walks X,
//!   B, C, A in this order; where it puts Y and Z is not known.)
//! * *Virtual torus*: three logical axes that pair X with A, Y with B, and Z with C, each wound so
//!   that neighbours are one hop apart, including the ends. An axis whose partner has length two
//!   goes up on one side and comes back on the other. B has length three: one of its columns is the
//!   way back, and the other two are taken in turn on the way out; this closes regardless of Y,
//!   since B is a ring. Only two cases do not close: an odd number of nodes with neither axis a
//!   ring, and a mesh axis longer than two without a partner.
//!
//! [`Fold::seams`] returns for each shape whether the ends meet.

use super::{Axis, Choice, Coordinates, Path, PathId, Route, TofuShape, TopologyError, axes::Extent};
use rdma_fabric::{FabricError, Rank};

/// The order in which the ranks' places are numbered along a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Folding {
    /// In the order of node numbers.
    #[default]
    RowMajor,
    /// Along one line on which neighbours are one hop apart.
    Snake,
    /// In a three-dimensional torus, with the last axis fastest.
    VirtualTorus,
}

/// The axes of the snake, fastest first.
const SNAKE: [Axis; 6] = [Axis::X, Axis::Y, Axis::Z, Axis::B, Axis::C, Axis::A];

const PAIRS: [(Axis, Axis); 3] = [(Axis::X, Axis::A), (Axis::Y, Axis::B), (Axis::Z, Axis::C)];

/// A shape with its places numbered by a [`Folding`].
#[derive(Clone, Debug)]
pub struct Fold {
    shape: TofuShape,
    folding: Folding,
    /// For a virtual torus, the coordinates along each logical axis's pair.
    windings: [Vec<(u8, u8)>; 3],
}

impl Fold {
    /// Numbers the places of a shape.
    pub fn new(shape: TofuShape, folding: Folding) -> Self {
        let windings = match folding {
            Folding::VirtualTorus => PAIRS.map(|(outer, inner)| winding(shape.extent(outer), shape.extent(inner))),
            _ => Default::default(),
        };
        Fold { shape, folding, windings }
    }

    /// Returns the shape.
    pub fn shape(&self) -> TofuShape {
        self.shape
    }

    /// Returns the logical lengths: all nodes in one line, except for a virtual torus.
    pub fn lengths(&self) -> [u32; 3] {
        match self.folding {
            Folding::VirtualTorus => PAIRS.map(|(outer, inner)| self.shape.length(outer) * self.shape.length(inner)),
            _ => [1, 1, self.shape.nodes()],
        }
    }

    /// Returns the position of a place. Places are numbered along the logical axes, the last
    /// fastest.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchNode`].
    pub fn coordinates(&self, place: u32) -> Result<Coordinates, TopologyError> {
        let nodes = self.shape.nodes();
        if place >= nodes {
            return Err(TopologyError::NoSuchNode { node: place, nodes });
        }
        Ok(match self.folding {
            Folding::RowMajor => return self.shape.coordinates(place),
            Folding::Snake => self.snake(place),
            Folding::VirtualTorus => {
                let [_, y, z] = self.lengths();
                let at = |axis: usize, place: u32| self.windings[axis][place as usize];
                let ((x, a), (y, b), (z, c)) = (at(0, place / z / y), at(1, place / z % y), at(2, place % z));
                Coordinates { x, y, z, a, b, c }
            }
        })
    }

    fn snake(&self, place: u32) -> Coordinates {
        let (mut sweeps, mut at) = (place, Coordinates::default());
        for axis in SNAKE {
            let length = self.shape.length(axis);
            let step = sweeps % length;
            sweeps /= length;
            at = at.with(axis, if sweeps.is_multiple_of(2) { step } else { length - 1 - step } as u8);
        }
        at
    }

    /// Returns the hops from the last place of each logical axis to its first: 1 if the axis is a
    /// ring, 0 if it has one place.
    pub fn seams(&self) -> [u32; 3] {
        let lengths = self.lengths();
        let strides = [lengths[1] * lengths[2], lengths[2], 1];
        std::array::from_fn(|axis| {
            let ends = [0, (lengths[axis] - 1) * strides[axis]].map(|place| self.coordinates(place));
            match ends {
                [Ok(first), Ok(last)] => self.shape.distance(first, last),
                _ => 0,
            }
        })
    }
}

/// Winds one logical axis through a pair of axes. Every step is one hop, and, if possible, so is
/// the step from the end to the beginning.
fn winding(outer: Extent, inner: Extent) -> Vec<(u8, u8)> {
    let adjacent =
        |(a, b): (u8, u8), (c, d): (u8, u8)| outer.steps(a.into(), c.into()).0 + inner.steps(b.into(), d.into()).0 <= 1;
    let is_ring = |places: &Vec<(u8, u8)>| {
        let next = places.iter().cycle().skip(1);
        places.iter().zip(next).all(|(&place, &next)| adjacent(place, next))
    };
    let up_and_down = sweep(outer.length, inner.length);
    let across = comb(inner.length, outer.length).into_iter().map(|(inner, outer)| (outer, inner)).collect();
    let along = comb(outer.length, inner.length);
    [up_and_down.clone(), across, along].into_iter().find(is_ring).unwrap_or(up_and_down)
}

/// Traverses a rectangle: out over all columns except the first, and back along the first. The
/// first coordinate counts columns.
fn comb(columns: u32, rows: u32) -> Vec<(u8, u8)> {
    let out = sweep(columns - 1, rows).into_iter().map(|(column, row)| (column + 1, row));
    let back = (1..rows).rev().map(|row| (0, row as u8));
    std::iter::once((0, 0)).chain(out).chain(back).collect()
}

/// Traverses a rectangle, the first coordinate fastest, alternately up and down.
fn sweep(length: u32, rows: u32) -> Vec<(u8, u8)> {
    (0..rows)
        .flat_map(|row| (0..length).map(move |step| (if row % 2 == 0 { step } else { length - 1 - step }, row)))
        .map(|(a, b)| (a as u8, b as u8))
        .collect()
}

/// The ranks of a job on a [`super::TofuShape`]: each place of the folding in turn takes a block of
/// [`super::super::Job::ranks_per_node`] ranks.
#[derive(Clone, Debug)]
pub struct Placement {
    fold: Fold,
    choice: Choice,
    ranks: u32,
    ranks_per_node: u32,
}

impl Placement {
    pub(crate) fn new(fold: Fold, choice: Choice, ranks: u32, ranks_per_node: u32) -> Self {
        Placement { fold, choice, ranks, ranks_per_node }
    }

    /// Returns the shape with its places numbered.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Returns the position of a rank's node.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn coordinates(&self, rank: Rank) -> Result<Coordinates, FabricError> {
        if rank.number() >= self.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.ranks as usize });
        }
        Ok(self.fold.coordinates(rank.number() / self.ranks_per_node)?)
    }

    /// Returns the number of a rank's node in its shape. ([`rdma_fabric::Fabric::node`] returns the
    /// place in the folding.)
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn node(&self, rank: Rank) -> Result<u32, FabricError> {
        Ok(self.fold.shape().node(self.coordinates(rank)?)?)
    }

    /// Returns the path that the job's messages from one rank to another take.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn path(&self, from: Rank, to: Rank) -> Result<Path, FabricError> {
        self.coordinates(from)?;
        let Coordinates { a, b, c, .. } = self.coordinates(to)?;
        let default = PathId::try_from(Path { a, b, c })?;
        Ok(self.choice.path(from.number(), to.number(), default).into())
    }

    /// Returns the number of links between two ranks' nodes, along `path` or the job's default
    /// path.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`]; [`FabricError::Setting`] for a path that the shape does not
    /// have.
    pub fn hops(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<u32, FabricError> {
        let (at, goal, path) = self.ends(from, to, path)?;
        Ok(self.fold.shape().hops(at, goal, Some(path))?)
    }

    /// Returns the links between two ranks' nodes, along `path` or the job's default path.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`]; [`FabricError::Setting`] for a path that the shape does not
    /// have.
    pub fn route(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<Route, FabricError> {
        let (at, goal, path) = self.ends(from, to, path)?;
        Ok(self.fold.shape().route(at, goal, Some(path))?)
    }

    fn ends(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<(u32, u32, Path), FabricError> {
        let path = path.map_or_else(|| self.path(from, to), Ok)?;
        Ok((self.node(from)?, self.node(to)?, path))
    }
}
