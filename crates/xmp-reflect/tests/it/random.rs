//! Random arrays.

use crate::{
    arrays::{Array, Dim},
    expected::Expected,
    simulated::{Job, check, plans},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngSeed, TestRunner},
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher,
};
use xmp_reflect::{Align, Corners, Format, MappingError, Order, Shadow, Widths, plan::ALL};

/// A dimension of a template, and of the array that is aligned with it.
#[derive(Clone, Debug)]
struct Random {
    start: i64,
    len: usize,
    /// The format, the length of its chunks, and the cuts of gblock, in sixtieths.
    format: (u8, usize, Vec<usize>),
    nodes: usize,
    use_of: Use,
    /// The parts of the template that the array leaves out below and above, in sixtieths.
    left: (usize, usize),
    offset: i64,
    /// Layers, or everything for [`ALL`].
    shadow: (usize, usize),
    width: (usize, usize),
    periodic: bool,
}

/// The relation of the array to a dimension of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Aligned,
    /// The array has no such dimension: it is replicated.
    Replicated,
    /// The template has no such dimension: the array's is collapsed.
    Collapsed,
}

fn one(dims: usize) -> impl Strategy<Value = Random> {
    let (longest, most, widest): (usize, usize, usize) = [(24, 9, 30), (10, 4, 12), (6, 3, 4), (4, 2, 2)][dims - 1];
    let layers = prop_oneof![4 => 0..3usize, 1 => 0..=widest];
    let shadow = prop_oneof![8 => (layers.clone(), layers), 1 => Just((ALL, ALL))];
    let width = || prop_oneof![Just(ALL), 0..=widest];
    let use_of = prop_oneof![8 => Just(Use::Aligned), 1 => Just(Use::Replicated), 1 => Just(Use::Collapsed)];
    let format = (0..8u8, 1..5usize, prop::collection::vec(0..=60usize, most));
    let len = prop_oneof![1 => Just(0), 15 => 1..=longest];
    let left = || prop_oneof![1 => Just(0), 1 => 0..30usize];
    let indices = (-5..5i64, len, (left(), left()), -4..5i64);
    (indices, format, 1..=most, use_of, shadow, (width(), width()), any::<bool>()).prop_map(
        |((start, len, left, offset), format, nodes, use_of, shadow, width, periodic)| Random {
            start,
            len,
            format,
            nodes,
            use_of,
            left,
            offset,
            shadow,
            width,
            periodic,
        },
    )
}

impl Random {
    fn format(&self) -> Format {
        let (kind, chunk, cuts) = &self.format;
        let least = self.len.div_ceil(self.nodes).max(1);
        match kind {
            0 => Format::None,
            1 | 2 => Format::Block,
            3 => Format::BlockOf(least + chunk - 1),
            4 => Format::Cyclic,
            5 => Format::CyclicOf(*chunk),
            _ => {
                let mut cuts: Vec<usize> = cuts[1..self.nodes].iter().map(|cut| cut * self.len / 60).collect();
                cuts.extend([0, self.len]);
                cuts.sort_unstable();
                Format::Gblock(cuts.windows(2).map(|two| two[1] - two[0]).collect())
            }
        }
    }

    fn dim(&self, align: Option<usize>) -> Dim {
        let (below, above) = (self.left.0 * self.len / 60, self.left.1 * self.len / 60);
        let start = self.start + below as i64 - self.offset;
        let shadow = match self.shadow {
            (ALL, _) => Shadow::Full,
            (lo, hi) => Shadow::Width { lo, hi },
        };
        let align = align.map_or(Align::Collapsed, |dim| Align::shifted(dim, self.offset));
        Dim { bounds: start..start + (self.len - below - above) as i64, align, shadow }
    }

