//! Sizes and offsets at which arithmetic could wrap: all calls that take one, on threads and in
//! virtual time. Each is refused, with an error that gives the available amount, and nothing is
//! kept.

use crate::fx100;
use rdma_fabric::{
    Fabric, FabricError, Group, GroupMemory, Program, ProgramResult, RemoteAddr, Result, error::OutOfBounds,
};

const BYTES: usize = 4096;

/// Numbers of bytes that no machine has.
const TOO_MANY: [usize; 9] = [
    usize::MAX,
    usize::MAX - 1,
    usize::MAX - 6,
    usize::MAX - 7,
    usize::MAX - 63,
    usize::MAX - BYTES,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    1 << 56,
];

fn both(program: &impl Program<Out = ()>) {
    checks::jobs::threads(2).run(program).unwrap();
    fx100(2).run(program).unwrap();
}

/// Checks that `got` is an error that reports an access outside of [`BYTES`] bytes.
fn is_outside<T>(got: Result<T>, what: &str) {
    match got {
        Err(FabricError::OutOfBounds(outside)) => {
            let OutOfBounds { region_len, .. } = *outside;
            assert_eq!(region_len, BYTES as u64, "{what}");
            assert!(outside.to_string().contains("4096"), "{what}: {outside}");
        }
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: is inside"),
    }
}

async fn allocates(fabric: Fabric) -> ProgramResult<()> {
    for bytes in TOO_MANY {
        match fabric.alloc(bytes) {
            Err(FabricError::OutOfMemory(refused)) => {
                assert!(refused.requested == bytes && refused.available < bytes, "{refused}");
            }
            other => panic!("{bytes} bytes: {other:?}"),
        }
        let together = fabric.alloc_symmetric(bytes).await;
        let refused = matches!(together, Err(FabricError::OutOfMemory(_) | FabricError::OutOfMachineMemory(_)));
        assert!(refused, "{bytes} bytes: {together:?}");
        assert!(GroupMemory::symmetric(&fabric, bytes).await.is_err(), "{bytes} bytes");
    }
    let mut world = Group::world(&fabric).await?;
    for bytes in TOO_MANY {
        assert!(world.memory(bytes).await.is_err(), "{bytes} bytes of a group");
    }
    // Nothing was taken.
    fabric.alloc_symmetric(BYTES).await?;
    world.barrier().await?;
    Ok(())
}

#[test]
fn memory_that_nobody_has_is_refused() {
    both(&allocates);
}

async fn resolves(fabric: Fabric) -> ProgramResult<()> {
    let (me, region) = (fabric.rank(), fabric.alloc(BYTES)?);
    for many in TOO_MANY {
        for elements in [many, many / 8, many / 8 + 1, many / 24 + 1] {
            let what = format!("{elements} elements");
            if elements >= 1 << 52 {
                is_outside(region.span::<u64>(&fabric, 0, elements), &what);
                is_outside(region.span::<[u64; 3]>(&fabric, 8, elements), &what);
                is_outside(fabric.remote_span::<u64>(region.at(me, 4096), elements), &what);
                is_outside(region.span_of::<u64>(&fabric, me, 0, elements), &what);
            }
        }
        let offset = many as u64 & !7;
        is_outside(fabric.remote_word::<u64>(region.at(me, offset)), "a word");
        is_outside(fabric.local_span::<u8>(RemoteAddr { offset: many as u64, ..region.at(me, 0) }, 0), "nothing");
        is_outside(fabric.provider().resolve(region.at(me, many as u64), many, 1, 1), "a place");
    }
    // Parts of a span are checked against the span's end.
    let span = region.span::<u64>(&fabric, 0, BYTES / 8)?;
    for many in TOO_MANY {
        is_outside(span.slice(0..many), "a slice");
        is_outside(span.slice(many - 1..many), "a slice far away");
        is_outside(span.part(0..many).map(drop), "a part");
        is_outside(span.part(many - 1..many).map(drop), "a part far away");
        is_outside(span.part_as::<[u64; 3]>(many, many).map(drop), "a part of another type");
        is_outside(span.word_at::<u64>(many & !7).map(drop), "a word of a span");
        assert!(span.place().part(many, many).is_none() && span.place().part(8, many).is_none());
    }
    Ok(())
}

#[test]
fn what_is_outside_says_how_long_the_region_is() {
    both(&resolves);
}

async fn of_a_group(fabric: Fabric) -> ProgramResult<()> {
    let memory = GroupMemory::symmetric(&fabric, BYTES).await?;
    let second = memory.part(64, 128)?;
    for many in TOO_MANY {
        is_outside(memory.part(many, 1), "a part");
        is_outside(memory.part(1, many), "a part");
        assert!(second.part(many, many).is_err() && second.part(64, many).is_err());
        is_outside(fabric.remote_word::<u64>(second.at(fabric.rank(), many as u64 & !7)?), "a word");
    }
    is_outside(fabric.remote_span::<u8>(second.at(fabric.rank(), u64::MAX)?, 0), "the last address");
    Ok(())
}

#[test]
fn memory_of_a_group_has_an_end() {
    both(&of_a_group);
}

#[test]
fn jobs_of_impossible_sizes_are_refused() {
    let program = async |_: Fabric| -> ProgramResult<()> { Ok(()) };
    for many in TOO_MANY {
        assert!(checks::jobs::threads(many).run(&program).is_err(), "{many} ranks");
        assert!(checks::jobs::threads(1).segment_bytes(many).run(&program).is_err(), "segments of {many} bytes");
        assert!(
            checks::jobs::threads(2).ranks_per_node(many).run(&program).is_ok_and(|outs| outs.len() == 2) || many > 2
        );
        assert!(fx100(many).run(&program).is_err(), "{many} ranks in virtual time");
    }
    for many in [u32::MAX, u32::MAX - 1, 1 << 31] {
        assert!(fx100(2).receive_tnis(many).run(&program).is_err(), "{many} receive engines");
        assert!(fx100(2).ranks_per_node(many).run(&program).is_err(), "{many} ranks on a node");
    }
}
