//! Calls: refusals, combinations of reflects in progress, and explanations.

use crate::both;
use checks::jobs::threads;
use prdma_offload::{Holder, PrdmaError};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank, join};
use xmp_reflect::{
    Align, Array, Corners, Format, Mapping, MappingError, NodeSet, Nodes, Order, PlanError, Reflect, Schedule, Shadow,
    Template, Transport, Widths, XmpError,
};

async fn set(fabric: &Fabric, extents: &[usize]) -> ProgramResult<NodeSet> {
    Ok(NodeSet::new(Group::world(fabric).await?, Nodes::new(extents, Order::LastFastest)?)?)
}

/// A square of 8 × 8 with a shadow of 2 around each block.
fn square(set: &NodeSet) -> ProgramResult<Mapping> {
    let template = Template::new(&[0..8, 0..8], &[Format::Block, Format::Block], set.nodes())?;
    Ok(template.align(&[0..8, 0..8], &[Align::with(0), Align::with(1)])?.shadow(&[Shadow::of(2), Shadow::of(2)])?)
}

fn filled(set: &NodeSet) -> ProgramResult<Array<i32>> {
    let array = set.array(&square(set)?)?;
    array.fill(|index| (10 * index[0] + index[1]) as i32)?;
    Ok(array)
}

fn widths(of: [usize; 2]) -> Reflect {
    Reflect::widths(&of.map(|layers| Widths::of(layers).periodic()))
}

#[test]
fn several_arrays_have_one_id() {
    both(4, async |fabric| {
        let mut set = set(&fabric, &[2, 2]).await?;
        let arrays = [filled(&set)?, filled(&set)?, filled(&set)?];
        set.wait_async(&[1, 2, 3]).await?;
        assert!(set.test_async(1).await?);
        for (array, id) in arrays.iter().zip([5, 5, 6]) {
            set.reflect_async(array, &widths([1, 2]), id).await?;
        }
        set.wait_async(&[5]).await?;
        assert!(arrays[0].view().is_ok() && arrays[1].view().is_ok());
        assert!(matches!(
            arrays[2].view(),
            Err(XmpError::Exchange(PrdmaError::InUse { holder: Holder::Receiver, .. }))
        ));
        while !set.test_async(6).await? {
            fabric.sleep(core::time::Duration::from_micros(1)).await;
        }
        let corner = |array: &Array<i32>| Ok::<_, XmpError>(array.view()?[array.offset(&[1, 0])]);
        assert_eq!(corner(&arrays[0])?, corner(&arrays[2])?);
        set.barrier().await?;
        Ok(corner(&arrays[1])?)
    });
}

#[test]
fn cells_in_flight_are_not_moved_twice() {
    both(4, async |fabric| {
        let mut set = set(&fabric, &[2, 2]).await?;
        let (array, other) = (filled(&set)?, filled(&set)?);
        // The schedules already exist, so that their absence is not the reason for the refusals
        // here.
        for reflect in [widths([1, 0]), widths([0, 1]), widths([1, 1])] {
            set.reflect(&array, &reflect).await?;
        }
        set.reflect_async(&array, &widths([1, 0]), 9).await?;
        for again in [widths([1, 0]), widths([1, 1]), widths([2, 0]), Reflect::whole()] {
            assert_eq!(set.reflect(&array, &again).await, Err(XmpError::InFlight { id: 9 }));
            assert_eq!(set.reflect_async(&array, &again, 4).await, Err(XmpError::InFlight { id: 9 }));
        }
        let reduced = set.reduce_shadow(&array, &widths([0, 1]), |a, b| a + b).await;
        assert_eq!(reduced, Err(XmpError::InFlight { id: 9 }));
        // Faces of the other dimension, and other arrays, are not affected.
        set.reflect(&array, &widths([0, 1])).await?;
        set.reflect(&other, &widths([1, 1])).await?;
        set.wait_async(&[9]).await?;
        // Cells that both reflects move in the last dimension only.
        set.reflect_async(&array, &widths([0, 1]), 9).await?;
        for again in [widths([0, 1]), widths([0, 2]), widths([1, 1])] {
            assert_eq!(set.reflect(&array, &again).await, Err(XmpError::InFlight { id: 9 }));
        }
        set.wait_async(&[9]).await?;
        set.reflect(&array, &widths([1, 1])).await?;
        set.barrier().await?;
        Ok(())
    });
}

