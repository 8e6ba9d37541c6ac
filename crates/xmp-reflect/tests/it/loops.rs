//! Loops: the iterations of each node, and their execution while shadows are being updated.

use crate::{expected::Expected, random::for_all, reflects::nodes, simulated::all};
use checks::jobs::{threads, virtual_time};
use proptest::prelude::*;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::collections::BTreeSet;
use tofu2_virt::Platform;
use xmp_reflect::{
    Align, Array, Corners, Format, Indices, Mapping, MappingError, NodeSet, Nodes, Order, Reflect, Shadow, Split,
    Template, Widths, XmpError,
};

/// The indices of a loop nest, as vectors; `None` for another number of loops.
macro_rules! with_loops {
    ($dims:expr, $N:ident => $body:expr) => {
        match $dims {
            1 => {
                const $N: usize = 1;
                $body
            }
            2 => {
                const $N: usize = 2;
                $body
            }
            3 => {
                const $N: usize = 3;
                $body
            }
            4 => {
                const $N: usize = 4;
                $body
            }
            dims => panic!("{dims} dimensions"),
        }
    };
}

fn vectors<const N: usize>(indices: &Indices<N>) -> Vec<Vec<i64>> {
    let all: Vec<Vec<i64>> = indices.iter().map(|index| index.to_vec()).collect();
    assert_eq!((all.len(), all.is_empty()), (indices.len(), indices.is_empty()));
    all
}

#[test]
fn each_element_is_in_one_iteration_of_its_owner() {
    for_all(300, |array, widths| {
        let mapping = array.mapping().expect("fitting");
        let expected = Expected::new(&array, &widths, Corners::With);
        for node in 0..mapping.nodes().size() {
            let part = mapping.part(node).expect("a node");
            let split = Split::new(&mapping, node, &widths).expect("fitting");
            let own = |of: &[xmp_reflect::Section]| -> BTreeSet<Vec<i64>> {
                let cells = all(part.extents());
                let cells = cells.iter().filter(|cell| of.iter().any(|section| section.contains(cell)));
                cells.filter_map(|cell| expected.own_index(part.coordinates(), &cell)).collect()
            };
            let (owned, peeled) = with_loops!(mapping.dims(), N => {
                let peeled = split.indices::<N>(&part).expect("as many loops");
                (vectors(&part.indices::<N>().expect("as many loops")), [vectors(&peeled.inner), vectors(&peeled.border)])
            });
            prop_assert!(part.indices::<5>().is_err());
            let set: BTreeSet<Vec<i64>> = owned.iter().cloned().collect();
            prop_assert_eq!(set.len(), owned.len(), "no element twice");
            prop_assert_eq!(&set, &own(&part.owned_sections()));
            for (peeled, of) in peeled.iter().zip([&split.inner, &split.boundary]) {
                let set: BTreeSet<Vec<i64>> = peeled.iter().cloned().collect();
                prop_assert_eq!(set.len(), peeled.len());
                prop_assert_eq!(set, own(of));
            }
        }
        Ok(())
    });
}

#[test]
fn loops_on_a_template_are_those_of_an_array_like_it() {
    let nodes = Nodes::new(&[2, 3], Order::FirstFastest).expect("nodes");
    let bounds = [-2..11, 0..7, 1..9];
    let formats = [Format::Cyclic, Format::None, Format::Gblock(vec![3, 0, 5])];
    let template = Template::new(&bounds, &formats, &nodes).expect("a template");
    let same = template.align(&bounds, &[Align::with(0), Align::with(1), Align::with(2)]).expect("a mapping");
    let mut taken = 0;
    for node in 0..nodes.size() {
        let on = template.indices::<3>(node).expect("a node");
        assert_eq!(on, same.part(node).expect("a node").indices().expect("three loops"));
        assert!(on.iter().is_sorted(), "the last loop is innermost");
        let within = on.clone().within([0..5, 2..3, -9..99]);
        let wanted: Vec<[i64; 3]> = on.iter().filter(|at| (0..5).contains(&at[0]) && at[1] == 2).collect();
        assert_eq!(within.iter().collect::<Vec<_>>(), wanted);
        taken += on.len();
    }
    assert_eq!(taken, 13 * 7 * 8);
    assert_eq!(template.indices::<2>(0), Err(MappingError::Loops { loops: 2, dims: 3 }));
    assert_eq!(template.indices::<3>(6), Err(MappingError::NoSuchNode { node: 6, size: 6 }));
}

