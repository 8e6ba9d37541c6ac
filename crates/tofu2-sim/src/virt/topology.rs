//! Where nodes are: meshes and tori of up to six dimensions with dimension-order routes.

use rdma_fabric::FabricError;
use std::fmt;

/// Most dimensions a [`Torus`] may have.
pub const MAX_AXES: usize = 6;

/// A torus or mesh. Node numbers count the last axis fastest.
///
/// Routes correct one axis after the other, in the order the axes are given, each in the shorter direction and upwards
/// if both are equally long. (Tofu's own order of in-group and between-group axes is not modelled.)
#[derive(Clone, PartialEq, Eq)]
pub struct Torus {
    axes: Vec<Axis>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Axis {
    length: u32,
    wraps: bool,
}

impl fmt::Debug for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, axis) in self.axes.iter().enumerate() {
            write!(f, "{}{}{}", if i > 0 { "x" } else { "" }, axis.length, if axis.wraps { "" } else { "m" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Torus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Torus {
    /// All axes are rings.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for no or more than [`MAX_AXES`] axes, an axis of length 0 or more than 65,535,
    /// or more than 2^32 nodes.
    pub fn new(lengths: &[u32]) -> Result<Self, FabricError> {
        let wrong = |problem: String| FabricError::Setting { name: "torus", problem };
        if lengths.is_empty() || lengths.len() > MAX_AXES {
            return Err(wrong(format!("{} axes; 1 to {MAX_AXES} are possible", lengths.len())));
        }
        if let Some(bad) = lengths.iter().find(|&&l| l == 0 || l > 65_535) {
            return Err(wrong(format!("an axis of length {bad}; 1 to 65535 are possible")));
        }
        if lengths.iter().try_fold(1u32, |nodes, &l| nodes.checked_mul(l)).is_none() {
            return Err(wrong(format!("{lengths:?} has more than 2^32 - 1 nodes")));
        }
        Ok(Torus { axes: lengths.iter().map(|&length| Axis { length, wraps: true }).collect() })
    }

    /// Make an axis a line instead of a ring. No effect if there is no such axis.
    #[must_use]
    pub fn mesh(mut self, axis: usize) -> Self {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.wraps = false;
        }
        self
    }

    /// A line of nodes, without wrap-around. At least one node, at most 65,535.
    pub fn line(nodes: u32) -> Self {
        Torus { axes: vec![Axis { length: nodes.clamp(1, 65_535), wraps: false }] }
    }

    /// A torus of exactly `nodes` nodes (at least one), as close to a cube as its factors allow; a node count with a prime factor
    /// above 65,535 gets the next larger one without.
    pub fn auto(nodes: u32) -> Self {
        let mut wanted = nodes.max(1);
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
            wanted += 1;
        }
    }

    /// The K computer's 82,944 compute nodes: 24 x 18 x 16 groups of 2 x 3 x 2; the second axis and those of length 2 are lines.
    pub fn k_computer() -> Self {
        Torus { axes: [24, 18, 16, 2, 3, 2].map(|length| Axis { length, wraps: length != 18 && length != 2 }).to_vec() }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.axes.iter().map(|a| a.length).product()
    }

    /// Number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// A node's coordinates.
    pub fn coordinates(&self, node: u32) -> Vec<u32> {
        let mut rest = node;
        let mut coordinates: Vec<u32> = self.axes.iter().rev().map(|a| (rest % a.length, rest /= a.length).0).collect();
        coordinates.reverse();
        coordinates
    }

    /// Links between two nodes on the route.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (from, to) = (self.coordinates(from), self.coordinates(to));
        self.axes.iter().zip(from.iter().zip(&to)).map(|(axis, (&a, &b))| axis.steps(a, b).0).sum()
    }
}

impl Axis {
    /// Number of steps from `a` to `b` and whether they go upwards.
    #[inline]
    fn steps(self, a: u32, b: u32) -> (u32, bool) {
        if !self.wraps {
            return (a.abs_diff(b), b >= a);
        }
        let up = if b >= a { b - a } else { b + self.length - a };
        let down = if up == 0 { 0 } else { self.length - up };
        if up <= down { (up, true) } else { (down, false) }
    }
}

fn prime_factors(mut n: u32) -> Vec<u32> {
    let mut factors = Vec::new();
    let mut p = 2;
    while p * p <= n && p < 65_536 {
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

/// The torus in the form of the event path: coordinates of all nodes, computed once.
#[derive(Debug)]
pub(super) struct Map {
    axes: Vec<Axis>,
    coordinates: Vec<[u16; MAX_AXES]>,
    /// Node numbers between neighbours of each axis.
    strides: Vec<u32>,
}

impl fmt::Debug for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.length, if self.wraps { "" } else { "m" })
    }
}

