//! What a rank's fabric asks about ranks that may die. Of those that may not nothing is asked.

use crate::{
    act::{Act, Answer},
    fabric::ExploreFabric,
    look::Look,
    loss::{Ranks, first},
};
use rdma_fabric::{Deps, FabricError, Rank, Result};

impl ExploreFabric {
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

    /// To be asked by a wait that is not satisfied, in the same moment.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`] if this rank knows that one of `deps` is lost.
    pub(crate) fn hopeful(&self, deps: &Deps<'_>, look: &Look) -> Result<()> {
        let me = self.session.rank;
        let mortal = self.session.others_that_may_die().filter(|rank| deps.contains(*rank, me));
        let mortal = mortal.fold(0, |ranks, rank| ranks | crate::loss::bit(rank));
        if mortal == 0 {
            return Ok(());
        }
        let Some(Answer::Value(lost)) = self.session.ask(Act::LostAmong(mortal)) else { return Ok(()) };
        match first(lost as Ranks) {
            Some(rank) => {
                self.session.went_on();
                Err(FabricError::PeerLost { rank })
            }
            None => {
                look.not_ready();
                Ok(())
            }
        }
    }
}
