//! Plain meshes and tori of up to six dimensions with dimension-order routes.

#![deny(clippy::arithmetic_side_effects)]

use super::axes::{Extent, write_extents};
use rdma_fabric::FabricError;
use std::fmt;

/// The maximum number of dimensions of a [`Torus`].
pub const MAX_AXES: usize = 6;
/// The maximum length of an axis of a [`Torus`].
const MAX_LENGTH: u32 = 65_535;
/// The greatest number of nodes that [`Torus::auto`] makes: those above it have prime factors above
/// [`MAX_LENGTH`].
const MOST_AUTO: u32 = 4_294_967_292;

/// A torus or mesh. Node numbers count the last axis fastest.
///
/// Routes correct one axis after another, in the order in which the axes are given, each in the
/// shorter direction, or upwards if both are equally long. [`super::TofuShape`] has Tofu's own
/// routes.
#[derive(Clone, PartialEq, Eq)]
pub struct Torus {
    axes: Vec<Extent>,
}

impl fmt::Debug for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_extents(&self.axes, f)
    }
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Torus {
    /// Creates a torus in which all axes are rings.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for no or more than [`MAX_AXES`] axes, an axis of length 0 or more
    /// than 65,535, or more than 2^32 nodes.
    pub fn new(lengths: &[u32]) -> Result<Self, FabricError> {
        let wrong = |problem: String| FabricError::setting("torus", problem);
        if lengths.is_empty() || lengths.len() > MAX_AXES {
            return Err(wrong(format!("{} axes; 1 to {MAX_AXES} are possible", lengths.len())));
        }
        if let Some(bad) = lengths.iter().find(|&&l| l == 0 || l > MAX_LENGTH) {
            return Err(wrong(format!("an axis of length {bad}; 1 to 65535 are possible")));
        }
        if lengths.iter().try_fold(1u32, |nodes, &l| nodes.checked_mul(l)).is_none() {
            return Err(wrong(format!("{lengths:?} has more than 2^32 - 1 nodes")));
        }
        Ok(Torus { axes: lengths.iter().map(|&length| Extent { length, wraps: true }).collect() })
    }

    /// Makes an axis a line instead of a ring. This has no effect if there is no such axis.
    #[must_use]
    pub fn mesh(mut self, axis: usize) -> Self {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.wraps = false;
        }
        self
    }

    /// Creates a line of nodes without wrap-around, clamped to at least one node and at most
    /// 65,535.
    pub fn line(nodes: u32) -> Self {
        Torus { axes: vec![Extent { length: nodes.clamp(1, MAX_LENGTH), wraps: false }] }
    }

    /// Creates a torus of exactly `nodes` nodes (at least one), as close to a cube as the factors
    /// allow. A number with a prime factor above 65,535 is raised to the next one without such a
    /// factor, but one above 4,294,967,292 is lowered to that.
    pub fn auto(nodes: u32) -> Self {
        let mut wanted = nodes.clamp(1, MOST_AUTO);
        loop {
            let mut lengths = [1u32; 3];
            for factor in prime_factors(wanted).into_iter().rev() {
                if let Some(least) = lengths.iter_mut().min() {
                    *least = least.saturating_mul(factor);
                }
            }
            lengths.sort_unstable();
            if let Ok(torus) = Torus::new(&lengths) {
                return torus;
            }
            // At most `MOST_AUTO`, of which there is a torus.
            wanted = wanted.saturating_add(1);
        }
    }

    /// Returns the K computer's 82,944 compute nodes: 24 x 18 x 16 groups of 2 x 3 x 2; the second
    /// axis and those of length 2 are lines.
    pub fn k_computer() -> Self {
        Torus {
            axes: [24, 18, 16, 2, 3, 2].map(|length| Extent { length, wraps: length != 18 && length != 2 }).to_vec(),
        }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u32 {
        self.axes.iter().map(|a| a.length).product()
    }

    /// Returns the number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// Returns a node's coordinates.
    pub fn coordinates(&self, node: u32) -> Vec<u32> {
        self.place(node)[..self.axes.len()].iter().map(|&at| at.into()).collect()
    }

    pub(super) fn extents(&self) -> &[Extent] {
        &self.axes
    }

    /// Returns a node's coordinates in the form that the event path uses.
    #[expect(clippy::arithmetic_side_effects, reason = "no axis has length 0")]
    pub(super) fn place(&self, node: u32) -> [u16; MAX_AXES] {
        let (mut rest, mut at) = (node, [0; MAX_AXES]);
        for (place, axis) in at.iter_mut().zip(&self.axes).rev() {
            *place = (rest % axis.length) as u16;
            rest /= axis.length;
        }
        at
    }

    /// Returns the number of links on the route between two nodes.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.coordinates(from), self.coordinates(to));
        self.axes.iter().zip(from.iter().zip(&to)).map(|(axis, (&a, &b))| axis.steps(a, b).0).sum()
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "the square of a number of 16 bits fits; no divisor is 0")]
fn prime_factors(mut n: u32) -> Vec<u32> {
    let mut factors = Vec::new();
    let mut p = 2;
    while p <= MAX_LENGTH && p * p <= n {
        while n.is_multiple_of(p) {
            factors.push(p);
            n /= p;
        }
        p += 1;
    }
    if n > 1 {
        factors.push(n);
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(Torus::auto(128).to_string(), "4x4x8");
        assert_eq!(Torus::auto(1).nodes(), 1);
        assert_eq!(Torus::auto(7).nodes(), 7);
        assert_eq!(Torus::auto(82_944).nodes(), 82_944);
        assert_eq!(Torus::auto(2_147_483_647).nodes(), 2_147_483_648);
        // The largest number without a large prime factor; those above it are clamped to it.
        for nodes in [4_294_967_291, 4_294_967_292, 4_294_967_293, u32::MAX] {
            assert_eq!(Torus::auto(nodes).nodes(), 4_294_967_292, "{nodes}");
        }
        assert_eq!(Torus::k_computer().nodes(), 82_944);
        assert_eq!(Torus::line(5).hops(0, 4), 4);
        assert_eq!(Torus::new(&[5]).unwrap().hops(0, 4), 1);
        assert_eq!(Torus::new(&[2, 3, 2]).unwrap().coordinates(11), [1, 2, 1]);
        assert!(Torus::new(&[]).is_err() && Torus::new(&[0]).is_err() && Torus::new(&[65_535; 3]).is_err());
    }
}