#[test]
fn differing_arguments_are_reported_everywhere() {
    both(4, async |fabric| {
        let mut set = set(&fabric, &[2, 2]).await?;
        let array = filled(&set)?;
        let me = set.me();
        let differ = Err(XmpError::Disagreement { what: "arguments of a reflect" });
        assert_eq!(set.reflect(&array, &widths([1, me.min(1)])).await, differ);
        let flag = |periodic| Widths { lo: 1, hi: 1, periodic };
        assert_eq!(set.reflect(&array, &Reflect::widths(&[flag(me == 2), flag(true)])).await, differ);
        let transport = if me == 3 { Transport::Packed } else { Transport::Blocks };
        assert_eq!(set.reflect(&array, &widths([1, 1]).by(transport)).await, differ);
        let corners = if me == 0 { Corners::Orthogonal } else { Corners::With };
        assert_eq!(set.reflect(&array, &widths([1, 1]).corners(corners)).await, differ);
        // Nothing was moved, and the set remains usable.
        assert_eq!(array.view()?[0], 0);
        set.reflect(&array, &widths([1, 1])).await?;
        set.barrier().await?;
        Ok(())
    });
}

#[test]
fn an_impossible_reflect_moves_nothing() {
    both(2, async |fabric| {
        let mut set = set(&fabric, &[2, 1]).await?;
        let array = filled(&set)?;
        let above = PlanError::AboveShadow { dim: 1, side: xmp_reflect::plan::Side::Lower, width: 3, shadow: 2 };
        assert_eq!(set.reflect(&array, &widths([1, 3])).await, Err(XmpError::Plan(above)));
        let one = Reflect::widths(&[Widths::of(1)]);
        assert_eq!(set.reflect(&array, &one).await, Err(XmpError::Plan(PlanError::Widths { given: 1, dims: 2 })));
        // One node's argument is wrong: the others receive an error.
        let reflect = widths([1, if set.me() == 1 { 3 } else { 1 }]);
        let refused = set.reflect(&array, &reflect).await.unwrap_err();
        match set.me() {
            1 => assert!(matches!(refused, XmpError::Plan(_)), "{refused}"),
            _ => assert_eq!(refused, XmpError::ElsewhereFailed),
        }
        let reduced = set.reduce_shadow(&array, &widths([1, 1]).by(Transport::Fence), |a, b| a + b).await;
        assert!(matches!(reduced, Err(XmpError::Transport { .. })), "{reduced:?}");
        set.barrier().await?;
        Ok(array.view()?[0])
    });
}

#[test]
fn arrays_and_sets_fit() {
    both(2, async |fabric| {
        let group = Group::world(&fabric).await?;
        let refused = NodeSet::new(group, Nodes::new(&[3], Order::LastFastest)?).unwrap_err();
        assert_eq!(refused, XmpError::NodeSet { nodes: 3, ranks: 2 });
        let (mut one, other) = (set(&fabric, &[2, 1]).await?, set(&fabric, &[1, 2]).await?);
        let foreign = square(&other)?;
        assert!(matches!(one.array::<i32>(&foreign), Err(XmpError::OtherNodes { .. })));
        let array: Array<i32> = other.array(&foreign)?;
        assert!(matches!(one.reflect(&array, &widths([1, 1])).await, Err(XmpError::OtherNodes { .. })));
        let too_few = Template::new(&[0..8, 0..8], &[Format::Block, Format::None], one.nodes());
        assert!(matches!(too_few, Err(MappingError::NodeDimensions { .. })), "{too_few:?}");
        let mine = filled(&one)?;
        assert_eq!(mine.get(&[100, 0]), Err(XmpError::NotHere { node: one.me(), index: vec![100, 0] }));
        let outside = xmp_reflect::Section { starts: vec![0, 7], extents: vec![1, 40] };
        assert!(matches!(mine.section(&outside), Err(XmpError::OutsideCells { .. })));
        one.barrier().await?;
        Ok(())
    });
}

