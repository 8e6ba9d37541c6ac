//! The state that each member publishes about itself in an epoch.

use super::{Core, words};
use crate::lock::queue::{self, is_inside};
use core::{future::Future, slice::Chunks};
use rdma_fabric::{FabricError, GroupMemory, Handle, Rank, Result, op};

/// The state of a member from the view of the rank that opens the next epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// The member is not active in the old epoch, or is leaving and no longer holds anything.
    Out,
    /// The member may be inside.
    MaybeInside,
    /// The member is lost.
    Lost,
}

impl Core {
    /// Returns the state of each of `members` in epoch number `epoch`, in their order.
    ///
    /// The published state of a member is the sum of two words. The second changes only between two
    /// changes of a version. So if the version is even, and the same before and after, the second
    /// word was constant while the first was read.
    pub(super) async fn scan(&self, epoch: usize, members: &[Rank]) -> Result<Vec<Seen>> {
        let memory = self.memory.part(words::epoch(&self.options, epoch), queue::RECOVERABLE_BYTES)?;
        let mut seen = Vec::with_capacity(members.len());
        for batch in batches(members) {
            for (member, stands) in batch.iter().zip(self.read(&memory, batch).await?) {
                seen.push(match stands {
                    Some(stands) => stands,
                    None => self.look(epoch, *member).await?,
                });
            }
        }
        Ok(seen)
    }

    /// Returns the state of one member: [`Seen::MaybeInside`] if it does not become stable.
    ///
    /// A member whose words keep changing, or whose version stays odd, is in the middle of a step.
    /// It checks its [`words::Claim`] after that step, so a stand-in for it is removed again. The
    /// bound makes a recovery end regardless of the contents of the words.
    pub(super) async fn look(&self, epoch: usize, member: Rank) -> Result<Seen> {
        let memory = self.memory.part(words::epoch(&self.options, epoch), queue::RECOVERABLE_BYTES)?;
        for _ in 0..READS {
            if let [Some(seen)] = self.read(&memory, &[member]).await?[..] {
                return Ok(seen);
            }
        }
        Ok(Seen::MaybeInside)
    }

    /// Returns the state of each member of a batch; `None` if it was changing.
    async fn read(&self, memory: &GroupMemory, batch: &[Rank]) -> Result<Vec<Option<Seen>>> {
        // Each is awaited before the next is posted: gets are not ordered.
        let before = self.gets(memory, batch, queue::VERSION).await;
        let lanes = self.gets(memory, batch, queue::PUBLISHED).await;
        let after = self.gets(memory, batch, queue::VERSION).await;
        let each = batch.iter().zip(before).zip(lanes).zip(after);
        each.map(|(((member, before), lanes), after)| judge(*member, before, lanes, after)).collect()
    }

    async fn gets<const N: usize>(&self, memory: &GroupMemory, batch: &[Rank], offset: u64) -> Vec<Result<[u64; N]>> {
        let get = |member| async move {
            let words = self.fabric.remote_span::<u64>(memory.at(member, offset)?, N)?;
            self.fabric.post(op::Get { from: &words, to: [0; N] }).await
        };
        at_each::<_, _>(batch, get).await
    }
}

/// Returns the state of `member`; `None` if it was changing.
fn judge(
    member: Rank,
    before: Result<[u64; 1]>,
    lanes: Result<[u64; 2]>,
    after: Result<[u64; 1]>,
) -> Result<Option<Seen>> {
    let words = || Ok((before?, lanes?, after?));
    match words() {
        Ok(([before], [own, others], [after])) => {
            let still = before == after && before.is_multiple_of(2);
            let inside = if is_inside(own.wrapping_add(others)) { Seen::MaybeInside } else { Seen::Out };
            Ok(still.then_some(inside))
        }
        Err(FabricError::PeerLost { rank }) if rank == member => Ok(Some(Seen::Lost)),
        // The member's program has ended: it has dropped the lock.
        Err(error) if error.gone() == Some(member) => Ok(Some(Seen::Out)),
        Err(error) => Err(error),
    }
}

/// The number of reads of a member in the middle of a step before it counts as inside.
const READS: usize = 64;

/// The number of operations in flight at a time.
const BATCH: usize = 64;

/// Splits `members` into batches of [`BATCH`].
pub(super) fn batches(members: &[Rank]) -> Chunks<'_, Rank> {
    members.chunks(BATCH)
}

/// Posts an operation by `begin` for each member of a batch, then awaits them all. Returns their
/// results in order.
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