/// A nest that follows an array's order in memory.
#[test]
fn the_fastest_dimension_in_memory_is_innermost() {
    let nodes = Nodes::new(&[1], Order::FirstFastest).expect("nodes");
    let template = Template::new(&[0..2, 0..2], &[Format::Block, Format::None], &nodes).expect("a template");
    let mapping = template.align(&[0..2, 0..2], &[Align::with(0), Align::with(1)]).expect("a mapping");
    let order = |mapping: Mapping| -> Vec<[i64; 2]> {
        mapping.part(0).expect("a node").indices().expect("two loops").iter().collect()
    };
    assert_eq!(order(mapping.clone()), [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(order(mapping.stored(Order::FirstFastest)), [[0, 0], [1, 0], [0, 1], [1, 1]]);
}

/// Sums the neighbours of each element in steps, in a nest that is peeled, and compares with one
/// loop over all elements.
async fn steps(fabric: Fabric, extents: [usize; 2], formats: [Format; 2]) -> ProgramResult<()> {
    const CELLS: [i64; 2] = [9, 10];
    let group = Group::world(&fabric).await?;
    let nodes = Nodes::new(&extents, Order::LastFastest)?;
    let bounds = CELLS.map(|cells| 0..cells);
    let template = Template::new(&bounds, &formats, &nodes)?;
    let mapping = template.align(&bounds, &[Align::with(0), Align::with(1)])?;
    let mapping = mapping.shadow(&[Shadow::of(1), Shadow::Width { lo: 2, hi: 1 }])?;
    let mut set = NodeSet::new(group, nodes)?;
    let (mut old, mut new): (Array<i64>, Array<i64>) = (set.array(&mapping)?, set.array(&mapping)?);
    old.fill(|index| 7 * index[0] + index[1] * index[1])?;
    let widths = [Widths::of(1).periodic(), Widths { lo: 2, hi: 1, periodic: true }];
    let mut serial: Vec<i64> =
        (0..CELLS[0] * CELLS[1]).map(|at| 7 * (at / CELLS[1]) + (at % CELLS[1]).pow(2)).collect();
    for _ in 0..3 {
        set.reflect_async(&old, &Reflect::widths(&widths), 4).await?;
        let peeled = old.peel(&widths)?.within([0..8, 0..CELLS[1]]);
        let mut calls = 0;
        set.peel_and_wait(&[4], &peeled, |indices| {
            calls += 1;
            let (from, mut to) = (old.around(indices, &widths)?, new.at_mut(indices)?);
            for [i, j] in indices {
                to[[i, j]] = from[[i - 1, j + 1]] + 2 * from[[i + 1, j - 2]] - from[[i, j]];
                assert_eq!(to[[i, j]], *to.cell(&to.array().part().local(&[i, j]).expect("a cell")));
            }
            Ok(())
        })
        .await?;
        assert_eq!(calls, 2);
        let at = |i: i64, j: i64| serial[(i.rem_euclid(CELLS[0]) * CELLS[1] + j.rem_euclid(CELLS[1])) as usize];
        // The last row is not computed: it keeps what the array had.
        let next = (0..CELLS[0] * CELLS[1]).map(|cell| {
            let (i, j) = (cell / CELLS[1], cell % CELLS[1]);
            if i == 8 { at(i, j) } else { at(i - 1, j + 1) + 2 * at(i + 1, j - 2) - at(i, j) }
        });
        let next: Vec<i64> = next.collect();
        {
            let last = old.part().indices::<2>()?.within([8..9, 0..CELLS[1]]);
            let (from, mut to) = (old.around(&last, &[Widths::NONE; 2])?, new.at_mut(&last)?);
            for index in &last {
                to[index] = from[index];
            }
        }
        serial = next;
        for (index, value) in new.owned()? {
            assert_eq!(value, serial[(index[0] * CELLS[1] + index[1]) as usize], "{index:?}");
        }
        std::mem::swap(&mut old, &mut new);
    }
    let elsewhere = template.indices::<2>((set.me() + 1) % set.nodes().size())?;
    if set.nodes().size() > 1 {
        assert!(matches!(old.at_mut(&elsewhere), Err(XmpError::NotHere { .. })));
    }
    let one = Widths::of(1);
    assert!(matches!(old.around(&elsewhere, &[one]), Err(XmpError::Plan(_))));
    set.barrier().await?;
    Ok(())
}

#[test]
fn a_peeled_nest_computes_what_one_loop_does() {
    let gblock = || Format::Gblock(vec![2, 5, 2]);
    for (extents, formats) in [
        ([1, 1], [Format::Block, Format::Block]),
        ([2, 2], [Format::Block, Format::Block]),
        ([3, 1], [gblock(), Format::Block]),
        ([1, 2], [Format::Block, Format::BlockOf(7)]),
    ] {
        let run = async |fabric: Fabric| steps(fabric, extents, formats.clone()).await;
        threads(extents.iter().product()).run(&run).expect("threads");
        let job = virtual_time(&Platform::fx100(), extents.iter().product()).shuffle_ties(true);
        job.run(&run).expect("virtual time");
    }
}

/// The border must wait: with the iterations of the border first, values are old.
#[test]
fn a_nest_that_does_not_wait_is_found() {
    let run = |swapped: bool| {
        let program = async |fabric: Fabric| -> ProgramResult<bool> {
            let group = Group::world(&fabric).await?;
            let nodes = Nodes::new(&[2], Order::LastFastest)?;
            let template = Template::new(&(0..8), &[Format::Block], &nodes)?;
            let mapping = template.align(&(0..8), &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
            let mut set = NodeSet::new(group, nodes)?;
            let array: Array<i64> = set.array(&mapping)?;
            array.fill(|index| index[0])?;
            let widths = [Widths::of(1).periodic()];
            set.reflect_async(&array, &Reflect::widths(&widths), 1).await?;
            let mut peeled = array.peel::<1>(&widths)?;
            if swapped {
                std::mem::swap(&mut peeled.inner, &mut peeled.border);
            }
            let done = set.peel_and_wait(&[1], &peeled, |indices| array.around(indices, &widths).map(drop)).await;
            set.wait_async(&[1]).await?;
            set.barrier().await?;
            Ok(done.is_ok())
        };
        let simulated = virtual_time(&Platform::fx100(), 2).run(&program).expect("virtual time").outs;
        [threads(2).run(&program).expect("threads"), simulated].concat()
    };
    assert_eq!(run(false), [true; 4]);
    assert_eq!(run(true), [false; 4], "the shadow is in use");
}

#[test]
fn random_arrays_are_read_by_index() {
    for_all(40, |array, widths| {
        if nodes(&array) > 4 {
            return Ok(());
        }
        let (mapping, expected) = (array.mapping().expect("fitting"), Expected::new(&array, &widths, Corners::With));
        let run = async |fabric: Fabric| -> ProgramResult<()> {
            let set = NodeSet::new(Group::world(&fabric).await?, mapping.nodes().clone())?;
            let field: Array<i64> = set.array(&mapping)?;
            let me = field.part().coordinates().to_vec();
            with_loops!(mapping.dims(), N => {
                let indices = field.part().indices::<N>()?;
                {
                    let mut view = field.at_mut(&indices)?;
                    for index in &indices {
                        let cell = field.part().local(&index).expect("a cell");
                        view[index] = expected.own(&me, &cell).expect("own");
                    }
                }
                let view = field.around(&indices, &[Widths::WHOLE; N])?;
                for index in &indices {
                    assert_eq!(view[index], field.get(&index)?);
                    assert_eq!(Some(view[index]), expected.own(&me, &field.part().local(&index).expect("a cell")));
                }
            });
            Ok(())
        };
        threads(nodes(&array)).run(&run).map_err(|error| TestCaseError::fail(error.to_string()))?;
        Ok(())
    });
}
