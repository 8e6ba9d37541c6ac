//! Where the ranks of a job are.

use super::{Choice, Coordinates, Fold, Path, PathId, Route};
use rdma_fabric::{FabricError, Rank};

/// The ranks of a job on a [`super::TofuShape`]: blocks of [`super::super::Job::ranks_per_node`] on one place of the folding after the other.
#[derive(Clone, Debug)]
pub struct Placement {
    fold: Fold,
    choice: Choice,
    ranks: u32,
    ranks_per_node: u32,
}

impl Placement {
    pub(in super::super) fn new(fold: Fold, choice: Choice, ranks: u32, ranks_per_node: u32) -> Self {
        Placement { fold, choice, ranks, ranks_per_node }
    }

    /// The shape with its places numbered.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Where a rank's node is.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn coordinates(&self, rank: Rank) -> Result<Coordinates, FabricError> {
        if rank.number() >= self.ranks {
            return Err(FabricError::NoSuchRank { rank, ranks: self.ranks as usize });
        }
        Ok(self.fold.coordinates(rank.number() / self.ranks_per_node)?)
    }

    /// The number of a rank's node in its shape. (What [`rdma_fabric::Fabric::node`] tells is the place in the folding.)
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn node(&self, rank: Rank) -> Result<u32, FabricError> {
        Ok(self.fold.shape().node(self.coordinates(rank)?)?)
    }

    /// The path that the job's messages from one rank to another take.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn path(&self, from: Rank, to: Rank) -> Result<Path, FabricError> {
        self.coordinates(from)?;
        let Coordinates { a, b, c, .. } = self.coordinates(to)?;
        let default = PathId::try_from(Path { a, b, c })?;
        Ok(self.choice.path(from.number(), to.number(), default).into())
    }

    /// Links between two ranks' nodes, by a path or by the job's.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`]; [`FabricError::Setting`] for a path that the shape hasn't.
    pub fn hops(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<u32, FabricError> {
        let (at, goal, path) = self.ends(from, to, path)?;
        Ok(self.fold.shape().hops(at, goal, Some(path))?)
    }

    /// Each link between two ranks' nodes, by a path or by the job's.
    ///
    /// # Errors
    /// As [`Placement::hops`].
    pub fn route(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<Route, FabricError> {
        let (at, goal, path) = self.ends(from, to, path)?;
        Ok(self.fold.shape().route(at, goal, Some(path))?)
    }

    fn ends(&self, from: Rank, to: Rank, path: Option<Path>) -> Result<(u32, u32, Path), FabricError> {
        let path = path.map_or_else(|| self.path(from, to), Ok)?;
        Ok((self.node(from)?, self.node(to)?, path))
    }
}
