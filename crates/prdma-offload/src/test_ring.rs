//! A ring for tests: two blocks each way, and an edge to nobody.

use crate::{Edge, Neighbourhood, Topology};
use rdma_fabric::{Fabric, Group};

fn edge(member: usize, label: u32) -> Option<Edge> {
    Some(Edge { member, label })
}

/// The part of `me` of `n`.
pub(crate) fn ring(me: usize, n: usize) -> Topology {
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    Topology::of([edge(left, 1), None, edge(right, 0)].into(), [edge(left, 0), None, edge(right, 1)].into())
}

/// All ranks in a ring. Collective.
pub(crate) async fn neighbours(fabric: &Fabric) -> crate::Result<Neighbourhood> {
    let group = Group::world(fabric).await?;
    let topology = ring(group.me(), group.len());
    Neighbourhood::new(group, topology).await
}
