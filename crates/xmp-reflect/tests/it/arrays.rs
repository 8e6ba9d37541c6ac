//! Arrays described for tests, and the ownership of their elements, determined index by index.

use core::ops::Range;
use xmp_reflect::{Align, Format, Mapping, MappingError, Nodes, Order, Shadow, Template};

/// The definition of a mapped array.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) nodes: Vec<usize>,
    pub(crate) numbered: Order,
    pub(crate) template: Vec<(Range<i64>, Format)>,
    pub(crate) dims: Vec<Dim>,
    pub(crate) stored: Order,
}

/// One dimension of it.
#[derive(Clone, Debug)]
pub(crate) struct Dim {
    pub(crate) bounds: Range<i64>,
    pub(crate) align: Align,
    pub(crate) shadow: Shadow,
}

/// One dimension of an array, index by index.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) bounds: Range<i64>,
    pub(crate) along: Option<usize>,
    /// The indices that the node at each coordinate owns, ascending; one entry if it isn't
    /// distributed.
    pub(crate) owned: Vec<Vec<i64>>,
    /// Where each node's own indices begin, or would if it had any.
    pub(crate) first: Vec<i64>,
    pub(crate) shadow: Shadow,
}

impl Array {
    /// An array on a template with its own bounds from 0, dimension by dimension.
    pub(crate) fn simple(nodes: &[usize], dims: &[(i64, Format, Shadow)]) -> Array {
        Array {
            nodes: nodes.to_vec(),
            numbered: Order::LastFastest,
            template: dims.iter().map(|(len, format, _)| (0..*len, format.clone())).collect(),
            dims: dims
                .iter()
                .enumerate()
                .map(|(dim, (len, _, shadow))| Dim { bounds: 0..*len, align: Align::with(dim), shadow: *shadow })
                .collect(),
            stored: Order::LastFastest,
        }
    }

    /// The mapping that the crate creates for it.
    pub(crate) fn mapping(&self) -> Result<Mapping, MappingError> {
        let nodes = Nodes::new(&self.nodes, self.numbered)?;
        let (bounds, formats): (Vec<_>, Vec<_>) = self.template.iter().cloned().unzip();
        let template = Template::new(&bounds, &formats, &nodes)?;
        let bounds: Vec<_> = self.dims.iter().map(|dim| dim.bounds.clone()).collect();
        let aligns: Vec<_> = self.dims.iter().map(|dim| dim.align).collect();
        let shadows: Vec<_> = self.dims.iter().map(|dim| dim.shadow).collect();
        Ok(template.align(&bounds, &aligns)?.shadow(&shadows)?.stored(self.stored))
    }

    /// Its dimensions, index by index.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.dims.iter().map(|dim| self.line(dim)).collect()
    }

    fn line(&self, dim: &Dim) -> Line {
        let Dim { bounds, align, shadow } = dim.clone();
        let (mut along, mut owned, mut leads) = (None, vec![bounds.clone().collect::<Vec<i64>>()], true);
        if let Align::With { dim, offset } = align {
            let (template, format) = &self.template[dim];
            if *format != Format::None {
                let before = self.template[..dim].iter().filter(|(_, format)| *format != Format::None).count();
                let nodes = self.nodes[before];
                let owners = deal(template.clone().count(), format, nodes);
                let owner = |index: i64| owners[(index + offset - template.start) as usize];
                along = Some(before);
                owned = (0..nodes).map(|at| bounds.clone().filter(|index| owner(*index) == at).collect()).collect();
                leads = owners.is_sorted();
            }
        }
        // An empty block lies before those of the nodes after it; if chunks are cyclic, it lies at
        // the end.
        let after = |at: usize| owned[at..].iter().flatten().min().copied().filter(|_| leads || !owned[at].is_empty());
        let first = (0..owned.len()).map(|at| owned[at].first().copied().or(after(at)).unwrap_or(bounds.end)).collect();
        Line { bounds, along, owned, first, shadow }
    }
}

impl Line {
    /// Whether each node's indices are in one piece.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.owned.iter().all(|owned| owned.windows(2).all(|two| two[0] + 1 == two[1]))
    }

    /// The number of cells of the node at a coordinate.
    pub(crate) fn cells(&self, at: usize) -> usize {
        match self.shadow {
            Shadow::Width { lo, hi } => lo + self.owned[at].len() + hi,
            Shadow::Full => self.bounds.clone().count(),
        }
    }

    /// The index of the element in one of the cells owned by the node at a coordinate.
    pub(crate) fn own(&self, at: usize, local: usize) -> Option<i64> {
        match self.shadow {
            Shadow::Width { lo, .. } => self.owned[at].get(local.checked_sub(lo)?).copied(),
            Shadow::Full => Some(self.bounds.start + local as i64).filter(|index| self.owned[at].contains(index)),
        }
    }
}

/// The owner of each index of a template's dimension, taken literally from the specification.
fn deal(len: usize, format: &Format, nodes: usize) -> Vec<usize> {
    let chunk = match format {
        Format::None => len,
        Format::Block => len.div_ceil(nodes),
        Format::Cyclic => 1,
        Format::BlockOf(chunk) | Format::CyclicOf(chunk) => *chunk,
        Format::Gblock(blocks) => {
            return blocks.iter().enumerate().flat_map(|(at, block)| vec![at; *block]).collect();
        }
    };
    (0..len).map(|index| index / chunk % nodes).collect()
}
