//! The ids that asynchronous reflects by the extended RDMA interface can have: its tags
//! (XcalableMP paper, section 5.1).

use super::{Grid, Transport};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::ops::Range;
use xmp_reflect::{Array, NodeSet, RdmaLimits, Reflect, XmpError};

/// Updates the shadow of an array of this grid under each of these ids, on a machine with the limits
/// of K. Returns the ids that are not refused as tags.
pub async fn accepted_ids(fabric: Fabric, grid: Grid, ids: Range<u64>) -> ProgramResult<Vec<u64>> {
    let (group, mapping) = (Group::world(&fabric).await?, grid.mapping()?);
    let set = NodeSet::new(group, mapping.nodes().clone())?.with_transport(Transport::Barriers);
    let mut set = set.with_limits(RdmaLimits::K);
    let array: Array<f64> = set.array(&mapping)?;
    let reflect = Reflect::widths(&grid.widths()).orthogonal();
    let mut accepted = Vec::new();
    for id in ids {
        match set.reflect_async(&array, &reflect, id).await {
            Ok(()) => {
                set.wait_async(&[id]).await?;
                accepted.push(id);
            }
            Err(XmpError::AsyncId { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    set.barrier().await?;
    Ok(accepted)
}
