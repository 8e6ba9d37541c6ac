//! Dissemination barrier: in round k every member tells the one 2^k further on.

use super::{Group, absence::Phase, control::Field, control::theirs};
use crate::Result;

impl Group {
    /// Wait until every member has called it. Puts of any member that were flushed before are
    /// visible to all members afterwards.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`] if a member died; [`crate::FabricError::MemberLeft`] if one finished without having come, and
    /// [`crate::FabricError::StaleRegion`] if it has dropped its part of the group. Every member that comes is told.
    pub async fn barrier(&mut self) -> Result<()> {
        self.is_whole()?;
        self.epoch += 1;
        let met = self.meet().await;
        self.told(Phase::Numbered, met).await
    }

    async fn meet(&self) -> Result<()> {
        let (n, me) = (self.len(), self.me);
        for round in 0..self.rounds() {
            let next = (me + (1 << round)) % n;
            let rank = self.rank(next)?;
            let word = theirs(&self.fabric, rank, self.key(next), round, Field::Barrier)?;
            // Puts are not ordered among themselves: the number of the barrier before, still on its way, must not
            // land on top of this one.
            self.fabric.flush(rank).await?;
            self.fabric.put_word(&word, self.epoch).await?;
            let mine = self.control.own(&self.fabric, round, Field::Barrier)?;
            let before = (me + n - (1 << round)) % n;
            self.wait_for(&mine, before, self.epoch).await?;
        }
        Ok(())
    }
}
