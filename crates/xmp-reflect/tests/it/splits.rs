//! A node's own cells, divided for computing while an exchange is in progress.

use crate::{
    expected::{Expected, at},
    random::for_all,
    simulated::all,
};
use proptest::prelude::*;
use xmp_reflect::{Corners, Shadow, Split, plan::ALL};

#[test]
fn each_own_cell_is_in_one_section_and_inner_if_no_stencil_around_it_reads_the_shadow() {
    for_all(600, |array, widths| {
        let mapping = array.mapping().expect("fitting");
        let expected = Expected::new(&array, &widths, Corners::With);
        for node in 0..mapping.nodes().size() {
            let part = mapping.part(node).expect("a node");
            let split = Split::new(&mapping, node, &widths).expect("fitting");
            let sections = || split.inner.iter().chain(&split.boundary);
            prop_assert!(sections().all(|section| !section.is_empty()));
            for local in all(part.extents()).iter() {
                let count = |of: &[xmp_reflect::Section]| of.iter().filter(|of| of.contains(&local)).count();
                let own = expected.own(part.coordinates(), &local).is_some();
                prop_assert_eq!(count(&split.inner) + count(&split.boundary), usize::from(own));
                prop_assert_eq!(count(&part.owned_sections()), usize::from(own));
                let index = part.index(&local).expect("a cell of the node");
                let is_beyond = (0..mapping.dims()).any(|dim| !mapping.bounds(dim).contains(&index[dim]));
                prop_assert_eq!(count(&part.boundary_sections()), usize::from(is_beyond));
                let reads_own = |dim: usize| {
                    let line = &expected.lines[dim];
                    let near = |by: i64| {
                        let there = usize::try_from(local[dim] as i64 + by).expect("within the widths");
                        line.own(at(line, part.coordinates()), there).is_some()
                    };
                    match line.shadow {
                        Shadow::Full => widths[dim].lo != ALL,
                        Shadow::Width { lo, hi } => {
                            let (lo, hi) = (widths[dim].lo.min(lo) as i64, widths[dim].hi.min(hi) as i64);
                            (-lo..=hi).all(near)
                        }
                    }
                };
                if own {
                    prop_assert_eq!(count(&split.inner) == 1, (0..mapping.dims()).all(reads_own));
                }
            }
        }
        Ok(())
    });
}
