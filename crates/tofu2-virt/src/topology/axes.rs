//! Axes of the network, the coordinates of nodes along them, and the links that leave a node.

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

    /// Returns the axis's index in [`Axis::ALL`] and among coordinates.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns whether a node has two links along the axis: true for all but A and C.
    pub fn has_two_links(self) -> bool {
        !matches!(self, Axis::A | Axis::C)
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The coordinates of a node: one byte each, in the order X, Y, Z, A, B, C, as in the hardware's
/// programming interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Coordinates {
    /// Group along X.
    pub x: u8,
    /// Group along Y.
    pub y: u8,
    /// Group along Z.
    pub z: u8,
    /// The node's position in its group along A.
    pub a: u8,
    /// The node's position in its group along B.
    pub b: u8,
    /// The node's position in its group along C.
    pub c: u8,
}

impl Coordinates {
    /// Returns the coordinate along an axis.
    #[inline]
    pub fn along(self, axis: Axis) -> u8 {
        <[u8; 6]>::from(self)[axis.index()]
    }

    /// Returns these coordinates with a different value along an axis.
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

/// The length of an axis, and whether it closes into a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    pub(super) length: u32,
    pub(super) wraps: bool,
}

impl Extent {
    /// Returns the number of steps from `a` to `b` on the shorter side, and whether they go
    /// upwards, as they do if both sides are equal.
    #[inline]
    pub(super) fn steps(self, a: u32, b: u32) -> (u32, bool) {
        if !self.wraps {
            return (a.abs_diff(b), b >= a);
        }
        let up = if b >= a { b - a } else { b + self.length - a };
        let down = if up == 0 { 0 } else { self.length - up };
        if up <= down { (up, true) } else { (down, false) }
    }

    /// Takes one step from `a`; also returns whether it crosses the wrap-around. A step from the
    /// end of a line also leads to the other end, but no route takes it.
    #[inline]
    pub(super) fn step(self, a: u32, up: bool) -> (u32, bool) {
        let last = self.length - 1;
        match up {
            true if a == last => (0, true),
            true => (a + 1, false),
            false if a == 0 => (last, true),
            false => (a - 1, false),
        }
    }
}

/// Writes the lengths of all axes; those that are not rings have an `m`.
pub(super) fn write_extents(extents: &[Extent], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, extent) in extents.iter().enumerate() {
        write!(f, "{}{extent:?}", if i > 0 { "x" } else { "" })?;
    }
    Ok(())
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.length, if self.wraps { "" } else { "m" })
    }
}

/// A router's port to a neighbour, and thus the link that leaves through it. Axes A and C are two
/// nodes long and have one link each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Port {
    /// Up the X axis.
    XPlus,
    /// Down the X axis.
    XMinus,
    /// Up the Y axis.
    YPlus,
    /// Down the Y axis.
    YMinus,
    /// Up the Z axis.
    ZPlus,
    /// Down the Z axis.
    ZMinus,
    /// To the other node of the A axis.
    A,
    /// Up the B axis.
    BPlus,
    /// Down the B axis.
    BMinus,
    /// To the other node of the C axis.
    C,
}

impl Port {
    /// All ports, in the order of their indices.
    pub const ALL: [Port; 10] = [
        Port::XPlus,
        Port::XMinus,
        Port::YPlus,
        Port::YMinus,
        Port::ZPlus,
        Port::ZMinus,
        Port::A,
        Port::BPlus,
        Port::BMinus,
        Port::C,
    ];

    /// Each port's axis and name, and the neighbour's port that leads back.
    const TABLE: [(Axis, &'static str, Port); 10] = [
        (Axis::X, "X+", Port::XMinus),
        (Axis::X, "X-", Port::XPlus),
        (Axis::Y, "Y+", Port::YMinus),
        (Axis::Y, "Y-", Port::YPlus),
        (Axis::Z, "Z+", Port::ZMinus),
        (Axis::Z, "Z-", Port::ZPlus),
        (Axis::A, "A", Port::A),
        (Axis::B, "B+", Port::BMinus),
        (Axis::B, "B-", Port::BPlus),
        (Axis::C, "C", Port::C),
    ];

    /// Returns the port that leads along an axis, upwards or not.
    #[inline]
    pub fn along(axis: Axis, up: bool) -> Port {
        let upwards = match axis {
            Axis::X => Port::XPlus,
            Axis::Y => Port::YPlus,
            Axis::Z => Port::ZPlus,
            Axis::A => Port::A,
            Axis::B => Port::BPlus,
            Axis::C => Port::C,
        };
        if up { upwards } else { upwards.back() }
    }

    /// Returns the port's index in [`Port::ALL`].
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the axis along which the port leads.
    pub fn axis(self) -> Axis {
        Self::TABLE[self.index()].0
    }

    /// Returns the neighbour's port that leads back.
    #[must_use]
    pub fn back(self) -> Port {
        Self::TABLE[self.index()].2
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::TABLE[self.index()].1)
    }
}

/// One direction of a cable: the one that leaves `node` through `port`. The other direction is the
/// neighbour's [`Port::back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The node's number in its shape.
    pub node: u32,
    /// The port through which the link leaves.
    pub port: Port,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}
