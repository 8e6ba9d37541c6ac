//! How two members find their areas on each other without exchanging messages.
//!
//! A member has a table that records the peer of each of its areas. The peer, or the member itself,
//! claims a free entry for the peer by compare-and-swap, starting at the entry to which the peer's
//! number hashes. Entries are never released, so all searches find the same one. Without atomics,
//! each member has an area for every other member.

use super::{Ends, Layout};
use crate::{FmplError, Result};
use rdma_fabric::{Fabric, GroupMemory, Rank};

/// Finds the area of this member, `me`, at `peer`, and the area of `peer` here.
pub(crate) async fn meet(
    fabric: &Fabric,
    memory: &GroupMemory,
    layout: &Layout,
    me: usize,
    peer: usize,
) -> Result<Ends> {
    let (mine, there) = (memory.member(me)?, memory.member(peer)?);
    let (far, near) = if layout.is_by_number() {
        (me, peer)
    } else {
        let far = claim(fabric, memory, layout, (there, peer), me).await?;
        (far, claim(fabric, memory, layout, (mine, me), peer).await?)
    };
    let words = layout.area_bytes() / 8;
    let far = fabric.remote_span(memory.at(there, layout.area(far) as u64)?, words)?;
    let near = fabric.local_span(memory.at(mine, layout.area(near) as u64)?, words)?;
    Ok(Ends::new(near, far))
}

/// Returns the area of `peer` at another member, or at this one itself.
async fn claim(
    fabric: &Fabric,
    memory: &GroupMemory,
    layout: &Layout,
    (rank, member): (Rank, usize),
    peer: usize,
) -> Result<usize> {
    let (areas, key) = (layout.peers(), peer as u64 + 1);
    for probe in 0..areas {
        let area = (peer + probe) % areas;
        let owner = fabric.remote_word::<u64>(memory.at(rank, layout.owner(area) as u64)?)?;
        let found = match fabric.get_word(&owner).await? {
            0 => fabric.compare_swap(&owner, 0, key).await?,
            taken => taken,
        };
        if found == 0 || found == key {
            return Ok(area);
        }
    }
    Err(FmplError::TooManyPeers { member, peers: areas })
}
