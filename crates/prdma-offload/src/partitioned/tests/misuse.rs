//! Calls in the wrong order or with wrong arguments.

use super::{layouts, neighbours, threes};
use crate::{Buffer, Form, Layout, Options, PrdmaError, Side};
use rdma_fabric::{Fabric, ProgramResult};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

async fn misuse(fabric: Fabric, form: Form) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let me = hood.group().me();
    let (_, _, mut parts) = threes(&mut hood, form).await?;
    assert_eq!(parts.ready(0, 0).await, Err(PrdmaError::Inactive));
    assert_eq!(parts.arrived(0, 0).await, Ok(true));
    assert_eq!(parts.wait().await, Ok(()));
    for iteration in 1..=3 {
        parts.start().await?;
        assert_eq!(parts.start().await, Err(PrdmaError::Active { iteration }));
        let side = Side::Destination;
        let none = |slot, first, end| Err(PrdmaError::NoPartition { side, slot, first, end, slots: 3, partitions: 3 });
        assert_eq!(parts.ready(0, 3).await, none(0, 3, 4));
        assert_eq!(parts.ready(3, 0).await, none(3, 0, 1));
        assert_eq!(parts.ready_range(2, 1..4).await, none(2, 1, 4));
        let arrived = parts.arrived(0, 3).await;
        assert!(matches!(arrived, Err(PrdmaError::NoPartition { side: Side::Source, .. })), "{arrived:?}");
        parts.ready(0, 1).await?;
        let twice = Err(PrdmaError::ReadyTwice { slot: 0, partition: 1, iteration });
        assert_eq!(parts.ready(0, 1).await, twice);
        // None of the range is marked then.
        assert_eq!(parts.ready_range(0, 0..3).await, twice);
        let idle = |slot, partition| PrdmaError::NotReady { slot, partition, iteration };
        assert_eq!(parts.wait().await, Err(idle(0, 0)));
        parts.ready(0, 0).await?;
        parts.ready_range(2, 0..3).await?;
        assert_eq!(parts.test().await, Err(idle(0, 2)));
        parts.ready(0, 2).await?;
        // Those of the slot without a neighbour need not be.
        parts.wait().await?;
        assert!(!parts.is_active() && parts.iterations() == iteration);
    }
    let buffer = Buffer::<u64>::new(&fabric, 36)?;
    let (send, receive) = (layouts(false, 4), Layout::contiguous::<u64>(20, 4).unwrap());
    let receives = [receive, Layout::nothing(), Layout::contiguous::<u64>(24, 4).unwrap()];
    let options = Options::form(form);
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 3, &options).await.map(drop);
    assert_eq!(told, Err(PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 3, of: 4 }));
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, 0, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Uneven { partitions: 0, .. })), "{told:?}");
    // One member sends columns that don't go evenly.
    let column = |at| Layout::vector::<u64>(at, 2, 2, 4).unwrap();
    let columns = [column(0), Layout::nothing(), column(2)];
    let mine = if me == 0 { &columns[..] } else { &send[..] };
    let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
    assert_eq!(
        told,
        Err(match me {
            0 => PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions: 4, of: 2 },
            _ => PrdmaError::ElsewhereFailed,
        })
    );
    let many = if me == 0 { 2 } else { 4 };
    let told = hood.partitioned_init(&buffer, &send, &buffer, &receives, many, &options).await.map(drop);
    assert_eq!(told, Err(PrdmaError::Disagreement { what: "numbers of partitions", least: 2, most: 4 }));
    // Sizes are told of whole blocks.
    let long = [Layout::contiguous::<u64>(0, 8).unwrap(), Layout::nothing(), Layout::contiguous::<u64>(8, 4).unwrap()];
    let mine = if me == 1 { &long[..] } else { &send[..] };
    let told = hood.partitioned_init(&buffer, mine, &buffer, &receives, 4, &options).await.map(drop);
    let size = |side, slot, member, mine, theirs| PrdmaError::Size { side, slot, member, mine, theirs };
    assert_eq!(
        told,
        Err(match me {
            0 => size(Side::Source, 2, 1, 32, 64),
            1 => size(Side::Destination, 0, 0, 64, 32),
            _ => PrdmaError::ElsewhereFailed,
        })
    );
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn misuse_is_told_and_changes_nothing() {
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        Threads::new(3).run(&async |fabric| misuse(fabric, form).await).unwrap();
        Job::new(&Platform::fx100(), 3).run(&async |fabric| misuse(fabric, form).await).unwrap();
    }
}
