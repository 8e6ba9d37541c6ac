//! One level: its words, and the steps on them.

use super::{
    Stair,
    above::Above,
    layout::{self, Word},
    shape::Meeting,
};
use crate::{
    Result, crowd,
    error::Trouble,
    queue::{NodeId, Part, Wait},
};
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, RemoteWord};

/// What is above is held for all that are counted.
pub(super) const HELD: u64 = 1;
/// Somebody is counted, or was, and nobody takes what is above: who sees this may claim that.
pub(super) const ORPHAN: u64 = 2;
/// One that is inside, or comes.
pub(super) const READER: u64 = 4;
/// One of these is set while so many are counted that one more is refused.
pub(super) const TOO_MANY: u64 = crowd::too_many(!(READER - 1), READER);

pub(super) const COUNT_ME: Amo<u64> = Amo::Add(READER);
pub(super) const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());
/// N3.
const OPEN: Amo<u64> = Amo::Add(HELD);
/// N4.
const GIVE_UP: Amo<u64> = Amo::Add(ORPHAN.wrapping_sub(READER));

/// The words of a level, of which this rank's node, or its leader, is a client.
pub(super) struct Level {
    /// How many are counted, and flags.
    pub(super) count: RemoteWord<u64>,
    /// The top of the stack of those that wait.
    pub(super) waiting: RemoteWord<u64>,
}

impl Level {
    pub(super) fn over(fabric: &Fabric, memory: &GroupMemory, meeting: Meeting) -> Result<Self, FabricError> {
        let word = |word| fabric.remote_word(memory.at(meeting.at, layout::offset(meeting.level, word))?);
        Ok(Level { count: word(Word::Count)?, waiting: word(Word::Waiting)? })
    }
}

impl<A: Above> Stair<A> {
    /// N2. What was left without a leader is this rank's to take, if it is the first that asks. Yields the word before.
    pub(super) async fn claim(&self, level: usize) -> Result<u64, Trouble> {
        Ok(self.queue.fabric.fetch_and(&self.levels[level].count, !ORPHAN).await?)
    }

    /// N3. What is above `level` is held: let those in that wait, and `below`, that this rank was to wake.
    pub(super) async fn open(&self, level: usize, below: Option<NodeId>) -> Result<(), Trouble> {
        let old = self.queue.fabric.atomic(&self.levels[level].count, OPEN).await?;
        if old > READER {
            self.sweep(level, Wait::Granted).await?;
        }
        self.wake(level, below, Wait::Granted).await
    }

    /// N4. This rank was to take what is above `level`, and will not: somebody else has to, if others are counted.
    pub(super) async fn orphan(&self, level: usize, below: Option<NodeId>) -> Result<(), Trouble> {
        let fabric = &self.queue.fabric;
        let old = fabric.atomic(&self.levels[level].count, GIVE_UP).await?;
        if old == READER {
            // Fails if somebody came, who saw it.
            fabric.compare_swap(&self.levels[level].count, ORPHAN, 0).await?;
            return Ok(());
        }
        self.sweep(level, Wait::Offered).await?;
        self.wake(level, below, Wait::Offered).await
    }

    /// Take the stack of `level` and wake its top, who wakes the next. Who was pushed before the flag that `how` stands for was set is there, who is
    /// pushed later sees the flag. Those there are counted, so that the flag [`HELD`] stays.
    pub(super) async fn sweep(&self, level: usize, how: Wait) -> Result<(), Trouble> {
        let top = self.queue.fabric.swap(&self.levels[level].waiting, 0).await?;
        let top = self.queue.decode("waiting", top)?;
        self.wake(level, top, how).await
    }

    /// Wake `node`, if it is one; those below it, as long as they gave up. These are uncounted.
    pub(super) async fn wake(&self, level: usize, mut node: Option<NodeId>, how: Wait) -> Result<(), Trouble> {
        while let Some(reader) = node.take() {
            if !self.queue.wake_to(reader, how).await? {
                let below = self.queue.fabric.get_word(&self.queue.node(reader, Part::Next)?).await?;
                node = self.queue.decode("next", below)?;
                self.queue.retire(reader).await?;
                if let Err(Trouble::GaveUp(error) | Trouble::Broken(error)) = self.leave_from(level, None).await {
                    return Err(Trouble::Broken(error));
                }
            }
        }
        Ok(())
    }

    /// N5–N7 from `level` up: uncount one there, and as long as that was the last one, in the level above. The atomic of `level` may have
    /// been executed, and have found the word `first`.
    pub(super) async fn leave_from(&self, level: usize, mut first: Option<u64>) -> Result<(), Trouble> {
        let fabric = &self.queue.fabric;
        for level in &self.levels[level..] {
            let old = match first.take() {
                Some(old) => old,
                None => fabric.atomic(&level.count, UNCOUNT_ME).await?,
            };
            match old {
                LAST_INSIDE => {
                    // Fails if somebody came, who is inside, or if somebody else was faster.
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
        self.above.leave().await.map_err(Trouble::GaveUp)
    }
}

/// What the last one finds that leaves.
pub(super) const LAST_INSIDE: u64 = READER + HELD;
const LAST_ORPHAN: u64 = READER + ORPHAN;