    fn widths(&self) -> Widths {
        let (lo, hi) = match (self.shadow, self.width) {
            ((ALL, _), (lo, _)) if lo % 3 == 1 => (0, 0),
            ((ALL, _), _) => (ALL, ALL),
            (shadow, width) => {
                let within = |width: usize, shadow: usize| if width == ALL { ALL } else { shadow.min(width) };
                (within(width.0, shadow.0), within(width.1, shadow.1))
            }
        };
        Widths { lo, hi, periodic: self.periodic }
    }
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::FirstFastest), Just(Order::LastFastest)]
}

/// An array and the widths of a reflect. There is at least one dimension of each required kind.
pub(crate) fn arrays() -> impl Strategy<Value = (Array, Vec<Widths>)> {
    let lists = (1..=4usize).prop_flat_map(|dims| {
        let order_of_dims = Just((0..dims).collect::<Vec<_>>()).prop_shuffle();
        (prop::collection::vec(one(dims), dims), order_of_dims)
    });
    (lists, order(), order()).prop_map(|((mut random, mut shuffled), numbered, stored)| {
        // A node set, and an array.
        random[0].format.0 = random[0].format.0.max(1);
        random[0].use_of = Use::Aligned;
        let of_template: Vec<usize> = (0..random.len()).filter(|dim| random[*dim].use_of != Use::Collapsed).collect();
        let template: Vec<_> = of_template.iter().map(|dim| &random[*dim]).collect();
        let nodes = template.iter().filter(|dim| dim.format() != Format::None).map(|dim| dim.nodes).collect();
        let template = template.iter().map(|dim| (dim.start..dim.start + dim.len as i64, dim.format())).collect();
        shuffled.retain(|dim| random[*dim].use_of != Use::Replicated);
        let with = |dim: usize| of_template.iter().position(|of| *of == dim);
        let dims = shuffled.iter().map(|dim| random[*dim].dim(with(*dim))).collect();
        let widths = shuffled.iter().map(|dim| random[*dim].widths()).collect();
        (Array { nodes, numbered, template, dims, stored }, widths)
    })
}

/// Removes layers from dimensions that can't have any, after checking that the crate rejects
/// exactly these.
pub(crate) fn fitting(mut array: Array, mut widths: Vec<Widths>) -> (Array, Vec<Widths>) {
    let lines = array.lines();
    for (dim, line) in lines.iter().enumerate() {
        let Shadow::Width { lo, hi } = line.shadow else { continue };
        if lo + hi > 0 && !line.is_contiguous() {
            assert_eq!(array.mapping().err(), Some(MappingError::ShadowOfChunks { dim, lo, hi }), "{array:?}");
            let full = lo % 2 == 0;
            array.dims[dim].shadow = if full { Shadow::Full } else { Shadow::NONE };
            let periodic = widths[dim].periodic;
            widths[dim] = if full { Widths { periodic, ..Widths::WHOLE } } else { Widths { periodic, ..Widths::NONE } };
        }
    }
    (array, widths)
}

/// Checks a property for random arrays, from a seed that is printed and that the environment can
/// set (`PROPTEST_RNG_SEED`).
pub(crate) fn for_all(cases: u32, property: impl Fn(Array, Vec<Widths>) -> Result<(), TestCaseError>) {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 1000, cases, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(RandomState::new().hash_one(0));
    }
    println!("PROPTEST_RNG_SEED={}", config.rng_seed);
    let property = |(array, widths)| {
        let (array, widths) = fitting(array, widths);
        property(array, widths)
    };
    TestRunner::new(config).run(&arrays(), property).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_cell_holds_what_the_specification_says() {
    for_all(1000, |array, widths| {
        for corners in [Corners::With, Corners::Orthogonal] {
            check(&array, &widths, corners).map_err(|error| TestCaseError::fail(format!("{corners:?}: {error}")))?;
        }
        Ok(())
    });
}

/// Two messages for each dimension instead of one for each direction: shadows filled first are
/// carried along.
#[test]
fn reflects_of_one_dimension_after_another_fill_corners() {
    for_all(300, |array, widths| {
        let mapping = array.mapping().expect("fitting");
        let expected = Expected::new(&array, &widths, Corners::With);
        let mut job = Job::new(&mapping, &expected).map_err(TestCaseError::fail)?;
        for dim in 0..widths.len() {
            let mut alone = vec![Widths::NONE; widths.len()];
            alone[dim] = widths[dim];
            let plans = plans(&mapping, &alone, Corners::Carried).map_err(TestCaseError::fail)?;
            job.reflect(&plans).map_err(TestCaseError::fail)?;
        }
        job.compare().map_err(TestCaseError::fail)
    });
}

