//! Six coordinates name a node.

use std::fmt;

/// An axis of the network, in the order in which coordinates are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Axis {
    /// Between groups.
    X,
    /// Between groups.
    Y,
    /// Between groups.
    Z,
    /// Inside a group.
    A,
    /// Inside a group.
    B,
    /// Inside a group.
    C,
}

impl Axis {
    /// All axes, in order.
    pub const ALL: [Axis; 6] = [Axis::X, Axis::Y, Axis::Z, Axis::A, Axis::B, Axis::C];

    /// Place in [`Axis::ALL`] and among coordinates.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether a node has two links along the axis: so for all but A and C.
    pub fn has_two_links(self) -> bool {
        !matches!(self, Axis::A | Axis::C)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Where a node is. One byte each, in the order X, Y, Z, A, B, C, as the hardware's programming interface has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinates {
    /// Group, first axis.
    pub x: u8,
    /// Group, second axis.
    pub y: u8,
    /// Group, third axis.
    pub z: u8,
    /// Node in its group, first axis.
    pub a: u8,
    /// Node in its group, second axis.
    pub b: u8,
    /// Node in its group, third axis.
    pub c: u8,
}

impl Coordinates {
    /// Along one axis.
    #[inline]
    pub fn along(self, axis: Axis) -> u8 {
        <[u8; 6]>::from(self)[axis.index()]
    }

    /// The same place but for one axis.
    #[must_use]
    pub fn with(self, axis: Axis, value: u8) -> Self {
        let mut all = <[u8; 6]>::from(self);
        all[axis.index()] = value;
        all.into()
    }
}

impl From<[u8; 6]> for Coordinates {
    fn from([x, y, z, a, b, c]: [u8; 6]) -> Self {
        Coordinates { x, y, z, a, b, c }
    }
}

impl From<Coordinates> for [u8; 6] {
    fn from(Coordinates { x, y, z, a, b, c }: Coordinates) -> Self {
        [x, y, z, a, b, c]
    }
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {}, {}, {}, {})", self.x, self.y, self.z, self.a, self.b, self.c)
    }
}
