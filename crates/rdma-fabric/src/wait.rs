//! Whom a wait depends on.

use crate::Rank;

/// The ranks without which a wait can't end.
///
/// The loss of one of them ends the wait with [`crate::FabricError::PeerLost`]; when all of them have finished
/// their programs, it ends with [`crate::FabricError::PeersLeft`]. The smaller the set, the fewer
/// strangers' deaths disturb the wait.
#[derive(Clone, Copy, Debug, Default)]
pub enum Deps<'a> {
    /// Every other rank of the job: the safe default.
    #[default]
    All,
    /// One rank.
    One(Rank),
    /// These ranks.
    Ranks(&'a [Rank]),
    /// A step of what a group does together: `writer` alone can end the wait, and waits for others of the group in turn. The loss of any
    /// of them ends it with [`crate::FabricError::PeerLost`]; when the writer has finished, it ends with
    /// [`crate::FabricError::PeersLeft`], whoever else is still there.
    Step {
        /// Who writes what is waited for.
        writer: Rank,
        /// The ranks of the group; `None` is every other rank of the job.
        group: Option<&'a [Rank]>,
    },
}

impl Deps<'_> {
    /// Whether `rank` is in the set, seen from `me` (nobody depends on himself under [`Deps::All`]).
    pub fn contains(&self, rank: Rank, me: Rank) -> bool {
        match self {
            Deps::All => rank != me,
            Deps::One(one) => *one == rank,
            Deps::Ranks(ranks) => ranks.contains(&rank),
            Deps::Step { writer, group } => *writer == rank || group.map_or(rank != me, |ranks| ranks.contains(&rank)),
        }
    }
}
