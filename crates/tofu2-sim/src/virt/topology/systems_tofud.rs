//! Shapes of systems with TofuD. Nothing here says anything about Tofu2.

use super::System;

impl System {
    /// Fugaku. It has TofuD: use it with [`crate::virt::Platform::tofud`].
    pub const FUGAKU: System = System {
        name: "Fugaku",
        tofu: 3,
        groups: [24, 23, 24],
        nodes: 158_976,
        source: "recalled; the product agrees with the number of nodes",
    };
}
