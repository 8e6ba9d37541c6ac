//! Paths: the node of each group that a message passes through between groups.

use super::{Axis, TofuShape, TopologyError};
use std::fmt;

/// Path coordinates: the in-group coordinates with which a message travels between groups. The
/// message goes to these coordinates inside its own group, and from them to its target inside the
/// target's group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Path coordinate PA.
    pub a: u8,
    /// Path coordinate PB.
    pub b: u8,
    /// Path coordinate PC.
    pub c: u8,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.a, self.b, self.c)
    }
}

impl From<PathId> for Path {
    #[inline]
    fn from(PathId(bits): PathId) -> Self {
        Path { a: bits & 1, b: bits >> 1 & 3, c: bits >> 3 }
    }
}

/// A path as four bits of a command: A in the lowest bit, B in the next two, C in the highest. (The
/// widths were observed; their order is our interpretation.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u8);

impl PathId {
    /// Creates a path id from its bits.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchPathId`] above 15.
    pub fn new(bits: u8) -> Result<Self, TopologyError> {
        if bits < 16 { Ok(PathId(bits)) } else { Err(TopologyError::NoSuchPathId { bits }) }
    }

    /// Returns the bits, 0 to 15.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Packs the low bits of in-group coordinates.
    #[inline]
    pub(super) fn pack(a: u16, b: u16, c: u16) -> Self {
        PathId((a & 1 | (b & 3) << 1 | (c & 1) << 3) as u8)
    }

    /// Returns the path's coordinate along an in-group axis; 0 for other axes.
    #[inline]
    pub(super) fn along(self, axis: Axis) -> u16 {
        u16::from(match axis {
            Axis::A => self.0 & 1,
            Axis::B => self.0 >> 1 & 3,
            Axis::C => self.0 >> 3,
            _ => 0,
        })
    }
}

impl TryFrom<Path> for PathId {
    type Error = TopologyError;

    fn try_from(path: Path) -> Result<Self, TopologyError> {
        if path.a > 1 || path.b > 3 || path.c > 1 {
            return Err(TopologyError::PathTooLarge { path });
        }
        Ok(PathId::pack(path.a.into(), path.b.into(), path.c.into()))
    }
}

/// The paths that a job's messages take. Replies always take the default path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// The target's own in-group coordinates, as in a fresh address from the system library. This
    /// is the shortest path.
    #[default]
    Default,
    /// The same path for every message.
    Fixed(Path),
    /// One path for each pair of ranks, spread over all paths of the shape by a fixed hash of both
    /// numbers. Messages of a pair keep their order.
    Spread,
}

/// [`Paths`] for one shape, checked.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    Default,
    Fixed(PathId),
    /// All paths of the shape.
    Spread(Vec<PathId>),
}

impl Choice {
    pub(crate) fn new(shape: &TofuShape, paths: Paths) -> Result<Self, TopologyError> {
        Ok(match paths {
            Paths::Default => Choice::Default,
            Paths::Fixed(path) => {
                shape.check_path(path)?;
                Choice::Fixed(path.try_into()?)
            }
            Paths::Spread => Choice::Spread(shape.paths().map(Path::try_into).collect::<Result<_, _>>()?),
        })
    }

    /// Returns the path from one rank to another; `default` is the default path to the target's
    /// node.
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
