//! Shapes of a job's network.

use std::fmt;

/// The shape of a job's network. If a paper does not state it, several are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub(crate) network: ShapeNetwork,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ShapeNetwork {
    /// The sides of a plain torus.
    Torus(&'static [u32]),
    /// The numbers of Tofu's groups of 12 nodes along X, Y and Z.
    Tofu([u32; 3]),
}

impl Shape {
    /// The shapes of the paper's machine that are tried, of which 128 nodes are used; the first one
    /// is the default, the last one a line of groups.
    pub const OF_FX100: [Shape; 3] = [Shape::tofu([2, 3, 2]), Shape::tofu([1, 3, 4]), Shape::tofu([1, 1, 11])];

    /// Plain tori of 128 nodes: what if the machine had three axes?
    pub const OF_128_NODES: [Shape; 3] = [Shape::new(&[2, 4, 16]), Shape::new(&[4, 4, 8]), Shape::new(&[8, 16])];

    /// Returns the torus of these sides.
    pub const fn new(sides: &'static [u32]) -> Self {
        Shape { network: ShapeNetwork::Torus(sides) }
    }

    /// Returns Tofu's own network, of six axes, with these numbers of groups along X, Y and Z.
    pub const fn tofu(groups: [u32; 3]) -> Self {
        Shape { network: ShapeNetwork::Tofu(groups) }
    }

    /// Returns whether it is Tofu's own network.
    pub const fn is_tofu(self) -> bool {
        matches!(self.network, ShapeNetwork::Tofu(_))
    }

    /// Number of nodes along each axis, or of groups.
    pub const fn sides(&self) -> &[u32] {
        match &self.network {
            ShapeNetwork::Torus(sides) => sides,
            ShapeNetwork::Tofu(groups) => groups,
        }
    }

    /// Number of nodes.
    pub fn nodes(self) -> u32 {
        self.sides().iter().product::<u32>() * if self.is_tofu() { 12 } else { 1 }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, side) in self.sides().iter().enumerate() {
            write!(f, "{}{side}", if i == 0 { "" } else { "×" })?;
        }
        if self.is_tofu() { f.write_str(" groups") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_at_least_128_nodes_and_readable_names() {
        assert!(Shape::OF_128_NODES.iter().all(|shape| shape.nodes() == 128));
        assert!(Shape::OF_FX100.iter().all(|shape| (128..=144).contains(&shape.nodes())));
        assert_eq!(Shape::OF_128_NODES[0].to_string(), "2×4×16");
        assert_eq!(Shape::OF_FX100[0].to_string(), "2×3×2 groups");
    }
}
