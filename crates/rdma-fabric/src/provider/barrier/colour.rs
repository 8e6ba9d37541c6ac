//! Hardware barriers by colour: the trait that a provider implements, and the errors.

use crate::{Deps, Rank, Result, provider::WaitState};
use core::task::{Context, Poll};

/// The reason why a hardware barrier is refused or fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColourError {
    /// There is no such colour.
    #[error("there is no colour {colour}: the network has {colours}")]
    NoSuchColour {
        /// The colour asked for.
        colour: u32,
        /// The number of colours; the first is 0.
        colours: u32,
    },
    /// Another barrier holds the colour at a member's node.
    #[error("colour {colour} is in use at the node of {rank}")]
    Taken {
        /// The colour asked for.
        colour: u32,
        /// The member.
        rank: Rank,
    },
    /// The members' nodes are not all nodes of a box: of a line, a rectangle, a cuboid.
    #[error("the nodes of these {members} members do not fill a box")]
    NoBox {
        /// The number of members.
        members: usize,
    },
    /// Two members run on one node, which signals once.
    #[error("{first} and {second} share a node")]
    SharedNode {
        /// One of them.
        first: Rank,
        /// The other.
        second: Rank,
    },
    /// Members of the group requested different colours.
    #[error("{rank} asked for colour {colour}, and not for {own}")]
    Disagreement {
        /// Another member.
        rank: Rank,
        /// The colour that it requested.
        colour: u32,
        /// The colour that this member requested.
        own: u32,
    },
    /// This rank has entered the barrier and not yet observed its end.
    #[error("a barrier of colour {0} is in progress")]
    Outstanding(u32),
    /// This rank has not entered the barrier.
    #[error("no barrier of colour {0} was started")]
    Idle(u32),
    /// A member has released the colour while others were in the barrier.
    #[error("{rank} has given colour {colour} back")]
    Freed {
        /// The colour.
        colour: u32,
        /// The member.
        rank: Rank,
    },
}

/// The hardware barriers of a rank's node, as a provider implements them: see
/// `fabric_offload::barrier::ColourBarrier`.
pub trait Colours {
    /// Returns the number of colours, at least 1.
    fn count(&self) -> u32;
    /// Claims a colour for this rank, as one of these members, for a barrier that all of them
    /// claim. Refuses either all members or none, except with [`ColourError::Taken`].
    ///
    /// # Errors
    /// [`ColourError::NoSuchColour`], [`ColourError::SharedNode`], [`ColourError::NoBox`],
    /// [`ColourError::Taken`].
    fn claim(&self, colour: u32, members: &[Rank]) -> Result<()>;
    /// Releases a colour that this rank has claimed; otherwise does nothing.
    fn free(&self, colour: u32);
    /// Enters the barrier.
    ///
    /// # Errors
    /// [`ColourError::Outstanding`].
    fn start(&self, colour: u32) -> Result<()>;
    /// Waits for all members to enter it.
    ///
    /// # Errors
    /// [`ColourError::Idle`], [`ColourError::Freed`]; [`crate::FabricError::PeerLost`] of a rank in `deps`.
    fn poll(&self, wait_state: &mut WaitState, colour: u32, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>>;
    /// Ends a wait. Called for every wait state that is not empty.
    fn end_wait(&self, wait_state: &mut WaitState);
}
