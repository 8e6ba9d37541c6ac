//! Matching areas in memory that the program supplies (`fmpl_init`; paper, section 3.1).

use super::Layout;
use crate::{FmplError, Result};
use rdma_fabric::{Group, GroupMemory};

/// The alignment of matching areas: peers write to separate cache lines.
const ALIGN: usize = 64;

/// Checks memory that the program supplies for the areas of the whole job, and zeroes this member's
/// part. All members fail if one does. Collective over the group; no member writes to the memory of
/// another one before the next collective.
pub(crate) async fn supplied(group: &mut Group, memory: GroupMemory, layout: &Layout) -> Result<GroupMemory> {
    let (fabric, me) = (group.fabric().clone(), group.me());
    let (rank, needed) = (group.rank(me)?, layout.bytes());
    let (members, ranks) = (memory.members(), group.len());
    let at = memory.at(rank, 0).ok();
    let outcome = match at {
        Some(at) if members == ranks && memory.number(rank) == Some(me) => {
            if !at.offset.is_multiple_of(ALIGN as u64) {
                Err(FmplError::AreasMisaligned { at, align: ALIGN })
            } else if memory.len() < needed {
                Err(FmplError::AreasTooSmall { at, bytes: memory.len(), needed })
            } else {
                memory.part(0, needed).map_err(FmplError::from)
            }
        }
        _ => Err(FmplError::AreasOfOtherRanks { members, ranks }),
    };
    // Every member's offset, or that it has none: the greatest and the least are this member's own.
    let offset = match (&outcome, at) {
        (Ok(_), Some(at)) => at.offset,
        _ => u64::MAX,
    };
    let (most, least) = (group.greatest(offset).await?, !group.greatest(!offset).await?);
    let memory = outcome?;
    if most != least {
        return Err(FmplError::AreasDiffer { least, most: (most != u64::MAX).then_some(most) });
    }
    let (own, zeros) = (fabric.local_span::<u8>(memory.at(rank, 0)?, needed)?, [0; 4096]);
    for start in (0..needed).step_by(zeros.len()) {
        let end = needed.min(start + zeros.len());
        fabric.write(&own.slice(start..end)?, &zeros[..end - start])?;
    }
    Ok(memory)
}