#[test]
fn a_view_that_is_out_stops_a_reflect_and_nothing_else() {
    both(2, async |fabric| {
        let mut set = set(&fabric, &[2, 1]).await?;
        let array = filled(&set)?;
        set.reflect(&array, &widths([1, 1])).await?;
        let view = array.view()?;
        let refused = set.reflect(&array, &widths([1, 1])).await;
        assert!(matches!(refused, Err(XmpError::Exchange(PrdmaError::InUse { holder: Holder::View, .. }))));
        drop(view);
        set.reflect(&array, &widths([1, 1])).await?;
        set.barrier().await?;
        Ok(())
    });
}

#[test]
fn a_call_that_is_dropped_goes_on_with_the_next() {
    let program = async |fabric: Fabric| {
        let mut set = set(&fabric, &[2, 1]).await?;
        let array = filled(&set)?;
        set.reflect(&array, &widths([2, 2])).await?;
        for round in 0..3 {
            array.fill(|index| (round * 1000 + 10 * index[0] + index[1]) as i32)?;
            if set.me() == 0 {
                // Node 1 has not started yet, so this can't be complete.
                let begun = join::now(set.reflect(&array, &widths([2, 2])));
                assert!(begun.is_none(), "round {round}");
            }
            set.barrier().await?;
            set.reflect(&array, &widths([2, 2])).await?;
            assert_eq!(array.get(&[if set.me() == 0 { 4 } else { 3 }, 5])? / 1000, round as i32);
            set.barrier().await?;
        }
        Ok(())
    };
    threads(2).run(&program).unwrap();
}

#[test]
fn a_node_that_has_left_is_an_error() {
    both(2, async |fabric| {
        let mut set = set(&fabric, &[2, 1]).await?;
        let array = filled(&set)?;
        set.reflect(&array, &widths([1, 1])).await?;
        set.barrier().await?;
        if set.me() == 1 {
            return Ok(());
        }
        let error = loop {
            // As long as the other's memory exists, a start succeeds.
            if let Err(error) = set.reflect(&array, &widths([1, 1])).await {
                break error;
            }
        };
        let left = matches!(error, XmpError::Fabric(FabricError::PeersLeft)) || error.gone() == Some(Rank::new(1));
        assert!(left, "{error}");
        // And the schedule remains broken.
        assert!(set.reflect(&array, &widths([1, 1])).await.is_err());
        assert!(matches!(array.view(), Err(XmpError::Exchange(PrdmaError::InUse { holder: Holder::Broken, .. }))));
        Ok(())
    });
}

#[test]
fn it_is_explained() {
    both(2, async |fabric| {
        let mut set = set(&fabric, &[2, 1]).await?;
        let array = filled(&set)?;
        let explained = set.explain(&array, &widths([1, 2]).by(Transport::Packed)).await?;
        assert_eq!((explained.sends.len(), explained.receives.len()), (8, 8));
        let cells: usize = explained.receives.iter().map(|line| line.transfer.section.cells()).sum();
        assert_eq!(cells, 6 * 12 - 4 * 8);
        let text = explained.to_string();
        let corner = "receives array 0 (-1, -1) node";
        assert!(text.contains("transport packed: asked for") && text.contains(corner), "{text}");
        assert!(text.contains("8 B in 1 block, as it lies") && text.contains("packed"), "{text}");
        // Two arrays together.
        let other: Array<u8> = set.array(&square(&set)?)?;
        let schedule = Schedule::new(&mut set, &[&array, &other], &widths([1, 1])).await?;
        assert!(schedule.explain().to_string().contains("sends    array 1"));
        set.barrier().await?;
        Ok(schedule.explain().sends.len())
    });
}

#[test]
fn transports_have_names() {
    for transport in Transport::ALL {
        assert_eq!(transport.to_string().parse(), Ok(transport));
    }
    let refused = "pigeons".parse::<Transport>().unwrap_err().to_string();
    assert!(refused.contains("pigeons") && refused.contains("barriers"), "{refused}");
}
