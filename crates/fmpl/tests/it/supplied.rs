//! Matching areas in memory that the program supplies.

use crate::harness::everywhere;
use fmpl::{Fmpl, FmplError, Op, Options};
use rdma_fabric::{Fabric, Group, GroupMemory, ProgramResult, RemoteAddr};
use std::time::Duration;

fn options() -> Options {
    Options::default().indices(3).any_indices(1).peers(8).spool(512, Duration::ZERO)
}

/// Exchanges messages of each kind.
async fn exchange(fmpl: &Fmpl, seed: i32) -> ProgramResult<()> {
    let world = fmpl.world();
    let (me, members) = (world.me(), world.len());
    let (next, last) = ((me + 1) % members, (me + members - 1) % members);
    let (buffer, mut came) = (world.buffer::<i32>(1)?, [0]);
    for index in 0..3 {
        let receiving = world.irecv(&buffer, last, index).await?;
        world.send(&[seed + me as i32], next, index).await?;
        assert_eq!(receiving.wait().await?.bytes, 4);
        world.fabric().read(&buffer, &mut came)?;
        assert_eq!(came, [seed + last as i32]);
    }
    world.send_any(&[seed], next, 0).await?;
    assert_eq!(world.recv_any(&buffer, 0).await?.from, last);
    world.fabric().write(&buffer, &[1])?;
    world.allreduce(&buffer, Op::Sum).await?;
    world.fabric().read(&buffer, &mut came)?;
    assert_eq!(came, [members as i32]);
    Ok(())
}

/// The program writes to the memory before and between its uses as areas; bytes beside the areas do
/// not change.
#[test]
fn areas_in_memory_of_the_program() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let needed = options().area_bytes(&fabric)?;
        let whole = GroupMemory::symmetric(&fabric, 128 + needed + 64).await?;
        let own = fabric.local_span::<u8>(whole.at(fabric.rank(), 0)?, whole.len())?;
        for seed in 0..3 {
            fabric.write(&own, &vec![0xa5; whole.len()])?;
            let fmpl = Fmpl::init_in(&fabric, options(), &whole.part(128, needed)?).await?;
            exchange(&fmpl, 10 * seed).await?;
            assert_eq!(fmpl.world().memory()?.areas, needed);
            fmpl.finalize().await?;
            let mut bytes = vec![0; whole.len()];
            fabric.read(&own, &mut bytes)?;
            assert!(bytes[..128].iter().chain(&bytes[128 + needed..]).all(|byte| *byte == 0xa5));
            assert!(bytes[128..128 + needed].iter().any(|byte| ![0, 0xa5].contains(byte)), "the areas are elsewhere");
        }
        // Other ranks resolve this rank's memory in their calls.
        Ok(Group::world(&fabric).await?.barrier().await?)
    });
}

/// All ranks get an error, and the next attempt succeeds.
#[test]
fn unsuitable_memory_is_refused() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let (needed, me) = (options().area_bytes(&fabric)?, fabric.rank());
        let whole = GroupMemory::symmetric(&fabric, 2 * needed).await?;
        let at = |offset| -> RemoteAddr { whole.at(me, offset).expect("a member") };
        let refused = async |memory: GroupMemory| Fmpl::init_in(&fabric, options(), &memory).await.err();
        let small = FmplError::AreasTooSmall { at: at(64), bytes: needed - 1, needed };
        assert_eq!(refused(whole.part(64, needed - 1)?).await, Some(small));
        let odd = FmplError::AreasMisaligned { at: at(72), align: 64 };
        assert_eq!(refused(whole.part(72, needed)?).await, Some(odd));
        // One rank passes another part, or one that is too small.
        let one = me.index() == 1;
        let differ = FmplError::AreasDiffer { least: 0, most: Some(64) };
        assert_eq!(refused(whole.part(if one { 64 } else { 0 }, needed)?).await, Some(differ));
        let small = FmplError::AreasTooSmall { at: at(0), bytes: 7, needed };
        let others = FmplError::AreasDiffer { least: 0, most: None };
        let expected = if one { small } else { others };
        assert_eq!(refused(whole.part(0, if one { 7 } else { needed })?).await, Some(expected));
        // The memory of a part of the job.
        let mut group = Group::world(&fabric).await?;
        let pair = match group.split((!one).then_some(0), 0).await? {
            Some(mut pair) => Some(pair.memory(needed).await?),
            None => None,
        };
        let others = FmplError::AreasOfOtherRanks { members: 2, ranks: 3 };
        let expected = if one { FmplError::AreasDiffer { least: 0, most: None } } else { others };
        assert_eq!(refused(pair.unwrap_or_else(|| whole.clone())).await, Some(expected));
        let fmpl = Fmpl::init_in(&fabric, options(), &whole.part(0, needed)?).await?;
        exchange(&fmpl, 0).await?;
        Ok(fmpl.finalize().await?)
    });
}