impl Map {
    /// For the first `nodes` nodes at least.
    pub(super) fn new(torus: &Torus) -> Self {
        let mut strides = vec![1; torus.axes.len()];
        for axis in (0..torus.axes.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * torus.axes[axis + 1].length;
        }
        let coordinates = (0..torus.nodes()).map(|node| {
            let mut at = [0; MAX_AXES];
            for (place, c) in at.iter_mut().zip(torus.coordinates(node)) {
                *place = c as u16;
            }
            at
        });
        Map { coordinates: coordinates.collect(), axes: torus.axes.clone(), strides }
    }

    pub(super) fn dimensions(&self) -> usize {
        self.axes.len()
    }

    #[inline]
    pub(super) fn hops(&self, from: u32, to: u32) -> u32 {
        if from == to {
            return 0;
        }
        let (a, b) = (&self.coordinates[from as usize], &self.coordinates[to as usize]);
        self.axes.iter().enumerate().map(|(i, axis)| axis.steps(a[i].into(), b[i].into()).0).sum()
    }

    /// The first link on the route, `2 * axis` and 1 more if downwards, or `None` at its end.
    #[inline]
    pub(super) fn link(&self, from: u32, to: u32) -> Option<u8> {
        if from == to {
            return None;
        }
        let (a, b) = (&self.coordinates[from as usize], &self.coordinates[to as usize]);
        let (i, axis) = self.axes.iter().enumerate().find(|(i, _)| a[*i] != b[*i])?;
        let (_, up) = axis.steps(a[i].into(), b[i].into());
        Some(2 * i as u8 + u8::from(!up))
    }

    /// The node that a link leads to and whether it goes over the wrap-around of a ring. (Of a line that ends here, its other end.)
    pub(super) fn over(&self, node: u32, link: u8) -> (u32, bool) {
        let (i, down) = (usize::from(link / 2), link % 2 == 1);
        let (at, last) = (u32::from(self.coordinates[node as usize][i]), self.axes[i].length - 1);
        let stride = self.strides[i];
        match down {
            false if at == last => (node - last * stride, true),
            false => (node + stride, false),
            true if at == 0 => (node + last * stride, true),
            true => (node - stride, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn routes_are_as_long_as_hops_and_hops_symmetric(
            lengths in prop::collection::vec(1u32..6, 1..=4), wraps in any::<u8>(), a in any::<u32>(), b in any::<u32>(),
        ) {
            let mut torus = Torus::new(&lengths).unwrap();
            for axis in 0..lengths.len() {
                if wraps >> axis & 1 == 1 {
                    torus = torus.mesh(axis);
                }
            }
            let (a, b) = (a % torus.nodes(), b % torus.nodes());
            let map = Map::new(&torus);
            prop_assert_eq!(torus.hops(a, b), torus.hops(b, a));
            prop_assert_eq!(torus.hops(a, b), map.hops(a, b));
            let (mut at, mut steps) = (a, 0);
            while let Some(link) = map.link(at, b) {
                let (next, wrapped) = map.over(at, link);
                prop_assert_eq!(map.over(next, link ^ 1), (at, wrapped));
                prop_assert_eq!(map.hops(at, next), 1);
                (at, steps) = (next, steps + 1);
            }
            prop_assert_eq!(at, b);
            prop_assert_eq!(steps, torus.hops(a, b));
        }
    }

    #[test]
    fn shapes() {
        assert_eq!(Torus::auto(128).to_string(), "4x4x8");
        assert_eq!(Torus::auto(1).nodes(), 1);
        assert_eq!(Torus::auto(7).nodes(), 7);
        assert_eq!(Torus::auto(82_944).nodes(), 82_944);
        assert_eq!(Torus::auto(2_147_483_647).nodes(), 2_147_483_648);
        assert_eq!(Torus::k_computer().nodes(), 82_944);
        assert_eq!(Torus::line(5).hops(0, 4), 4);
        assert_eq!(Torus::new(&[5]).unwrap().hops(0, 4), 1);
        assert_eq!(Torus::new(&[2, 3, 2]).unwrap().coordinates(11), [1, 2, 1]);
        assert!(Torus::new(&[]).is_err() && Torus::new(&[0]).is_err() && Torus::new(&[65_535; 3]).is_err());
    }
}
