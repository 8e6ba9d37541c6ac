//! The rules of nodes, templates, alignments and shadows, one by one.

#![expect(clippy::single_range_in_vec_init, reason = "these are the bounds of one dimension")]

use super::*;
use core::ops::Range;

/// A distribution of one dimension over this many nodes, and an array of the same length.
fn line(bounds: Range<i64>, format: Format, nodes: usize) -> Result<Mapping, MappingError> {
    let nodes = Nodes::new(&[nodes], Order::LastFastest)?;
    let bounds = [bounds];
    Template::new(&bounds, &[format], &nodes)?.align(&bounds, &[Align::with(0)])
}

/// The indices that each node owns.
fn owned(mapping: &Mapping) -> Vec<Vec<Range<i64>>> {
    (0..mapping.nodes().size()).map(|node| mapping.part(node).expect("a node").runs(0)).collect()
}

fn lengths(mapping: &Mapping) -> Vec<usize> {
    (0..mapping.nodes().size()).map(|node| mapping.part(node).expect("a node").owned(0)).collect()
}

#[test]
fn nodes_are_numbered_in_both_orders() {
    for (order, numbers) in [(Order::FirstFastest, [0, 2, 4, 1, 3, 5]), (Order::LastFastest, [0, 1, 2, 3, 4, 5])] {
        let nodes = Nodes::new(&[2, 3], order).expect("six nodes");
        let coordinates = (0..2).flat_map(|first| (0..3).map(move |second| [first, second]));
        for (at, number) in coordinates.zip(numbers) {
            assert_eq!(nodes.number(&at), Ok(number));
            assert_eq!(nodes.coordinates(number), Ok(at.to_vec()));
        }
    }
}

#[test]
fn impossible_node_sets_are_refused() {
    let new = |extents: &[usize]| Nodes::new(extents, Order::FirstFastest).expect_err("impossible");
    assert_eq!(new(&[]), MappingError::Dimensions { of: "a node set", given: 0 });
    assert_eq!(new(&[1; 8]), MappingError::Dimensions { of: "a node set", given: 8 });
    assert_eq!(new(&[3, 0]), MappingError::NoNodes { dim: 1 });
    let many = [usize::MAX, 2];
    assert_eq!(new(&many), MappingError::TooManyNodes { extents: many.to_vec() });
    let nodes = Nodes::new(&[1, 1, 1, 1, 1, 2, 3], Order::LastFastest).expect("seven dimensions");
    assert_eq!(nodes.coordinates(6), Err(MappingError::NoSuchNode { node: 6, size: 6 }));
    for wrong in [vec![0; 6], vec![0, 0, 0, 0, 0, 2, 0]] {
        let error = MappingError::NoSuchCoordinates { coordinates: wrong.clone(), extents: nodes.extents().to_vec() };
        assert_eq!(nodes.number(&wrong), Err(error));
    }
}

#[test]
fn blocks_are_as_short_as_possible_or_as_long_as_said() {
    let lengths = |len, format, nodes| lengths(&line(0..len, format, nodes).expect("covered"));
    assert_eq!(lengths(5, Format::BlockOf(2), 4), [2, 2, 1, 0]);
    assert_eq!(lengths(5, Format::Block, 4), [2, 2, 1, 0]);
    assert_eq!(lengths(64, Format::Block, 5), [13, 13, 13, 13, 12]);
    assert_eq!(lengths(5, Format::BlockOf(usize::MAX), 4), [5, 0, 0, 0]);
    assert_eq!(lengths(0, Format::Block, 3), [0, 0, 0]);
    assert_eq!(lengths(3, Format::Gblock(vec![0, 3, 0]), 3), [0, 3, 0]);
}

