//! The ten links of a node.

use super::Axis;
use std::fmt;

/// A router's port to a neighbour, and so the link that leaves by it. Axes A and C are two nodes long and have one link each.
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

    /// The port that leads along an axis, upwards or not.
    #[inline]
    pub fn along(axis: Axis, up: bool) -> Port {
        match (axis, up) {
            (Axis::X, true) => Port::XPlus,
            (Axis::X, false) => Port::XMinus,
            (Axis::Y, true) => Port::YPlus,
            (Axis::Y, false) => Port::YMinus,
            (Axis::Z, true) => Port::ZPlus,
            (Axis::Z, false) => Port::ZMinus,
            (Axis::A, _) => Port::A,
            (Axis::B, true) => Port::BPlus,
            (Axis::B, false) => Port::BMinus,
            (Axis::C, _) => Port::C,
        }
    }

    /// Place in [`Port::ALL`].
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The axis along which it leads.
    pub fn axis(self) -> Axis {
        match self {
            Port::XPlus | Port::XMinus => Axis::X,
            Port::YPlus | Port::YMinus => Axis::Y,
            Port::ZPlus | Port::ZMinus => Axis::Z,
            Port::A => Axis::A,
            Port::BPlus | Port::BMinus => Axis::B,
            Port::C => Axis::C,
        }
    }

    /// The neighbour's port that leads back.
    #[must_use]
    pub fn back(self) -> Port {
        match self {
            Port::XPlus => Port::XMinus,
            Port::XMinus => Port::XPlus,
            Port::YPlus => Port::YMinus,
            Port::YMinus => Port::YPlus,
            Port::ZPlus => Port::ZMinus,
            Port::ZMinus => Port::ZPlus,
            Port::BPlus => Port::BMinus,
            Port::BMinus => Port::BPlus,
            Port::A | Port::C => self,
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Port::XPlus => "X+",
            Port::XMinus => "X-",
            Port::YPlus => "Y+",
            Port::YMinus => "Y-",
            Port::ZPlus => "Z+",
            Port::ZMinus => "Z-",
            Port::A => "A",
            Port::BPlus => "B+",
            Port::BMinus => "B-",
            Port::C => "C",
        })
    }
}

/// One direction of one cable: what leaves `node` by `port`. The other direction is the neighbour's [`Port::back`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The node's number in its shape.
    pub node: u32,
    /// The way out.
    pub port: Port,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}
