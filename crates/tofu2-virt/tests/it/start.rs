//! The common setup of most tests.

use fabric_offload::{ControlQueue, control_queue::QueueSpec};
use rdma_fabric::{Amo, Fabric, Rank, Region, RegionKey, RemoteAddr, RemoteWord, op};
use tofu2_virt::{Job, NetworkModel, Platform};

pub(crate) const NETWORKS: [NetworkModel; 2] = [NetworkModel::Latency, NetworkModel::Router];

pub(crate) fn fx100<'a>(ranks: usize) -> Job<'a> {
    checks::jobs::virtual_time(&Platform::fx100(), ranks)
}

pub(crate) fn at(rank: usize, key: RegionKey, offset: usize) -> RemoteAddr {
    RemoteAddr { rank: Rank::new(rank as u32), region: key, offset: offset as u64 }
}

/// A barrier over two words of rank 0's `home` from `offset` on, because no rank may free memory
/// that others still use. Uses puts and atomics only.
pub(crate) async fn meet(fabric: &Fabric, home: &Region, offset: usize) -> rdma_fabric::Result<()> {
    let me = fabric.rank().index();
    let count = fabric.remote_word::<u64>(at(0, home.key(), offset))?;
    let go = fabric.local_word::<u64>(at(me, home.key(), offset + 8))?;
    let before = fabric.fetch_add(&count, 1).await?;
    if before + 1 == fabric.ranks() as u64 {
        for rank in (0..fabric.ranks()).filter(|&rank| rank != me) {
            let theirs = fabric.remote_word::<u64>(at(rank, home.key(), offset + 8))?;
            fabric.put_word(&theirs, 1).await?;
        }
        fabric.flush_all().await
    } else {
        fabric.wait_until(&go, Default::default(), |go| go == 1).await.map(drop)
    }
}

/// Returns an operation that adds to a remote word.
pub(crate) fn add(word: &RemoteWord<u64>, operand: u64) -> op::Atomic<'_, u64> {
    op::Atomic { word, amo: Amo::Add(operand) }
}

/// Allocates `bytes` bytes on every rank and opens a control queue on which the rank's own part has
/// the fixed tag 0.
pub(crate) async fn opened(
    fabric: &Fabric,
    bytes: usize,
    spec: QueueSpec,
) -> rdma_fabric::Result<(Region, ControlQueue)> {
    let region = fabric.alloc_symmetric(bytes).await?;
    let queue = ControlQueue::open(fabric, spec)?;
    queue.register_fixed(&region, 0)?;
    Ok((region, queue))
}

/// Returns whether all hashes are different.
pub(crate) fn all_differ(hashes: &[u64]) -> bool {
    hashes.iter().enumerate().all(|(i, a)| hashes[..i].iter().all(|b| a != b))
}
