//! Puts directly to the neighbours' arrays, if those have keys.

use super::Out;
use crate::{
    NodeSet, Result,
    array::{Cells, layout_at},
    plan::Plan,
    reflect::Line,
};
use fabric_offload::triggered::{Spans, Transfer};
use prdma_offload::{Layout, layout::pieces};
use rdma_fabric::{Blocks, Fabric, RegionKey, RemoteAddr};

/// Resolves the puts directly to the neighbours' arrays; `None` if an array of any node has no key.
/// Collective over the set.
pub(super) async fn direct(
    set: &mut NodeSet,
    arrays: &[Box<dyn Cells + Send + Sync>],
    outs: &[Out],
    plan_at: &(dyn Fn(usize, usize) -> Result<Plan> + Send + Sync),
) -> Result<Option<Vec<Transfer>>> {
    let hidden = arrays.iter().any(|array| array.key().is_none());
    if set.group.greatest(u64::from(hidden)).await? > 0 {
        return Ok(None);
    }
    let mut keys = Vec::new();
    for array in arrays {
        let key = array.key().map_or(0, RegionKey::to_bits);
        keys.push(set.group.allgather(key).await?);
    }
    let fabric = set.fabric().clone();
    let transfer = |out: &Out| {
        let Line { array, transfer, .. } = &out.line;
        let (cells, peer) = (&*arrays[*array], transfer.peer);
        let theirs = plan_at(*array, peer)?;
        let me = set.me();
        let inn = theirs.receives.iter().find(|inn| inn.peer == me && inn.label == transfer.label);
        let inn = inn.expect("plans of two nodes fit together");
        let (from, at) = (cells.layout(&transfer.section)?, layout_at(cells, peer, &inn.section)?);
        let here = RemoteAddr { rank: fabric.rank(), region: RegionKey::from_bits(keys[*array][me]), offset: 0 };
        let there = RemoteAddr { rank: out.to, region: RegionKey::from_bits(keys[*array][peer]), offset: 0 };
        of_layouts(&fabric, cells.element(), (here, &from), (there, &at))
    };
    outs.iter().map(transfer).collect::<Result<_>>().map(Some)
}

/// Resolves the puts from one layout to another, in cells as wide as the elements if the fabric has
/// such cells.
fn of_layouts(
    fabric: &Fabric,
    element: usize,
    (here, from): (RemoteAddr, &Layout),
    (there, at): (RemoteAddr, &Layout),
) -> Result<Transfer> {
    let pieces = pieces(from, at, !7)?;
    macro_rules! spans {
        ($cell:ty) => {{
            let mut spans = Spans::new(Vec::new());
            for piece in pieces.iter().filter(|piece| piece.len > 0) {
                let (blocks, len) = (Blocks { count: piece.count, stride: piece.stride }, piece.len as usize);
                let cells = |bytes: usize| bytes / size_of::<$cell>();
                // An extent that is too large is not inside.
                let extent = cells(blocks.extent(len).unwrap_or(usize::MAX));
                let from = fabric.local_span::<$cell>(RemoteAddr { offset: piece.from, ..here }, extent)?;
                let at = fabric.remote_span::<$cell>(RemoteAddr { offset: piece.at, ..there }, extent)?;
                spans.add_blocks(from, at, cells(len), blocks)?;
            }
            spans
        }};
    }
    Ok(match element {
        2 => Transfer::Two(spans!(u16)),
        4 => Transfer::Four(spans!(u32)),
        element if element > 0 && element.is_multiple_of(8) => Transfer::Eight(spans!(u64)),
        _ => Transfer::One(spans!(u8)),
    })
}
