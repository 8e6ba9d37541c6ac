//! What each member publishes of itself in an epoch.

use super::{
    Survivor,
    batch::{at_each, batches},
    layout,
};
use crate::queue::{self, is_inside};
use rdma_fabric::{FabricError, GroupMemory, Rank, Result, op};

/// How a member is seen by who opens the next epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It does nothing in the old epoch, or is on its way out and holds nothing any more.
    Out,
    /// It may be inside.
    MaybeInside,
    /// It is lost.
    Lost,
}

impl Survivor {
    /// How each of `members` stands in the epoch of that number, in their order.
    ///
    /// What a member publishes is the sum of two words. The second changes only between two changes of a version; so it is the same for as long as it takes
    /// to read the first if the version is even, and the same before and after.
    pub(super) async fn scan(&self, epoch: usize, members: &[Rank]) -> Result<Vec<Seen>> {
        let memory = self.memory.part(layout::epoch(&self.options, epoch), queue::SURVIVING_BYTES)?;
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

    /// How one member stands, as soon as it stands still.
    pub(super) async fn look(&self, epoch: usize, member: Rank) -> Result<Seen> {
        let memory = self.memory.part(layout::epoch(&self.options, epoch), queue::SURVIVING_BYTES)?;
        loop {
            if let [Some(seen)] = self.read(&memory, &[member]).await?[..] {
                return Ok(seen);
            }
        }
    }

    /// How each of a batch stands; `None` if it was changing.
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

/// How `member` stands; `None` if it was changing.
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
        // Its program is over: it has dropped the lock.
        Err(error) if error.gone() == Some(member) => Ok(Some(Seen::Out)),
        Err(error) => Err(error),
    }
}
