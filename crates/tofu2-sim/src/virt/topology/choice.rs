//! Which path a message of one rank to another takes.

use super::{Path, PathId, Paths, TofuShape, TopologyError};

/// [`Paths`] for one shape, checked.
#[derive(Clone, Debug)]
pub(in super::super) enum Choice {
    Default,
    Fixed(PathId),
    /// All of the shape's.
    Spread(Vec<PathId>),
}

impl Choice {
    pub(in super::super) fn new(shape: &TofuShape, paths: Paths) -> Result<Self, TopologyError> {
        Ok(match paths {
            Paths::Default => Choice::Default,
            Paths::Fixed(path) => {
                shape.check_path(path)?;
                Choice::Fixed(path.try_into()?)
            }
            Paths::Spread => Choice::Spread(shape.paths().map(Path::try_into).collect::<Result<_, _>>()?),
        })
    }

    /// From rank to rank; `default` is the one that the target's node asks for.
    #[inline]
    pub(super) fn path(&self, from: u32, to: u32, default: PathId) -> PathId {
        match self {
            Choice::Default => default,
            Choice::Fixed(path) => *path,
            Choice::Spread(all) => {
                let mixed = from.wrapping_mul(0x9e37_79b1) ^ to.wrapping_mul(0x85eb_ca77);
                all[(mixed ^ mixed >> 15) as usize % all.len()]
            }
        }
    }
}
