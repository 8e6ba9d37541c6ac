//! Loops whose inner part is executed while shadows are being updated.

use super::Indices;
use crate::{
    Array, Element, NodeSet, Result, Split, Widths,
    mapping::{MappingError, Part, Section},
};
use core::ops::Range;

/// The iterations of a loop nest at one node, divided by whether their stencil reads the shadow
/// ([`Split`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeled<const N: usize> {
    /// The iterations that read no shadow.
    pub inner: Indices<N>,
    /// The others.
    pub border: Indices<N>,
}

impl<const N: usize> Peeled<N> {
    /// Returns those of the iterations that are within these bounds of the loops.
    #[must_use]
    pub fn within(self, bounds: [Range<i64>; N]) -> Self {
        Peeled { inner: self.inner.within(bounds.clone()), border: self.border.within(bounds) }
    }
}

impl Split {
    /// Returns the indices of the cells, which are those of this part.
    ///
    /// # Errors
    /// [`MappingError::Loops`] if the number of loops is not that of the dimensions.
    pub fn indices<const N: usize>(&self, part: &Part) -> Result<Peeled<N>, MappingError> {
        // No cells of the right number of dimensions.
        let none = part.indices()?.within([const { 0..0 }; N]);
        let of = |sections: &[Section]| {
            sections.iter().fold(none.clone(), |mut all, section| {
                let ranges = core::array::from_fn(|dim| part.runs_of(dim, section.starts[dim], section.extents[dim]));
                all.extend(Indices::products(&ranges, part.mapping().order()));
                all
            })
        };
        Ok(Peeled { inner: of(&self.inner), border: of(&self.boundary) })
    }
}

impl<T: Element> Array<T> {
    /// Returns the indices of the elements that this node owns, divided by whether a stencil of
    /// these widths around them reads the shadow.
    ///
    /// # Errors
    /// [`crate::XmpError::Mapping`] if the number of loops is not that of the dimensions;
    /// [`crate::XmpError::Plan`].
    pub fn peel<const N: usize>(&self, widths: &[Widths]) -> Result<Peeled<N>> {
        Ok(Split::new(self.mapping(), self.node(), widths)?.indices(&self.part())?)
    }
}

impl NodeSet {
    /// Executes a loop nest while shadows are being updated (`loop … peel_and_wait(ids)`): calls
    /// `body` with the iterations that read no shadow, waits for the communications of these ids,
    /// and calls `body` with the other iterations.
    ///
    /// ```
    /// use rdma_fabric::{Fabric, Group, ProgramResult};
    /// use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template, Widths};
    ///
    /// /// Averages each cell's four neighbours on a torus.
    /// async fn average(fabric: Fabric) -> ProgramResult<()> {
    ///     let group = Group::world(&fabric).await?;
    ///     let nodes = Nodes::new(&[2, 2], Order::LastFastest)?;
    ///     let template = Template::new(&[0..8, 0..8], &[Format::Block, Format::Block], &nodes)?;
    ///     let mapping = template.align(&[0..8, 0..8], &[Align::with(0), Align::with(1)])?.shadow(&[Shadow::of(1); 2])?;
    ///     let mut set = NodeSet::new(group, nodes)?;
    ///     let (old, new): (Array<f64>, Array<f64>) = (set.array(&mapping)?, set.array(&mapping)?);
    ///     old.fill(|index| index[0] as f64)?;
    ///
    ///     let widths = [Widths::of(1).periodic(); 2];
    ///     set.reflect_async(&old, &Reflect::widths(&widths).orthogonal(), 1).await?;
    ///     set.peel_and_wait(&[1], &old.peel(&widths)?, |indices| {
    ///         let (from, mut to) = (old.around(indices, &widths)?, new.at_mut(indices)?);
    ///         for [i, j] in indices {
    ///             to[[i, j]] = (from[[i - 1, j]] + from[[i + 1, j]] + from[[i, j - 1]] + from[[i, j + 1]]) / 4.0;
    ///         }
    ///         Ok(())
    ///     })
    ///     .await?;
    ///     for (index, value) in new.owned()? {
    ///         assert_eq!(value, [2.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0][index[0] as usize]);
    ///     }
    ///     set.barrier().await?;
    ///     Ok(())
    /// }
    /// # checks::documented::run(4, &average);
    /// ```
    ///
    /// # Errors
    /// The first error of `body`, or that of [`NodeSet::wait_async`]. After an error of the first
    /// call of `body`, the communications are still in progress.
    pub async fn peel_and_wait<const N: usize>(
        &mut self,
        ids: &[u64],
        iterations: &Peeled<N>,
        mut body: impl FnMut(&Indices<N>) -> Result<()>,
    ) -> Result<()> {
        body(&iterations.inner)?;
        self.wait_async(ids).await?;
        body(&iterations.border)
    }
}
