//! Hardware barriers by colour, as members use them.

use super::{ColourError, Colours};
use core::{
    fmt,
    future::{Future, poll_fn},
};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, Rank, Result,
    provider::{Boxed, WaitGuard},
};

fn colours(fabric: &Fabric) -> Result<&dyn Colours> {
    fabric.provider().colours().ok_or(FabricError::Unsupported { feature: &"hardware barriers" })
}

/// A barrier executed by the network's switches.
///
/// Every member sends a signal to the switches, which send one back to every member, in a time that
/// does not depend on the number of members. This requires that the members run on different nodes
/// that fill a *box*: a line, a rectangle, a cuboid. Switches distinguish barriers by *colour*, a
/// small number; a node belongs to one barrier of each colour at a time.
///
/// Persistent, like [`super::Barrier`]: between [`start`](ColourBarrier::start) and
/// [`wait`](ColourBarrier::wait) the rank may compute. Dropping it releases the colour; members
/// that are still in a barrier with it then receive [`ColourError::Freed`]. It does not make puts
/// visible: flush them before [`start`](ColourBarrier::start).
///
/// ```
/// use fabric_offload::barrier::ColourBarrier;
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// async fn steps(fabric: Fabric) -> ProgramResult<()> {
///     let mut world = Group::world(&fabric).await?;
///     if ColourBarrier::colours(&fabric) > 0 {
///         let mut barrier = ColourBarrier::claim(&mut world, 0).await?;
///         for _ in 0..10 {
///             barrier.start()?;
///             barrier.wait().await?;
///         }
///     }
///     Ok(())
/// }
/// # tofu2_sim::shm::Threads::new(3).run(&steps).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 3).run(&steps).unwrap();
/// ```
///
/// Source: the SR8000's hardware barrier (`hmpp_barrier`), with colours 0 to 7.
pub struct ColourBarrier {
    fabric: Fabric,
    colour: u32,
    members: Box<[Rank]>,
}

impl ColourBarrier {
    /// Returns the number of the network's colours, which are numbered from 0; 0 if it has no such
    /// barriers.
    pub fn colours(fabric: &Fabric) -> u32 {
        fabric.provider().colours().map_or(0, Colours::count)
    }

    /// Claims a colour for the members of a group: at all of them, or at none. Collective.
    ///
    /// # Errors
    /// Every member receives the same kind of error: [`ColourError::NoSuchColour`],
    /// [`ColourError::NoBox`], [`ColourError::SharedNode`], [`ColourError::Taken`],
    /// [`ColourError::Disagreement`], [`FabricError::Unsupported`] if there are no such barriers;
    /// and as [`Group::allgather`].
    pub fn claim(group: &mut Group, colour: u32) -> impl Future<Output = Result<Self>> {
        let claimed: Boxed<'_, Result<Self>> = Box::pin(Self::claim_all(group, colour));
        claimed
    }

    async fn claim_all(group: &mut Group, colour: u32) -> Result<Self> {
        let members = (0..group.len()).map(|member| group.rank(member)).collect::<Result<Box<[Rank]>>>()?;
        let fabric = group.fabric().clone();
        let mine = colours(&fabric)?.claim(colour, &members);
        // Releases the colour unless all members have it.
        let claimed = mine.is_ok().then(|| ColourBarrier { fabric, colour, members });
        let all = group.allgather([u64::from(colour), u64::from(claimed.is_some())]).await?;
        for (member, [theirs, _]) in all.iter().enumerate() {
            if *theirs != u64::from(colour) {
                let other = group.rank(member)?;
                return Err(ColourError::Disagreement { rank: other, colour: *theirs as u32, own: colour }.into());
            }
        }
        mine?;
        match (all.iter().position(|[_, has]| *has == 0), claimed) {
            (None, Some(claimed)) => Ok(claimed),
            (refused, _) => Err(ColourError::Taken { colour, rank: group.rank(refused.unwrap_or(0))? }.into()),
        }
    }

    /// Returns the colour.
    pub fn colour(&self) -> u32 {
        self.colour
    }

    /// Enters the barrier. Never blocks. In virtual time the CPU is busy for as long as a post
    /// takes.
    ///
    /// # Errors
    /// [`ColourError::Outstanding`] if this member has not observed the end of the last one.
    pub fn start(&mut self) -> Result<()> {
        colours(&self.fabric)?.start(self.colour)
    }

    /// Waits until every member has entered. Dropping the future leaves the barrier in progress.
    ///
    /// # Errors
    /// [`ColourError::Idle`] if this member has not entered, [`ColourError::Freed`] if another one
    /// has released the colour, [`FabricError::PeerLost`] if another one was lost.
    pub fn wait(&mut self) -> impl Future<Output = Result<()>> {
        let (fabric, colour, deps) = (&self.fabric, self.colour, Deps::Ranks(&self.members));
        let mut wait = WaitGuard::new(|wait_state, _| {
            if let Ok(colours) = colours(fabric) {
                colours.end_wait(wait_state);
            }
        });
        poll_fn(move |cx| colours(fabric)?.poll(wait.state(), colour, deps, cx))
    }
}

impl Drop for ColourBarrier {
    fn drop(&mut self) {
        if let Ok(colours) = colours(&self.fabric) {
            colours.free(self.colour);
        }
    }
}

impl fmt::Debug for ColourBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColourBarrier(colour {}, {} members)", self.colour, self.members.len())
    }
}
