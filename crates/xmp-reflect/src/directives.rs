//! XcalableMP's directives as statements of one macro, [`xmp!`](crate::xmp).
//!
//! The items here are what the macro expands to; a program has no use for them otherwise. Numbers of
//! dimensions are parts of their types, so a directive that does not fit another one does not
//! compile.

mod macros;

use crate::{
    Align, Array, Element, Format, Mapping, MappingError, NodeSet, Nodes, Order, Reflect, Shadow, Template, Widths,
    XmpError,
};
use core::ops::{Deref, Range};
use rdma_fabric::Group;

/// The index space of a template, before it is distributed.
#[derive(Clone, Debug)]
pub struct Shape<const N: usize>(pub [Range<i64>; N]);

/// A distributed template.
#[derive(Clone, Debug)]
pub struct Distributed<const N: usize>(Template);

/// The mapping of an array.
#[derive(Clone, Debug)]
pub struct Mapped<const N: usize>(Mapping);

impl<const N: usize> Deref for Distributed<N> {
    type Target = Template;

    fn deref(&self) -> &Template {
        &self.0
    }
}

impl<const N: usize> Deref for Mapped<N> {
    type Target = Mapping;

    fn deref(&self) -> &Mapping {
        &self.0
    }
}

/// One dimension of an array in `align`.
#[derive(Clone, Debug)]
pub enum Subscript {
    /// A dummy that the template's subscripts name.
    Dummy(Align),
    /// Bounds of a dimension that is not distributed.
    Collapsed(Range<i64>),
}

impl From<Align> for Subscript {
    fn from(dummy: Align) -> Self {
        Subscript::Dummy(dummy)
    }
}

impl From<Range<i64>> for Subscript {
    fn from(bounds: Range<i64>) -> Self {
        Subscript::Collapsed(bounds)
    }
}

/// `nodes`: an empty list of extents is all ranks in one dimension.
///
/// # Errors
/// As [`Nodes::new`] and [`NodeSet::new`].
pub fn nodes(extents: &[usize], group: Group) -> Result<NodeSet, XmpError> {
    let all = [group.len()];
    let extents = if extents.is_empty() { &all } else { extents };
    NodeSet::new(group, Nodes::new(extents, Order::LastFastest)?)
}

/// `distribute`. The shape is the last argument, so that it is the one that does not fit.
///
/// # Errors
/// As [`Template::new`].
pub fn distribute<const N: usize>(
    formats: [Format; N],
    onto: &NodeSet,
    shape: Shape<N>,
) -> Result<Distributed<N>, MappingError> {
    Ok(Distributed(Template::new(&shape.0, &formats, onto.nodes())?))
}

/// `align`: an aligned dimension has the indices that the template's dimension has, without the
/// offset.
///
/// # Errors
/// As [`Template::align`].
pub fn align<const N: usize, const M: usize>(
    array: [Subscript; N],
    _subscripts: [(); M],
    template: &Distributed<M>,
) -> Result<Mapped<N>, MappingError> {
    let of = template.bounds();
    let dims = array.map(|subscript| match subscript {
        Subscript::Collapsed(bounds) => (bounds, Align::Collapsed),
        Subscript::Dummy(align) => {
            let bounds = match align {
                Align::With { dim, offset } => of[dim].start.saturating_sub(offset)..of[dim].end.saturating_sub(offset),
                Align::Collapsed => 0..0,
            };
            (bounds, align)
        }
    });
    let (bounds, aligns): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
    Ok(Mapped(template.align(&bounds, &aligns)?))
}

/// `shadow`.
///
/// # Errors
/// As [`Mapping::shadow`].
pub fn shadow<const N: usize>(shadows: [Shadow; N], mapped: Mapped<N>) -> Result<Mapped<N>, MappingError> {
    Ok(Mapped(mapped.0.shadow(&shadows)?))
}

/// `array`.
///
/// # Errors
/// As [`NodeSet::array`].
pub fn array<T: Element, const N: usize>(mapped: &Mapped<N>, set: &NodeSet) -> Result<Array<T>, XmpError> {
    set.array(mapped)
}

/// The clauses of `reflect`: at most one of widths.
pub fn reflect(widths: &[&[Widths]], is_orthogonal: bool) -> Reflect {
    let reflect = widths.first().map_or(Reflect::whole(), |widths| Reflect::widths(widths));
    if is_orthogonal { reflect.orthogonal() } else { reflect }
}

/// The formats of `distribute`.
pub mod format {
    use crate::Format;

    /// `block`.
    pub fn block() -> Format {
        Format::Block
    }

    /// `cyclic`.
    pub fn cyclic() -> Format {
        Format::Cyclic
    }
}

/// The formats of `distribute` with an argument.
pub mod format_of {
    use crate::Format;

    /// `block(n)`.
    pub fn block(indices: usize) -> Format {
        Format::BlockOf(indices)
    }

    /// `cyclic(n)`.
    pub fn cyclic(indices: usize) -> Format {
        Format::CyclicOf(indices)
    }

    /// `gblock(m)`.
    pub fn gblock(blocks: impl Into<Vec<usize>>) -> Format {
        Format::Gblock(blocks.into())
    }
}

/// The names of statements: an unknown one is not found here.
#[allow(non_upper_case_globals, missing_docs)]
pub mod statement {
    pub const nodes: () = ();
    pub const template: () = ();
    pub const distribute: () = ();
    pub const align: () = ();
    pub const shadow: () = ();
    pub const array: () = ();
    pub const reflect: () = ();
    pub const wait_async: () = ();
}
