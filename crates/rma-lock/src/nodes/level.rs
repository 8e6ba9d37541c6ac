//! One level: its words, and the steps on them.

use super::{Stair, shape::Meeting};
use crate::{
    error::Stopped,
    holder_limit,
    queue::{LOCK_BYTES, NodeId, Wait},
};
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, RemoteWord};

const LINE: usize = 64;

/// Returns the offset in bytes of a level's words in the lock's memory at each rank: first come the
/// words of a lock with queues, then a line for each level.
pub(super) fn offset(level: usize) -> usize {
    LOCK_BYTES + level * LINE
}

/// The level above is held for all that are counted.
pub(super) const HELD: u64 = 1;
/// Somebody is counted, or was, and nobody is taking the level above: a reader that sees this may
/// claim that task.
pub(super) const ORPHAN: u64 = 2;
/// One reader that is inside, or on its way.
pub(super) const READER: u64 = 4;
/// At least one of these bits is set while so many are counted that one more is refused.
pub(super) const OVER_LIMIT: u64 = holder_limit::limit_bits(!(READER - 1), READER);

pub(super) const COUNT_ME: Amo<u64> = Amo::Add(READER);
pub(super) const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());
/// N3.
const OPEN: Amo<u64> = Amo::Add(HELD);
/// N4.
const GIVE_UP: Amo<u64> = Amo::Add(ORPHAN.wrapping_sub(READER));

/// The words of a level that this rank's node, or its leader, uses.
pub(super) struct Level {
    /// The number of those counted, and flags.
    pub(super) count: RemoteWord<u64>,
    /// The top of the stack of those that wait.
    pub(super) waiting: RemoteWord<u64>,
}

impl Level {
    pub(super) fn over(fabric: &Fabric, memory: &GroupMemory, meeting: Meeting) -> Result<Self, FabricError> {
        let word = |at| fabric.remote_word(memory.at(meeting.at, (offset(meeting.level) + at) as u64)?);
        Ok(Level { count: word(0)?, waiting: word(8)? })
    }
}

impl Stair {
    /// N2: claims a level left without a leader; the first rank to ask gets it. Returns the
    /// previous word.
    pub(super) async fn claim(&self, level: usize) -> Result<u64, Stopped> {
        Ok(self.queue.fabric.fetch_and(&self.levels[level].count, !ORPHAN).await?)
    }

    /// N3, once the level above `level` is held: lets in those that wait, and `below`, which this
    /// rank was to wake.
    pub(super) async fn open(&self, level: usize, below: Option<NodeId>) -> Result<(), Stopped> {
        let old = self.queue.fabric.atomic(&self.levels[level].count, OPEN).await?;
        if old > READER {
            self.sweep(level, Wait::Granted).await?;
        }
        self.wake(level, below, Wait::Granted).await
    }

    /// N4: gives up taking the level above `level`, as this rank was to do; if others are counted,
    /// one of them has to.
    pub(super) async fn orphan(&self, level: usize, below: Option<NodeId>) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        let old = fabric.atomic(&self.levels[level].count, GIVE_UP).await?;
        if old == READER {
            // Fails if another reader came; it saw the flag.
            fabric.compare_swap(&self.levels[level].count, ORPHAN, 0).await?;
            return Ok(());
        }
        self.sweep(level, Wait::Offered).await?;
        self.wake(level, below, Wait::Offered).await
    }

    /// Takes the stack of `level` and wakes its top node, whose owner wakes the next. A node pushed
    /// before the flag that `how` stands for was set is on the stack; the owner of one pushed later
    /// sees the flag. Those on the stack are counted, so the flag [`HELD`] stays.
    pub(super) async fn sweep(&self, level: usize, how: Wait) -> Result<(), Stopped> {
        let top = self.queue.fabric.swap(&self.levels[level].waiting, 0).await?;
        let top = self.queue.decode("waiting", top)?;
        self.wake(level, top, how).await
    }

    /// Wakes `node`, if there is one, and those below it as long as they gave up. The latter are
    /// uncounted.
    pub(super) async fn wake(&self, level: usize, mut node: Option<NodeId>, how: Wait) -> Result<(), Stopped> {
        while let Some(reader) = node.take() {
            if !self.queue.wake_to(reader, how).await? {
                node = self.queue.pop_abandoned(reader).await?;
                if let Err(Stopped::GaveUp(error) | Stopped::Broken(error)) = self.leave_from(level, None).await {
                    return Err(Stopped::Broken(error));
                }
            }
        }
        Ok(())
    }

    /// N5–N7 from `level` up: uncounts one there and, as long as that was the last one, one in the
    /// level above. The atomic of `level` may already have been executed, and have found `first` in
    /// the word.
    pub(super) async fn leave_from(&self, level: usize, mut first: Option<u64>) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        for level in &self.levels[level..] {
            let old = match first.take() {
                Some(old) => old,
                None => fabric.atomic(&level.count, UNCOUNT_ME).await?,
            };
            match old {
                LAST_INSIDE => {
                    // Fails if another reader came, and is inside, or if another rank was faster.
                    if fabric.compare_swap(&level.count, HELD, 0).await? != HELD {
                        return Ok(());
                    }
                }
                LAST_ORPHAN => {
                    fabric.compare_swap(&level.count, ORPHAN, 0).await?;
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
        self.above.leave().await.map_err(Stopped::GaveUp)
    }
}

/// The word that the last one to leave finds.
pub(super) const LAST_INSIDE: u64 = READER + HELD;
const LAST_ORPHAN: u64 = READER + ORPHAN;
