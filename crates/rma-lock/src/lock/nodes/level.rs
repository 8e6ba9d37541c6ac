//! One level: its words, and the steps on them.

use super::{Stair, shape::Meeting};
use crate::{
    error::Stopped,
    lock::{
        holder_limit,
        queue::{LOCK_BYTES, NodeId, Wait},
    },
};
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, RemoteWord};

const LINE: usize = 64;

/// Returns the offset in bytes of a level's words in the lock's memory at each rank: the words of a
/// queue-based lock come first, followed by one cache line for each level.
pub(super) fn offset(level: usize) -> usize {
    LOCK_BYTES + level * LINE
}

/// The level above is held for all counted readers.
pub(super) const HELD: u64 = 1;
/// Readers are or were counted, but none of them is taking the level above: a reader that finds
/// this flag may claim that task.
pub(super) const ORPHAN: u64 = 2;
/// One reader that is inside or about to enter.
pub(super) const READER: u64 = 4;
/// At least one of these bits is set when the holder limit is reached.
pub(super) const OVER_LIMIT: u64 = holder_limit::limit_bits(!(READER - 1), READER);

pub(super) const COUNT_ME: Amo<u64> = Amo::Add(READER);
pub(super) const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());
/// N3.
const OPEN: Amo<u64> = Amo::Add(HELD);
/// N4.
const GIVE_UP: Amo<u64> = Amo::Add(ORPHAN.wrapping_sub(READER));

/// The words of a level that this rank's node, or its leader, uses.
pub(super) struct Level {
    /// The number of counted readers, and flags.
    pub(super) count: RemoteWord<u64>,
    /// The top of the stack of waiting readers.
    pub(super) waiting: RemoteWord<u64>,
}

impl Level {
    pub(super) fn over(fabric: &Fabric, memory: &GroupMemory, meeting: Meeting) -> Result<Self, FabricError> {
        let word = |at| fabric.remote_word(memory.at(meeting.at, (offset(meeting.level) + at) as u64)?);
        Ok(Level { count: word(0)?, waiting: word(8)? })
    }
}

impl Stair {
    /// N2: claims a level left without a leader; only the first rank succeeds. Returns the previous
    /// word.
    pub(super) async fn claim(&self, level: usize) -> Result<u64, Stopped> {
        Ok(self.queue.fabric.fetch_and(&self.levels[level].count, !ORPHAN).await?)
    }

    /// N3, once the level above `level` is held: admits the waiting readers, and `below`, which
    /// this rank was to wake.
    pub(super) async fn open(&self, level: usize, below: Option<NodeId>) -> Result<(), Stopped> {
        let old = self.queue.fabric.atomic(&self.levels[level].count, OPEN).await?;
        if old > READER {
            self.sweep(level, Wait::Granted).await?;
        }
        self.wake(level, below, Wait::Granted).await
    }

    /// N4: gives up the task of taking the level above `level`; if other readers are counted, one
    /// of them has to take it.
    pub(super) async fn orphan(&self, level: usize, below: Option<NodeId>) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        let old = fabric.atomic(&self.levels[level].count, GIVE_UP).await?;
        if old == READER {
            // Fails if another reader has arrived; it has found the flag.
            fabric.compare_swap(&self.levels[level].count, ORPHAN, 0).await?;
            return Ok(());
        }
        self.sweep(level, Wait::Offered).await?;
        self.wake(level, below, Wait::Offered).await
    }

    /// Takes the stack of `level` and wakes its top node, whose owner wakes the next. A node that
    /// was pushed before the flag of `how` was set is on the stack; the owner of a node that was
    /// pushed later finds the flag. The readers on the stack are counted, so the flag [`HELD`]
    /// stays set.
    pub(super) async fn sweep(&self, level: usize, how: Wait) -> Result<(), Stopped> {
        let top = self.queue.fabric.swap(&self.levels[level].waiting, 0).await?;
        let top = self.queue.decode("waiting", top)?;
        self.wake(level, top, how).await
    }

    /// Wakes `node`, if any, and the nodes below it as long as they were given up. The owners of
    /// the latter are uncounted.
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

    /// N5–N7 from `level` up: uncounts one reader there and, as long as that was the last one, one
    /// in the level above. The atomic of `level` may already have been executed, with the result
    /// `first`.
    pub(super) async fn leave_from(&self, level: usize, mut first: Option<u64>) -> Result<(), Stopped> {
        let fabric = &self.queue.fabric;
        for level in &self.levels[level..] {
            let old = match first.take() {
                Some(old) => old,
                None => fabric.atomic(&level.count, UNCOUNT_ME).await?,
            };
            match old {
                LAST_INSIDE => {
                    // Fails if another reader has arrived and is inside, or if another rank was
                    // faster.
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

/// The word that the last reader to leave finds.
pub(super) const LAST_INSIDE: u64 = READER + HELD;
const LAST_ORPHAN: u64 = READER + ORPHAN;
