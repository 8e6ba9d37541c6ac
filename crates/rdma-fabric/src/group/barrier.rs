//! Dissemination barrier: in round k every member tells the one 2^k further on.

use super::{Group, control::Field, control::theirs};
use crate::{Fabric, Result};

impl<F: Fabric> Group<F> {
    /// Wait until every member has called it. Puts of any member that were flushed before are
    /// visible to all members afterwards.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`] if a member died, [`crate::FabricError::PeersLeft`] if they finished.
    pub async fn barrier(&mut self) -> Result<()> {
        self.epoch += 1;
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
            let epoch = self.epoch;
            self.wait_for(&mine, |reached| reached >= epoch).await?;
        }
        Ok(())
    }
}
