//! Mapped arrays.

use super::{Dimension, MappingError, Nodes, Order, Part, Shadow};
use core::ops::Range;

/// The location of the elements of an array: the result of
/// [`Template::align`](super::Template::align) and [`Mapping::shadow`].
///
/// Every node can compute it locally. Nodes that compute the same mapping agree on everything that
/// follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    nodes: Nodes,
    /// 1 to [`MOST_DIMS`](super::MOST_DIMS); no two along one dimension of the node set. The
    /// product of the largest extents of a node fits into `isize`.
    pub(super) dimensions: Vec<Dimension>,
    order: Order,
}

impl Mapping {
    pub(super) fn new(nodes: Nodes, dimensions: Vec<Dimension>) -> Result<Mapping, MappingError> {
        Mapping { nodes, dimensions, order: Order::LastFastest }.checked()
    }

    /// Returns the mapping, if the largest part of a node can be addressed.
    pub(super) fn checked(self) -> Result<Mapping, MappingError> {
        let most = |dim: &Dimension| dim.most_allocated();
        let extents: Option<Vec<usize>> = self.dimensions.iter().map(most).collect();
        match extents {
            Some(extents) if self.order.strides(&extents).is_some() => Ok(self),
            extents => Err(MappingError::TooManyCells { extents: extents.unwrap_or_default() }),
        }
    }

    /// Stores the array in this order in the memory of each node, instead of the last dimension
    /// fastest.
    pub fn stored(self, order: Order) -> Mapping {
        Mapping { order, ..self }
    }

    /// Returns the number of dimensions.
    pub fn dims(&self) -> usize {
        self.dimensions.len()
    }

    /// Returns the node set.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the order of the array in memory.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Returns the bounds of a dimension.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn bounds(&self, dim: usize) -> Range<i64> {
        self.dimensions[dim].bounds.clone()
    }

    /// Returns the shadow of a dimension.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn declared_shadow(&self, dim: usize) -> Shadow {
        self.dimensions[dim].shadow
    }

    /// Returns the dimension of the node set over which a dimension of the array is distributed;
    /// `None` if nodes have all of it.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn along(&self, dim: usize) -> Option<usize> {
        self.dimensions[dim].along
    }

    /// Returns whether each node owns its indices of a dimension in one piece.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn is_contiguous(&self, dim: usize) -> bool {
        self.dimensions[dim].is_contiguous()
    }

    /// Returns the largest number of cells that a node allocates along a dimension, shadow
    /// included.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn largest_extent(&self, dim: usize) -> usize {
        self.dimensions[dim].most_allocated().expect("checked when the mapping was made")
    }

    /// Returns the dimensions of the node set along which the array is replicated: nodes that
    /// differ only there own the same elements.
    pub fn replicated(&self) -> Vec<usize> {
        let used = |along: &usize| self.dimensions.iter().any(|dim| dim.along == Some(*along));
        (0..self.nodes.dims()).filter(|along| !used(along)).collect()
    }

    /// Returns a node's part of the array.
    ///
    /// # Errors
    /// [`MappingError::NoSuchNode`].
    pub fn part(&self, node: usize) -> Result<Part<'_>, MappingError> {
        Ok(Part::new(self, node, self.nodes.coordinates(node)?))
    }

    /// Returns the nodes that own an element, ascending: one, or several if the array is
    /// replicated; none if the array has no such element.
    pub fn owners(&self, index: &[i64]) -> Vec<usize> {
        let Some(first) = self.owner_at(vec![0; self.nodes.dims()], index) else {
            return Vec::new();
        };
        let mut owners = vec![first];
        for along in self.replicated() {
            let among = |coordinates: &[usize], at| {
                let mut coordinates = coordinates.to_vec();
                coordinates[along] = at;
                coordinates
            };
            let each = 0..self.nodes.extents()[along];
            owners =
                owners.iter().flat_map(|owner| each.clone().map(|at| among(owner, at)).collect::<Vec<_>>()).collect();
        }
        let mut owners: Vec<usize> = owners.iter().map(|owner| self.nodes.number_inside(owner)).collect();
        owners.sort_unstable();
        owners
    }

    /// Returns the node that owns an element and, in the dimensions along which the array is
    /// replicated, has the same coordinates as `node`; `None` if the array has no such element.
    ///
    /// # Errors
    /// [`MappingError::NoSuchNode`].
    pub fn owner_near(&self, node: usize, index: &[i64]) -> Result<Option<usize>, MappingError> {
        let near = self.nodes.coordinates(node)?;
        Ok(self.owner_at(near, index).map(|owner| self.nodes.number_inside(&owner)))
    }

    /// Returns the coordinates of the owner of an element; in the dimensions along which the array
    /// is replicated, they are those of `near`.
    fn owner_at(&self, mut near: Vec<usize>, index: &[i64]) -> Option<Vec<usize>> {
        if index.len() != self.dims() {
            return None;
        }
        for (dim, index) in self.dimensions.iter().zip(index) {
            if !dim.bounds.contains(index) {
                return None;
            }
            if let Some(along) = dim.along {
                near[along] = dim.owner(*index);
            }
        }
        Some(near)
    }

    pub(crate) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }
}
