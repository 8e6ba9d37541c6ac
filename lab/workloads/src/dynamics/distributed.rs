//! The fields as distributed arrays, computed in place.

use super::{Atmosphere, Columns, FIELDS, SHADOW, Work};
use xmp_reflect::{Align, Array, Format, Mapping, NodeSet, Nodes, Order, Result, Section, Shadow, Template};

/// The fields of a state.
pub type Fields = [Array<f64>; FIELDS];

/// Returns the mapping of an atmosphere's fields onto nodes of two dimensions: columns are whole
/// and fastest in memory, both horizontal directions are distributed in blocks, with shadows.
///
/// # Errors
/// As [`Template::align`].
pub fn mapping(atmosphere: &Atmosphere, nodes: &Nodes) -> Result<Mapping> {
    let bounds = atmosphere.cells().map(|cells| 0..cells as i64);
    let template = Template::new(&bounds, &[Format::None, Format::Block, Format::Block], nodes)?;
    let mapping = template.align(&bounds, &[Align::with(0), Align::with(1), Align::with(2)])?;
    let mapping = mapping.shadow(&[Shadow::NONE, Shadow::of(SHADOW), Shadow::of(SHADOW)])?;
    Ok(mapping.stored(Order::FirstFastest))
}

/// Creates the fields of a state.
///
/// # Errors
/// As [`NodeSet::array`].
pub fn fields(set: &NodeSet, mapping: &Mapping) -> Result<Fields> {
    let all: Result<Vec<_>> = (0..FIELDS).map(|_| set.array(mapping)).collect();
    Ok(all?.try_into().expect("one for each field"))
}

/// Computes a stage for a section of a node's columns: `to` becomes `base` (or stays itself if that
/// is `None`) plus the change of `from` during `time`. Only rows of `base` are copied.
///
/// # Errors
/// The errors of [`Array::section_mut`]: cells that the section needs are in use.
pub fn compute(
    atmosphere: &Atmosphere,
    [from, to]: [&Fields; 2],
    base: Option<&Fields>,
    section: &Section,
    time: f64,
    work: &mut Work,
) -> Result<()> {
    let (starts, extents) = (&section.starts, &section.extents);
    let around = Section {
        starts: vec![starts[0], starts[1] - SHADOW, starts[2] - SHADOW],
        extents: vec![extents[0], extents[1] + 2 * SHADOW, extents[2] + 2 * SHADOW],
    };
    let from: Vec<_> = from.iter().map(|field| field.section(&around)).collect::<Result<_>>()?;
    let base: Option<Vec<_>> =
        base.map(|base| base.iter().map(|field| field.section(section)).collect::<Result<_>>()).transpose()?;
    let mut to: Vec<_> = to.iter().map(|field| field.section_mut(section)).collect::<Result<_>>()?;
    let columns: [Columns<'_>; FIELDS] = core::array::from_fn(|field| {
        let all = (0..around.extents[2]).flat_map(|j| (0..around.extents[1]).map(move |i| [j, i]));
        Columns::new(around.extents[1], all.map(|at| from[field].row(&at)))
    });
    for j in 0..extents[2] {
        for i in 0..extents[1] {
            let mut views = to.iter_mut();
            let mut out: [&mut [f64]; FIELDS] =
                core::array::from_fn(|_| views.next().expect("one for each field").row_mut(&[j, i]));
            if let Some(base) = &base {
                for (out, base) in out.iter_mut().zip(base) {
                    out.copy_from_slice(base.row(&[j, i]));
                }
            }
            atmosphere.advance(&columns, [i, j], time, work, out);
        }
    }
    Ok(())
}
