//! Communicators that continue without lost members.

use crate::{Communicator, FmplError, Result, area::Layout, state::ChannelId};
use rdma_fabric::{Deps, FabricError, GroupMemory, Rank, join::now};

/// The members that a communicator continues without.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    members: Vec<usize>,
    /// The areas, for waits that do not depend on these members.
    memory: Option<GroupMemory>,
}

impl Lost {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn contains(&self, member: usize) -> bool {
        self.members.binary_search(&member).is_ok()
    }
}

impl Communicator {
    /// Continues without the members that are lost by now (MPI's `MPI_Comm_ack_failed`), and
    /// returns all excluded members, in order. Local: members may acknowledge losses at different
    /// times, or never.
    ///
    /// A receive from any sender may wait for any member, so each loss ends it with
    /// [`PeerLost`](FabricError::PeerLost), which is returned until the loss is acknowledged.
    /// Afterwards
    ///
    /// * [`Communicator::recv_any`] waits for the other members, and takes no message of a lost
    ///   one;
    /// * messages from this member to a lost one are discarded, so [`Communicator::all_fetched`]
    ///   waits only for messages to other members, and sends can use their space in the spool;
    /// * sends to a lost member and receives from it still fail.
    ///
    /// Collectives need all members, so none can complete any longer, and neither can
    /// [`Communicator::finish`]. Members that continue together use a communicator that was
    /// [created](crate::Fmpl::create) for them before, or messages, and finally drop this one.
    ///
    /// # Errors
    /// [`FmplError::NoneLeft`] if no other member is left; [`FmplError::OtherThread`];
    /// [`FmplError::Fabric`].
    ///
    /// ```
    /// use fmpl::{Communicator, FmplError, Received};
    /// use rdma_fabric::{FabricError, LocalSpan};
    ///
    /// /// Receives from any member that lives; `lost` learns of those that do not.
    /// async fn recv_from_living(
    ///     world: &Communicator,
    ///     into: &LocalSpan<u64>,
    ///     mut lost: impl FnMut(&[usize]),
    /// ) -> fmpl::Result<Received> {
    ///     loop {
    ///         match world.recv_any(into, 0).await {
    ///             Err(FmplError::Fabric(FabricError::PeerLost { .. })) => lost(&world.acknowledge_losses()?),
    ///             received => return received,
    ///         }
    ///     }
    /// }
    /// ```
    pub fn acknowledge_losses(&self) -> Result<Vec<usize>> {
        let mut lost = Vec::new();
        for member in (0..self.len()).filter(|member| *member != self.me()) {
            if let Some(error) = self.loss_of(member)? {
                self.give_up(member, &error)?;
                lost.push(member);
            }
        }
        let ranks = lost.iter().map(|member| self.rank(*member)).collect::<Result<Vec<Rank>>>()?;
        let memory = (!ranks.is_empty()).then(|| self.memory.without(&ranks));
        self.with(|state| state.lost = Lost { members: lost.clone(), memory })?;
        if lost.len() + 1 == self.len() && !lost.is_empty() {
            return Err(FmplError::NoneLeft { lost: lost.len() });
        }
        Ok(lost)
    }

    /// Returns the error that reports the loss of a member, if it is lost.
    fn loss_of(&self, member: usize) -> Result<Option<FmplError>> {
        let (me, rank) = (self.memory.member(self.me())?, self.rank(member)?);
        // An operation may detect the loss before a wait does. A member whose areas no longer exist
        // has dropped them, which is not a loss.
        let areas = self.fabric.remote_word::<u64>(self.memory.at(rank, Layout::DOORBELL as u64)?);
        if let Err(error @ FabricError::PeerLost { .. }) = areas {
            return Ok(Some(error.into()));
        }
        let doorbell = self.fabric.local_word::<u64>(self.memory.at(me, Layout::DOORBELL as u64)?)?;
        match now(self.fabric.wait_until(&doorbell, Deps::One(rank), |_| false)) {
            Some(Err(error @ FabricError::PeerLost { .. })) => Ok(Some(error.into())),
            // A member that has finished is not lost.
            None | Some(Ok(_) | Err(FabricError::PeersLeft)) => Ok(None),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Discards the messages to a member.
    fn give_up(&self, member: usize, error: &FmplError) -> Result<()> {
        self.with(|state| {
            let Some(peer) = state.place_of(member).filter(|_| !state.lost.contains(member)) else { return };
            for channel in 0..self.layout.channels() {
                state.give_up(ChannelId { peer, channel }, error.clone());
            }
        })
    }

    /// Returns the memory whose dependencies are those of a receive from any sender.
    pub(crate) fn living(&self) -> Result<GroupMemory> {
        self.with(|state| {
            if state.lost.members.len() + 1 == self.len() && self.len() > 1 {
                return Err(FmplError::NoneLeft { lost: state.lost.members.len() });
            }
            Ok(state.lost.memory.as_ref().unwrap_or(&self.memory).clone())
        })?
    }
}
