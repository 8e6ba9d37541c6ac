//! The same operation at each of many members, some of them under way at a time.

use core::{future::Future, slice::Chunks};
use rdma_fabric::{Handle, Rank, Result};

/// Operations under way at a time.
const BATCH: usize = 64;

/// So many at a time.
pub(super) fn batches(members: &[Rank]) -> Chunks<'_, Rank> {
    members.chunks(BATCH)
}

/// Post what `begin` does for each of a batch, then await all. In their order.
pub(super) async fn at_each<T: Unpin + 'static, Posted>(
    batch: &[Rank],
    begin: impl Fn(Rank) -> Posted,
) -> Vec<Result<T>>
where
    Posted: Future<Output = Result<Handle<T>>>,
{
    let mut under_way = Vec::with_capacity(batch.len());
    for member in batch {
        under_way.push(begin(*member).await);
    }
    let mut ends = Vec::with_capacity(batch.len());
    for posted in under_way {
        ends.push(match posted {
            Ok(handle) => handle.await,
            Err(error) => Err(error),
        });
    }
    ends
}