/// Checks that every kind of random array is generated.
#[test]
fn random_arrays_are_of_every_kind() {
    let kinds = RefCell::new(BTreeMap::new());
    let of = |seed, cases, property: &dyn Fn(Array, Vec<Widths>)| {
        let config = Config { failure_persistence: None, cases, rng_seed: RngSeed::Fixed(seed), ..Config::default() };
        let result = TestRunner::new(config).run(&arrays(), |(array, widths)| {
            let (array, widths) = fitting(array, widths);
            property(array, widths);
            Ok(())
        });
        result.expect("nothing is checked");
    };
    of(1, 1500, &|array, widths| {
        let mut kinds = kinds.borrow_mut();
        let mut note = |kind: &'static str, is: bool| *kinds.entry(kind).or_insert(0) += u32::from(is);
        let lines = array.lines();
        let used = |dim: usize| {
            let Shadow::Width { lo, hi } = lines[dim].shadow else { return 0 };
            lo.min(widths[dim].lo).max(hi.min(widths[dim].hi))
        };
        let dims = || 0..lines.len();
        let len = |dim: usize| lines[dim].bounds.clone().count();
        let least = |dim: usize| lines[dim].owned.iter().map(Vec::len).min().unwrap_or(0);
        let with: Vec<_> = array.dims.iter().map(|dim| dim.align).collect();
        let is_full = |dim: usize| lines[dim].shadow == Shadow::Full && widths[dim].lo == ALL;
        note("no elements", dims().any(|dim| len(dim) == 0));
        note("an empty block beside a shadow", dims().any(|dim| used(dim) > 0 && len(dim) > 0 && least(dim) == 0));
        note("a shadow wider than blocks", dims().any(|dim| used(dim) > least(dim) && least(dim) > 0));
        note("several times round", dims().any(|dim| used(dim) > 2 * len(dim) && len(dim) > 1 && widths[dim].periodic));
        note("one node round", dims().any(|dim| used(dim) > 0 && lines[dim].owned.len() == 1 && widths[dim].periodic));
        note("two nodes round", dims().any(|dim| used(dim) > 0 && lines[dim].owned.len() == 2 && widths[dim].periodic));
        note("chunks with a full shadow", dims().any(|dim| is_full(dim) && !lines[dim].is_contiguous()));
        note("blocks with a full shadow", dims().any(|dim| is_full(dim) && lines[dim].is_contiguous()));
        note("a full shadow and layers", dims().any(is_full) && dims().any(|dim| used(dim) > 0));
        note(
            "chunks beside a shadow",
            dims().any(|dim| !lines[dim].is_contiguous()) && dims().any(|dim| used(dim) > 0),
        );
        let round = |dim: usize| !lines[dim].first.is_sorted() && used(dim) > 0;
        note("blocks that do not begin at the first node", dims().any(round));
        note("replicated", array.nodes.len() > lines.iter().filter(|line| line.along.is_some()).count());
        note("collapsed with a shadow", dims().any(|dim| with[dim] == Align::Collapsed && used(dim) > 0));
        let names: Vec<_> = lines.iter().filter_map(|line| line.along).collect();
        note("transposed", !names.is_sorted());
        let borders: Vec<_> = dims().filter(|dim| used(*dim) > 0).map(|dim| widths[dim].periodic).collect();
        note("periodic in some dimensions only", borders.contains(&true) && borders.contains(&false));
        note("four dimensions", lines.len() == 4);
    });
    let kinds = kinds.into_inner();
    println!("{kinds:#?}");
    assert!(kinds.values().all(|arrays| *arrays >= 10), "{kinds:#?}");
}
