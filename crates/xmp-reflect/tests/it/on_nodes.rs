//! Waits of some nodes, and the limits of a machine.

#![expect(clippy::single_range_in_vec_init, reason = "ranges of one dimension")]

use crate::both;
use rdma_fabric::{Group, ProgramResult};
use xmp_reflect::{
    Align, Array, Format, MappingError, NodeSet, Nodes, Order, RdmaLimits, Reflect, Shadow, Template, Transport,
    Widths, XmpError,
};

/// A ring of numbers, each its index times `factor`.
fn ring(set: &NodeSet, factor: i64) -> ProgramResult<Array<i64>> {
    let cells = 4 * set.nodes().size() as i64;
    let template = Template::new(&(0..cells), &[Format::Block], set.nodes())?;
    let array: Array<i64> = set.array(&template.align(&(0..cells), &[Align::with(0)])?.shadow(&[Shadow::of(1)])?)?;
    array.fill(|index| factor * index[0])?;
    Ok(array)
}

/// Returns whether the shadow has been updated.
fn is_updated(array: &Array<i64>, factor: i64) -> Result<bool, XmpError> {
    let (own, cells) = (array.part().block(0).expect("a block"), array.mapping().bounds(0).end);
    let (below, above) = ((own.start - 1).rem_euclid(cells), own.end.rem_euclid(cells));
    Ok(array.get(&[own.start - 1])? == factor * below && array.get(&[own.end])? == factor * above)
}

fn periodic() -> Reflect {
    Reflect::widths(&[Widths::of(1).periodic()])
}

#[test]
fn only_nodes_of_the_reference_wait() {
    both(4, async |fabric| {
        let mut set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[4], Order::LastFastest)?)?;
        let (first, second) = (ring(&set, 1)?, ring(&set, 3)?);
        for transport in Transport::ALL {
            first.fill_boundary(|_| -1)?;
            set.reflect_async(&first, &periodic().by(transport), 1).await?;
            set.reflect_async(&second, &periodic().by(transport), 2).await?;
            set.wait_async_on(&[1, 7], &[2..2]).await?;
            assert!(first.view().is_err(), "{transport}: no node waits");
            // All nodes make progress in calls while some of them wait.
            set.wait_async_on(&[1], &[1..3]).await?;
            assert_eq!(first.view().is_ok(), (1..3).contains(&set.me()), "{transport}");
            if (1..3).contains(&set.me()) {
                assert!(is_updated(&first, 1)?, "{transport}");
            }
            assert!(second.view().is_err(), "{transport}: another id");
            set.wait_async(&[1, 2]).await?;
            assert!(is_updated(&first, 1)? && is_updated(&second, 3)?, "{transport}");
            set.barrier().await?;
        }
        for ranges in [&[0..5][..], &[0..2, 0..2], &[]] {
            let refused = set.wait_async_on(&[1], ranges).await;
            let wanted = MappingError::NodeRanges { ranges: ranges.to_vec(), extents: vec![4] };
            assert_eq!(refused, Err(XmpError::Mapping(wanted)));
        }
        Ok(())
    });
}

/// Ids belong to the node set: the same one in another set is another.
#[test]
fn an_id_in_two_node_sets_is_two() {
    both(3, async |fabric| {
        let set = async || {
            ProgramResult::Ok(NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[3], Order::LastFastest)?)?)
        };
        let (mut one, mut other) = (set().await?, set().await?);
        let (first, second) = (ring(&one, 1)?, ring(&other, 5)?);
        one.reflect_async(&first, &periodic(), 4).await?;
        other.reflect_async(&second, &periodic(), 4).await?;
        other.wait_async(&[4]).await?;
        assert!(is_updated(&second, 5)? && first.view().is_err());
        one.wait_async(&[4]).await?;
        assert!(is_updated(&first, 1)?);
        one.barrier().await?;
        Ok(())
    });
}

#[test]
fn ids_beyond_the_tags_of_the_machine_are_refused() {
    both(2, async |fabric| {
        let set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
        let mut set = set.with_limits(RdmaLimits::K);
        let array = ring(&set, 1)?;
        for transport in [Transport::Blocks, Transport::Fast, Transport::Mrc, Transport::Barriers] {
            let reflect = periodic().by(transport);
            for id in [15, u64::MAX] {
                let refused = set.reflect_async(&array, &reflect, id).await;
                let wanted = XmpError::AsyncId { transport: transport.to_string(), id, allowed: 0..=14 };
                assert_eq!(refused, Err(wanted.clone()));
                assert!(wanted.to_string().contains("0 to 14"), "{wanted}");
                if transport != Transport::Barriers {
                    assert!(set.reduce_shadow_async(&array, &reflect, |a, b| a + b, id).await.is_err());
                }
            }
            assert!(array.view().is_ok(), "nothing was started");
            for id in [0, 14] {
                set.reflect_async(&array, &reflect, id).await?;
                set.wait_async(&[id]).await?;
            }
            set.reflect(&array, &reflect).await?;
        }
        for transport in [Transport::Packed, Transport::Datatypes, Transport::Fence, Transport::Flush] {
            set.reflect_async(&array, &periodic().by(transport), 1 << 40).await?;
            set.wait_async(&[1 << 40]).await?;
            assert!(is_updated(&array, 1)?, "{transport}");
        }
        set.barrier().await?;
        Ok(())
    });
}

#[test]
fn a_part_of_the_job_can_not_reflect_where_the_machine_needs_all() {
    both(3, async |fabric| {
        let mut world = Group::world(&fabric).await?;
        let colour = (world.me() < 2).then_some(0);
        if let Some(group) = world.split(colour, 0).await? {
            let mut set = NodeSet::new(group, Nodes::new(&[2], Order::LastFastest)?)?.with_limits(RdmaLimits::K);
            let array = ring(&set, 1)?;
            for transport in [Transport::Blocks, Transport::Barriers] {
                let refused = set.reflect(&array, &periodic().by(transport)).await;
                assert_eq!(refused, Err(XmpError::NotWorld { transport: transport.to_string(), nodes: 2, ranks: 3 }));
            }
            set.reflect(&array, &periodic().by(Transport::Packed)).await?;
            let mut set = set.with_limits(RdmaLimits::NONE);
            set.reflect(&array, &periodic().by(Transport::Blocks)).await?;
            assert!(is_updated(&array, 1)?);
            set.barrier().await?;
        }
        Ok(())
    });
}