#[test]
fn chunks_are_dealt_in_turn() {
    let cyclic = line(1..65, Format::CyclicOf(8), 4).expect("a mapping");
    assert_eq!(owned(&cyclic), [[1..9, 33..41], [9..17, 41..49], [17..25, 49..57], [25..33, 57..65]]);
    assert!(!cyclic.is_contiguous(0));
    let cyclic = line(-1..4, Format::Cyclic, 2).expect("a mapping");
    assert_eq!(owned(&cyclic), [vec![-1..0, 1..2, 3..4], vec![0..1, 2..3]]);
    let part = cyclic.part(0).expect("a node");
    assert_eq!([part.local(&[1]), part.local(&[0]), part.local(&[5])], [Some(vec![1]), None, None]);
    assert_eq!([part.index(&[2]), part.index(&[3])], [Some(vec![3]), None]);
    // One node has all chunks, and so one piece.
    assert_eq!(owned(&line(0..9, Format::Cyclic, 1).expect("a mapping")), [[0..9]]);
}

#[test]
fn only_distributed_dimensions_take_nodes() {
    let nodes = Nodes::new(&[8, 5], Order::FirstFastest).expect("nodes");
    let formats = [Format::None, Format::Cyclic, Format::Block];
    let template = Template::new(&[1..65, 1..65, 1..65], &formats, &nodes).expect("a template");
    let aligns = [Align::with(0), Align::with(1), Align::with(2)];
    let mapping = template.align(&template.bounds(), &aligns).expect("a mapping");
    assert_eq!([mapping.along(0), mapping.along(1), mapping.along(2)], [None, Some(0), Some(1)]);
    let last = mapping.part(nodes.number(&[7, 4]).expect("a node")).expect("a node");
    assert_eq!((last.block(0), last.runs(1)[1].clone(), last.block(2)), (Some(1..65), 16..17, Some(53..65)));
}

#[test]
fn impossible_distributions_are_refused() {
    let error = |bounds: Range<i64>, format, nodes| line(bounds, format, nodes).expect_err("impossible");
    assert_eq!(
        error(0..9, Format::BlockOf(2), 4),
        MappingError::TooFewBlocks { dim: 0, block: 2, nodes: 4, extent: 9 }
    );
    assert_eq!(error(0..9, Format::BlockOf(0), 4), MappingError::EmptyBlocks { dim: 0 });
    assert_eq!(error(0..9, Format::CyclicOf(0), 4), MappingError::EmptyBlocks { dim: 0 });
    assert_eq!(error(0..9, Format::Gblock(vec![4, 5]), 3), MappingError::GblockLength { dim: 0, given: 2, nodes: 3 });
    assert_eq!(error(0..9, Format::Gblock(vec![4, 4]), 2), MappingError::GblockSum { dim: 0, sum: 8, extent: 9 });
    let most = Format::Gblock(vec![usize::MAX, 10]);
    assert_eq!(error(0..9, most, 2), MappingError::GblockSum { dim: 0, sum: usize::MAX as u128 + 10, extent: 9 });
    assert_eq!(error(0..9, Format::None, 2), MappingError::NodeDimensions { distributed: 0, dims: 1 });
    let bounds = Range { start: 2, end: 1 };
    let reversed = MappingError::Reversed { of: "template", dim: 0, bounds: bounds.clone() };
    assert_eq!(error(bounds, Format::Block, 2), reversed);
    let bounds = i64::MIN..0;
    let long = MappingError::TooLong { of: "template", dim: 0, bounds: bounds.clone() };
    assert_eq!(error(bounds, Format::Block, 2), long);

    let nodes = Nodes::new(&[2], Order::LastFastest).expect("nodes");
    let new =
        |bounds: &[Range<i64>], formats: &[Format]| Template::new(bounds, formats, &nodes).expect_err("impossible");
    assert_eq!(new(&[0..4, 0..4], &[Format::Block]), MappingError::Formats { given: 1, dims: 2 });
    let both = [Format::Block, Format::Block];
    assert_eq!(new(&[0..4, 0..4], &both), MappingError::NodeDimensions { distributed: 2, dims: 1 });
    assert_eq!(new(&[], &[]), MappingError::Dimensions { of: "a template", given: 0 });
}

