//! What a rank's fabric asks about ranks that may die. Of those that may not nothing is asked.

use crate::{
    act::{Act, Answer},
    fabric::Seat,
    look::Waiter,
    loss::{Ranks, bit, first},
};
use rdma_fabric::{Deps, FabricError, Rank, Result};

impl Seat {
    /// # Errors
    /// [`FabricError::PeerLost`] if this rank knows that `rank` is lost.
    pub(crate) fn alive(&self, rank: Rank) -> Result<()> {
        if !self.session.others_that_may_die().any(|mortal| mortal == rank) {
            return Ok(());
        }
        let answer = self.session.ask(Act::IsLost(rank));
        self.session.went_on();
        if answer == Some(Answer::Value(1)) { Err(FabricError::PeerLost { rank }) } else { Ok(()) }
    }

    /// To be asked by a wait that is not satisfied, in the same moment: the look that comes after an error would find the same, and is
    /// [told so](Seat::look_after_a_loss).
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if this rank knows that one of `deps` is lost.
    pub(crate) fn hopeful(&self, deps: &Deps<'_>, waiter: Waiter) -> Result<()> {
        let me = self.session.rank;
        let mortal = self.session.others_that_may_die().filter(|rank| deps.contains(*rank, me));
        let mortal = mortal.fold(0, |ranks, rank| ranks | bit(rank));
        if mortal == 0 {
            return Ok(());
        }
        let Some(Answer::Value(lost)) = self.session.ask(Act::LostAmong(mortal)) else { return Ok(()) };
        match first(lost as Ranks) {
            Some(rank) => {
                self.session.went_on();
                self.session.hopeless.set(Some(rank));
                Err(FabricError::PeerLost { rank })
            }
            None => {
                self.session.has_to_wait(waiter);
                Ok(())
            }
        }
    }

    /// What a look is told that comes after the end of its wait.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if that was the end.
    pub(crate) fn look_after_a_loss(&self) -> Result<()> {
        self.session.hopeless.take().map_or(Ok(()), |rank| Err(FabricError::PeerLost { rank }))
    }
}
