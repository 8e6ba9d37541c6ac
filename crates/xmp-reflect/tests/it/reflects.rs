//! Reflects of real arrays, on threads and in virtual time: every cell is compared with the same
//! oracle.

use crate::{
    arrays::Array,
    expected::{Expected, UNTOUCHED},
    random::for_all,
};
use checks::jobs::{threads, virtual_time};
use proptest::test_runner::TestCaseError;
use rdma_fabric::{Fabric, Group, ProgramResult};
use tofu2_virt::Platform;
use xmp_reflect::{Array as Distributed, Corners, NodeSet, Packing, Reflect, Section, Transport, Widths};

/// Transports under test.
pub(crate) const TRANSPORTS: [Transport; 9] = [
    Transport::Auto,
    Transport::Blocks,
    Transport::Datatypes,
    Transport::Packed,
    Transport::Fast,
    Transport::Mrc,
    Transport::Barriers,
    Transport::Fence,
    Transport::Flush,
];

/// One reflect of a random array, with one of the available calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Reflect,
    Async,
    Schedule,
}

/// Fills an array, reflects it twice, the second time with other values, and compares all cells.
pub(crate) async fn program(
    fabric: Fabric,
    array: &Array,
    widths: &[Widths],
    corners: Corners,
    transport: Transport,
    call: Call,
    packing: Packing,
) -> ProgramResult<()> {
    let (mapping, expected) = (array.mapping()?, Expected::new(array, widths, corners));
    let group = Group::world(&fabric).await?;
    let mut set = NodeSet::new(group, mapping.nodes().clone())?.with_transport(transport).with_packing(packing);
    let field: Distributed<i64> = set.array(&mapping)?;
    let reflect = Reflect::widths(widths).corners(corners);
    let me = field.part().coordinates().to_vec();
    let mut schedule = match call {
        Call::Schedule => Some(xmp_reflect::Schedule::new(&mut set, &[&field], &reflect).await?),
        Call::Reflect | Call::Async => None,
    };
    for round in 1..=2 {
        if field.part().cells() > 0 {
            let mut view = field.view_mut()?;
            for cell in cells(&field).iter() {
                view[field.offset(&cell)] = expected.own(&me, &cell).map_or(UNTOUCHED, |value| value * round);
            }
        }
        // No node fills its cells while another still reflects the earlier values.
        match call {
            Call::Reflect => set.reflect(&field, &reflect).await?,
            Call::Async => {
                set.reflect_async(&field, &reflect, 7).await?;
                set.wait_async(&[3, 7, 9]).await?;
                assert!(set.test_async(7).await?, "nothing has the id any more");
            }
            Call::Schedule => {
                let schedule = schedule.as_mut().expect("made before");
                schedule.start().await?;
                while !schedule.test().await? {
                    fabric.sleep(core::time::Duration::from_micros(1)).await;
                }
            }
        }
        if field.part().cells() > 0 {
            let view = field.view()?;
            for cell in cells(&field).iter() {
                let owned = expected.own(&me, &cell).or_else(|| expected.filled(&me, &cell));
                let (found, wanted) = (view[field.offset(&cell)], owned.map_or(UNTOUCHED, |value| value * round));
                assert_eq!(found, wanted, "round {round}, node {me:?}, cell {cell:?}, {transport}, {call:?}");
            }
        }
    }
    set.barrier().await?;
    Ok(())
}

fn cells(field: &Distributed<i64>) -> Section {
    field.cells()
}

pub(crate) fn nodes(array: &Array) -> usize {
    array.nodes.iter().product()
}

fn checked<T, E: std::fmt::Display>(ran: Result<T, E>, how: &str) -> Result<(), TestCaseError> {
    ran.map(drop).map_err(|error| TestCaseError::fail(format!("{how}: {error}")))
}

#[test]
fn every_cell_holds_what_the_specification_says_in_virtual_time() {
    for_all(150, |array, widths| {
        for (at, transport) in TRANSPORTS.into_iter().enumerate() {
            let corners = [Corners::With, Corners::Orthogonal][at % 2];
            let call = [Call::Reflect, Call::Async, Call::Schedule][at % 3];
            let run = async |fabric: Fabric| {
                program(fabric, &array, &widths, corners, transport, call, Packing::serial()).await
            };
            let job = virtual_time(&Platform::fx100(), nodes(&array)).shuffle_ties(true);
            checked(job.run(&run), &format!("{transport} {corners:?} {call:?}"))?;
        }
        Ok(())
    });
}

#[test]
fn every_cell_holds_what_the_specification_says_on_threads() {
    for_all(100, |array, widths| {
        if nodes(&array) > 4 {
            return Ok(());
        }
        for (at, transport) in TRANSPORTS.into_iter().enumerate() {
            let corners = [Corners::Orthogonal, Corners::With][at % 2];
            let call = [Call::Async, Call::Schedule, Call::Reflect][at % 3];
            let run = async |fabric: Fabric| {
                program(fabric, &array, &widths, corners, transport, call, Packing::serial()).await
            };
            checked(threads(nodes(&array)).run(&run), &format!("{transport} {corners:?} {call:?}"))?;
        }
        Ok(())
    });
}