/// A template of 10 × 10 indices from 1, in blocks over 2 × 3 nodes.
fn square() -> Template {
    let nodes = Nodes::new(&[2, 3], Order::LastFastest).expect("nodes");
    Template::new(&[1..11, 1..11], &[Format::Block, Format::Block], &nodes).expect("a template")
}

#[test]
fn elements_live_where_the_template_says() {
    let mapping = square().align(&[0..8, 3..7], &[Align::shifted(1, 2), Align::Collapsed]).expect("a mapping");
    assert_eq!(mapping.replicated(), [0]);
    // Template indices 2 to 9, in blocks of 4: 1 to 4, 5 to 8, 9 and 10.
    let blocks: Vec<_> = (0..6).map(|node| mapping.part(node).expect("a node").block(0)).collect();
    assert_eq!(blocks, [Some(0..3), Some(3..7), Some(7..8), Some(0..3), Some(3..7), Some(7..8)]);
    assert_eq!(mapping.owners(&[7, 3]), [2, 5]);
    assert_eq!(mapping.owner_near(4, &[7, 3]), Ok(Some(5)));
    assert_eq!((mapping.owner_near(4, &[8, 3]), mapping.owners(&[7, 7])), (Ok(None), vec![]));
    assert_eq!(mapping.owner_near(6, &[0, 3]), Err(MappingError::NoSuchNode { node: 6, size: 6 }));
}

#[test]
fn dimensions_can_be_transposed() {
    let mapping = square().align(&[1..11, 1..11], &[Align::with(1), Align::with(0)]).expect("a mapping");
    let part = mapping.part(5).expect("a node");
    assert_eq!((part.block(0), part.block(1)), (Some(9..11), Some(6..11)));
}

#[test]
fn impossible_alignments_are_refused() {
    let align = |bounds: &[Range<i64>], aligns: &[Align]| square().align(bounds, aligns).expect_err("impossible");
    assert_eq!(align(&[1..2], &[]), MappingError::Aligns { given: 0, dims: 1 });
    assert_eq!(align(&[], &[]), MappingError::Dimensions { of: "an array", given: 0 });
    assert_eq!(align(&[1..2], &[Align::with(2)]), MappingError::NoSuchTemplateDim { dim: 0, with: 2, dims: 2 });
    let twice = [Align::with(1), Align::Collapsed, Align::shifted(1, 1)];
    assert_eq!(align(&[1..2, 1..2, 1..2], &twice), MappingError::AlignedTwice { with: 1, first: 0, second: 2 });
    for (bounds, offset) in [(0..10, 0), (1..12, 0), (1..11, -1), (i64::MAX - 1..i64::MAX, 1)] {
        let outside =
            MappingError::OutsideTemplate { dim: 0, bounds: bounds.clone(), offset, with: 0, template: 1..11 };
        assert_eq!(align(&[bounds], &[Align::shifted(0, offset)]), outside);
    }
    let bounds = Range { start: 3, end: 1 };
    let reversed = MappingError::Reversed { of: "array", dim: 0, bounds: bounds.clone() };
    assert_eq!(align(&[bounds], &[Align::Collapsed]), reversed);
    // An array without elements is never outside.
    square().align(&[50..50], &[Align::with(0)]).expect("a mapping");
}

#[test]
fn indices_may_be_at_the_ends_of_their_range() {
    let end = line(i64::MAX - 9..i64::MAX, Format::BlockOf(usize::MAX), 2).expect("a mapping");
    assert_eq!(owned(&end), [vec![i64::MAX - 9..i64::MAX], vec![]]);
    let start = line(i64::MIN..i64::MIN + 9, Format::CyclicOf(2), 3).expect("a mapping");
    assert_eq!(lengths(&start), [4, 3, 2]);
    let nodes = Nodes::new(&[2], Order::LastFastest).expect("nodes");
    let template = Template::new(&[i64::MIN..i64::MIN + 9], &[Format::Block], &nodes).expect("a template");
    let first = i64::MIN + 1;
    let offset = template.align(&[first - 1..first], &[Align::shifted(0, 1)]).expect_err("beyond the range");
    assert_eq!(offset, MappingError::Offset { dim: 0, offset: 1 });
}

