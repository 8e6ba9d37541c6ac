//! Shapes of real systems.
//!
//! The numbers of nodes are published; the arrangement of groups mostly is not.

use super::TofuShape;

/// A system and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct System {
    /// Its name.
    pub name: &'static str,
    /// The generation of its interconnect: 1, 2, or 3 for TofuD.
    pub tofu: u8,
    /// The numbers of groups along X, Y and Z, each of 2 x 3 x 2 nodes.
    pub groups: [u32; 3],
    /// The total number of nodes.
    pub nodes: u32,
    /// The source of these numbers.
    pub source: &'static str,
}

impl System {
    /// Compute nodes of the K computer.
    pub const K: System = System {
        name: "K computer",
        tofu: 1,
        groups: [24, 18, 16],
        nodes: 82_944,
        source: "nodes: the FX100 lock paper; 24 x 18 x 16 groups: recalled, the product agrees",
    };

    /// The part of an FX10 on which the lock paper's measurements were made.
    pub const FX10_24: System = System {
        name: "FX10, 24 nodes",
        tofu: 1,
        groups: [1, 1, 2],
        nodes: 24,
        source: "nodes: the FX100 lock paper, Fig. 9; two groups side by side along Z: assumed",
    };

    /// The FX100 test system of the session-mode paper.
    pub const FX100_36: System = System {
        name: "FX100, 36 nodes",
        tofu: 2,
        groups: [1, 1, 3],
        nodes: 36,
        source: "nodes: the session-mode paper; three groups in a ring along Z: assumed",
    };

    /// HOKUSAI GreatWave, the FX100 of the lock paper.
    pub const HOKUSAI_GREATWAVE: System = System {
        name: "HOKUSAI GreatWave",
        tofu: 2,
        groups: [5, 3, 6],
        nodes: 1_080,
        source: "nodes: recalled; 90 groups as 5 x 3 x 6: assumed (5 cabinets of 18 groups)",
    };

    /// All systems with Tofu1 or Tofu2.
    pub const ALL: [System; 4] = [System::K, System::FX10_24, System::FX100_36, System::HOKUSAI_GREATWAVE];

    /// Returns the shape, with X, Z and B as rings if they are longer than two.
    pub fn shape(&self) -> TofuShape {
        TofuShape::of_groups(self.groups).unwrap_or_else(|error| unreachable!("{}: {error}", self.name))
    }
}

/// TofuD is separate: these numbers do not apply to Tofu2.
impl System {
    /// Fugaku. It has TofuD: use it with [`crate::Platform::tofud`].
    pub const FUGAKU: System = System {
        name: "Fugaku",
        tofu: 3,
        groups: [24, 23, 24],
        nodes: 158_976,
        source: "recalled; the product agrees with the number of nodes",
    };
}
