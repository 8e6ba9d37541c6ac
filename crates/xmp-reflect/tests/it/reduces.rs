//! `reduce_shadow` of random arrays: the copies of every element are added to it, and shadows do
//! not change.

use crate::{
    arrays::Array,
    expected::{Expected, UNTOUCHED},
    random::for_all,
    reflects::nodes,
};
use checks::jobs::{threads, virtual_time};
use proptest::test_runner::TestCaseError;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::collections::HashMap;
use tofu2_virt::Platform;
use xmp_reflect::{Array as Distributed, Corners, Mapping, NodeSet, Reflect, Transport, Widths};

/// The number of copies of each element in shadows that the reflect fills, by the value of the
/// element.
fn copies(mapping: &Mapping, expected: &Expected) -> HashMap<i64, i64> {
    let mut copies = HashMap::new();
    for node in 0..mapping.nodes().size() {
        let part = mapping.part(node).expect("a node");
        let all = xmp_reflect::Section { starts: vec![0; part.extents().len()], extents: part.extents().to_vec() };
        for cell in all.iter() {
            if let Some(value) = expected.filled(part.coordinates(), &cell) {
                *copies.entry(value).or_insert(0) += 1;
            }
        }
    }
    copies
}

async fn program(
    fabric: Fabric,
    array: &Array,
    widths: &[Widths],
    corners: Corners,
    transport: Transport,
) -> ProgramResult<()> {
    let (mapping, expected) = (array.mapping()?, Expected::new(array, widths, corners));
    let copies = copies(&mapping, &expected);
    let group = Group::world(&fabric).await?;
    let mut set = NodeSet::new(group, mapping.nodes().clone())?.with_transport(transport);
    let field: Distributed<i64> = set.array(&mapping)?;
    let reflect = Reflect::widths(widths).corners(corners);
    let me = field.part().coordinates().to_vec();
    // Each cell of a shadow that is filled holds 1, so that an element counts its copies.
    let before = |cell: &[usize]| match (expected.own(&me, cell), expected.filled(&me, cell)) {
        (Some(_), _) => 0,
        (_, Some(_)) => 1,
        _ => UNTOUCHED,
    };
    if field.part().cells() > 0 {
        let mut view = field.view_mut()?;
        field.cells().iter().for_each(|cell| view[field.offset(&cell)] = before(&cell));
    }
    // The third round has another function, for the same schedule. `sum` copies are added until then.
    for (round, sum) in [(1, 1), (2, 2), (3, 4)] {
        if round == 2 {
            set.reduce_shadow_async(&field, &reflect, |old, copy| old + copy, 1).await?;
            set.wait_async(&[1]).await?;
        } else {
            let add = if round == 1 { |old, copy| old + copy } else { |old, copy| old + 2 * copy };
            set.reduce_shadow(&field, &reflect, add).await?;
        }
        if field.part().cells() > 0 {
            let view = field.view()?;
            for cell in field.cells().iter() {
                let own = expected.own(&me, &cell);
                let wanted = own.map_or(before(&cell), |value| sum * copies.get(&value).copied().unwrap_or(0));
                assert_eq!(view[field.offset(&cell)], wanted, "round {round}, node {me:?}, cell {cell:?}");
            }
        }
    }
    set.barrier().await?;
    Ok(())
}

#[test]
fn each_element_gets_its_copies() {
    for_all(100, |array, widths| {
        let transports = [Transport::Blocks, Transport::Packed, Transport::Fast, Transport::Mrc];
        for (at, transport) in transports.into_iter().enumerate() {
            let corners = [Corners::With, Corners::Orthogonal][at / 2];
            let run = async |fabric: Fabric| program(fabric, &array, &widths, corners, transport).await;
            let fail = |error: String| TestCaseError::fail(format!("{transport} {corners:?}: {error}"));
            if at % 2 == 0 && nodes(&array) <= 4 {
                threads(nodes(&array)).run(&run).map_err(|error| fail(error.to_string()))?;
            } else {
                let job = virtual_time(&Platform::fx100(), nodes(&array)).shuffle_ties(true);
                job.run(&run).map_err(|error| fail(error.to_string()))?;
            }
        }
        Ok(())
    });
}