#[test]
fn a_shadow_surrounds_the_owned_cells() {
    let mapping = line(0..5, Format::BlockOf(2), 4).expect("a mapping");
    let mapping = mapping.shadow(&[Shadow::Width { lo: 1, hi: 3 }]).expect("a shadow");
    let extents: Vec<_> = (0..4).map(|node| mapping.part(node).expect("a node").extents()[0]).collect();
    assert_eq!((extents, mapping.largest_extent(0)), (vec![6, 6, 5, 4], 6));
    let first = mapping.part(0).expect("a node");
    assert_eq!(
        (first.local(&[-1]), first.local(&[0]), first.local(&[4])),
        (Some(vec![0]), Some(vec![1]), Some(vec![5]))
    );
    assert_eq!((first.index(&[0]), first.index(&[6])), (Some(vec![-1]), None));
    // The empty block of the last node lies at the upper bound.
    assert_eq!(mapping.part(3).expect("a node").local(&[4]), Some(vec![0]));
}

#[test]
fn a_full_shadow_is_the_whole_dimension() {
    let mapping = line(1..6, Format::Cyclic, 2).expect("a mapping").shadow(&[Shadow::Full]).expect("a shadow");
    let part = mapping.part(1).expect("a node");
    assert_eq!((part.extents(), part.owned(0), part.local(&[5])), (&[5][..], 2, Some(vec![4])));
    assert_eq!(part.owned_sections().iter().map(|section| section.starts[0]).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn layers_need_blocks() {
    let shadow = |format, layers| line(0..8, format, 4).expect("a mapping").shadow(&[layers]);
    for format in [Format::Block, Format::BlockOf(3), Format::Gblock(vec![8, 0, 0, 0]), Format::CyclicOf(2)] {
        shadow(format, Shadow::of(1)).expect("one piece for each node");
    }
    for layers in [Shadow::NONE, Shadow::Full] {
        shadow(Format::Cyclic, layers).expect("no layers");
    }
    let refused = MappingError::ShadowOfChunks { dim: 0, lo: 0, hi: 1 };
    assert_eq!(shadow(Format::Cyclic, Shadow::Width { lo: 0, hi: 1 }), Err(refused));
    let several = line(0..8, Format::Block, 4).expect("a mapping").shadow(&[]);
    assert_eq!(several, Err(MappingError::Shadows { given: 0, dims: 1 }));
    for most in [usize::MAX, isize::MAX as usize - 1] {
        let refused = shadow(Format::Block, Shadow::of(most));
        assert!(matches!(refused, Err(MappingError::TooManyCells { .. })), "{refused:?}");
    }
}

#[test]
fn cells_that_cannot_be_counted_are_many() {
    let cells = |extents: &[usize]| Section { starts: vec![0; extents.len()], extents: extents.to_vec() }.cells();
    assert_eq!(
        (cells(&[usize::MAX, 2]), cells(&[1 << 40, 1 << 40]), cells(&[usize::MAX, 2, 0])),
        (usize::MAX, usize::MAX, 0)
    );
    assert_eq!((cells(&[3, 4]), cells(&[])), (12, 1));
}

#[test]
fn memory_is_in_either_order() {
    let mapping = square().align(&[1..11, 1..11], &[Align::with(0), Align::with(1)]).expect("a mapping");
    let mapping = mapping.shadow(&[Shadow::of(1), Shadow::Width { lo: 0, hi: 2 }]).expect("a shadow");
    assert_eq!(mapping.part(5).expect("a node").strides(), [4, 1]);
    assert_eq!(mapping.stored(Order::FirstFastest).part(5).expect("a node").strides(), [1, 7]);
}

#[test]
fn each_cell_is_visited_in_the_order_of_the_list() {
    for extents in [vec![], vec![3], vec![2, 3], vec![2, 1, 4], vec![2, 0, 4]] {
        let section = Section { starts: (5..).take(extents.len()).collect(), extents };
        let mut visited = Vec::new();
        section.each(|cell| visited.push(cell.to_vec()));
        assert_eq!(visited, section.iter().collect::<Vec<_>>(), "{section}");
    }
}

/// Fewer chunks than nodes, so far from the template's start that the number of the chunk after the
/// last node's overflows.
#[test]
fn arrays_may_be_aligned_with_the_end_of_the_longest_template() {
    let nodes = Nodes::new(&[8], Order::LastFastest).expect("nodes");
    for (format, blocks) in [(Format::Cyclic, 6), (Format::CyclicOf(2), 4)] {
        let template = Template::new(&[0..i64::MAX], &[format], &nodes).expect("a template");
        let mapping = template.align(&[0..6], &[Align::shifted(0, i64::MAX - 6)]).expect("a mapping");
        let owned = owned(&mapping);
        assert_eq!(owned.iter().filter(|runs| !runs.is_empty()).count(), blocks, "{owned:?}");
        for index in 0..6 {
            let owner = mapping.owners(&[index])[0];
            assert_eq!(owned.iter().position(|runs| runs.iter().any(|run| run.contains(&index))), Some(owner));
        }
        let shadowed = mapping.shadow(&[Shadow::of(1)]).expect("each node has one piece");
        assert!((0..8).all(|node| shadowed.part(node).expect("a node").cells() == owned_by(&shadowed, node) + 2));
    }
}

fn owned_by(mapping: &Mapping, node: usize) -> usize {
    mapping.part(node).expect("a node").owned(0)
}

/// Cells of a shadow beyond the last index that there is.
#[test]
fn cells_without_an_index_are_not_visited() {
    for (bounds, node, shadow, expected) in [
        (i64::MAX - 3..i64::MAX, 1, Shadow::Width { lo: 0, hi: 3 }, (vec![1], vec![i64::MAX])),
        (i64::MIN + 1..i64::MIN + 4, 0, Shadow::Width { lo: 3, hi: 0 }, (vec![2], vec![i64::MIN])),
    ] {
        let mapping = line(bounds, Format::Block, 2).expect("a mapping").shadow(&[shadow]).expect("a shadow");
        let part = mapping.part(node).expect("a node");
        let mut visited = Vec::new();
        for section in part.boundary_sections() {
            part.each(&section, |cell, index| visited.push((cell.to_vec(), index.to_vec())));
        }
        assert_eq!(visited, [expected]);
    }
}

/// Sections are plain data, so any numbers may be in them.
#[test]
fn cells_that_no_memory_has_are_not_listed() {
    for (start, extent, cells) in [
        (usize::MAX, 1, vec![usize::MAX]),
        (usize::MAX, usize::MAX, vec![usize::MAX]),
        (usize::MAX - 1, 5, vec![usize::MAX - 1, usize::MAX]),
    ] {
        let section = Section { starts: vec![7, start], extents: vec![2, extent] };
        let expected: Vec<_> = [7, 8].into_iter().flat_map(|row| cells.iter().map(move |at| vec![row, *at])).collect();
        assert_eq!(section.iter().collect::<Vec<_>>(), expected, "{section}");
        let mut visited = Vec::new();
        section.each(|cell| visited.push(cell.to_vec()));
        assert_eq!(visited, expected, "{section}");
        assert!(section.contains(&[8, usize::MAX]) && !section.contains(&[8, start - 1]));
    }
}
