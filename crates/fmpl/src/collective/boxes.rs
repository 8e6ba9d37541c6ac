//! The barrier where the network has none for the members: the flags of the tree up, and the network's
//! multicast down (`hmpp_barrier` outside of the hardware's conditions: paper, sections 4.3 and 5.2).
//!
//! A multicast reaches only members that fill a box of the network. So the members are divided into
//! runs of consecutive numbers, each of which fills one. The first member of a run is its *leader*;
//! member 0, which is also the root of the tree, is one of them. When all members have arrived at the
//! root, it signals to the other leaders, and each leader multicasts the number of the barrier to its
//! run:
//! ```text
//! all members  ---tree of flags--->  member 0  ---flag--->  leaders
//!                                        |                     |
//!                                        `--multicast: run 0   `--multicast: the other runs
//! ```
//!
//! # Why no release is lost
//! A member's word is written once per barrier, by its leader's multicast, and the next one is posted
//! only after this member has arrived at the next barrier, which is after it has seen this release. A
//! leader's own word may be written late, since the leader does not wait for it; nothing reads it. The
//! flags between the root and a leader follow the rules of the other flags: the leader's arrival shows
//! that it has received the one before.

use crate::{
    Communicator, FmplError, Result,
    collective::{
        Part,
        edge::{Edge, Way},
    },
};
use core::fmt;
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, GroupMemory, LocalWord, MulticastSpan, Multicasts, Rank, RemoteWord,
    join::{Either, join, join_all, race},
};

/// The offsets of the word that releases a member, and of the word that contains the member that left.
const RELEASED: usize = 0;
const LEFT: usize = 64;
const BYTES: usize = 128;

pub(crate) struct Boxes {
    memory: GroupMemory,
    released: LocalWord<u64>,
    left: LocalWord<u64>,
    /// The leader of this member's run.
    leader: usize,
    /// The words of the run, if this member leads one of several members.
    run: Option<MulticastSpan<u64>>,
    /// At the root: the other leaders.
    leaders: Box<[usize]>,
    /// The number of barriers that this member has begun.
    barriers: u64,
}

impl fmt::Debug for Boxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Boxes(leader {}, {} barriers)", self.leader, self.barriers)
    }
}

impl Boxes {
    /// Allocates memory at all ranks. Collective over the job.
    pub(crate) async fn memory(fabric: &Fabric) -> Result<GroupMemory> {
        Ok(GroupMemory::symmetric(fabric, BYTES).await?)
    }

    /// Divides the members into runs; `None` if there are no multicasts, or if each run would be a
    /// single member.
    pub(crate) fn new(group: &Group, memory: GroupMemory) -> Result<Option<Self>> {
        let (fabric, me) = (group.fabric(), group.me());
        let ranks: Vec<Rank> = (0..group.len()).map(|member| group.rank(member)).collect::<Result<_, _>>()?;
        let leaders = leaders(fabric, &ranks)?;
        if leaders.len() == ranks.len() {
            return Ok(None);
        }
        let run = leaders.partition_point(|leader| *leader <= me);
        let (leader, end) = (leaders[run - 1], leaders.get(run).copied().unwrap_or(ranks.len()));
        let everywhere = |from: usize, to: usize| {
            let at = ranks[from..to].iter().map(|rank| memory.at(*rank, RELEASED as u64));
            MulticastSpan::new(fabric, &at.collect::<Result<Vec<_>, _>>()?, 1)
        };
        let leads = me == leader && end - leader > 1;
        let own = |offset: usize| fabric.local_word::<u64>(memory.at(fabric.rank(), offset as u64)?);
        Ok(Some(Boxes {
            released: own(RELEASED)?,
            left: own(LEFT)?,
            leader,
            run: if leads { Some(everywhere(leader, end)?) } else { None },
            leaders: if me == 0 { leaders[1..].into() } else { Box::default() },
            memory,
            barriers: 0,
        }))
    }

    /// Returns the words at all other members that record which member has left.
    pub(crate) fn left_words(&self, comm: &Communicator) -> Vec<RemoteWord<u64>> {
        let others = comm.memory.ranks().filter(|rank| *rank != comm.fabric.rank());
        others.filter_map(|rank| comm.fabric.remote_word(self.memory.at(rank, LEFT as u64).ok()?).ok()).collect()
    }

    fn deps<'a>(&self, comm: &'a Communicator) -> Result<Deps<'a>> {
        Ok(Deps::Step { writer: comm.rank(self.leader)?, group: comm.listed.as_deref() })
    }

    /// Waits until the leader releases this member.
    async fn released(&self, comm: &Communicator) -> Result<()> {
        let (fabric, deps) = (&comm.fabric, self.deps(comm)?);
        let released = fabric.wait_until(&self.released, deps, |barrier| barrier >= self.barriers);
        let left = fabric.wait_until(&self.left, deps, |member| member != 0);
        match comm.progressing(race(released, left)).await {
            Either::First(Err(FabricError::PeersLeft)) | Either::Second(Ok(_) | Err(FabricError::PeersLeft)) => {}
            Either::First(Ok(_)) => return Ok(()),
            Either::First(Err(error)) | Either::Second(Err(error)) => return Err(error.into()),
        }
        match fabric.load(&self.released)? >= self.barriers {
            true => Ok(()),
            false => Err(self.member_left(comm)?),
        }
    }

    /// Waits until the root signals to this leader.
    async fn signalled(&self, comm: &Communicator, root: &Edge<'_>) -> Result<()> {
        let left = comm.fabric.wait_until(&self.left, self.deps(comm)?, |member| member != 0);
        match race(Box::pin(root.signalled(Way::Down)), left).await {
            Either::First(signalled) => signalled,
            Either::Second(Ok(_)) => Err(self.member_left(comm)?),
            // Its signal may have arrived before.
            Either::Second(Err(FabricError::PeersLeft)) => Box::pin(root.signalled(Way::Down)).await,
            Either::Second(Err(error)) => Err(error.into()),
        }
    }

    /// Returns the error with the member that has left.
    fn member_left(&self, comm: &Communicator) -> Result<FmplError> {
        let member = (comm.fabric.load(&self.left)? as usize).checked_sub(1);
        Ok(FmplError::MemberLeft { member: member.unwrap_or(self.leader) })
    }

    /// Releases the other members of the run.
    async fn release(&self, fabric: &Fabric) -> Result<()> {
        if let Some(run) = &self.run {
            run.put(fabric, [self.barriers]).await?;
        }
        Ok(())
    }
}

/// Returns the first members of runs that multicasts reach. A run grows member by member, then by
/// multiples of what it has reached, as lines of a network are followed by planes.
fn leaders(fabric: &Fabric, ranks: &[Rank]) -> Result<Vec<usize>> {
    let reaches = |from: usize, len: usize| match Multicasts::reach(fabric, &ranks[from..from + len]) {
        Ok(()) => Ok(true),
        Err(FabricError::Multicast(_) | FabricError::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    let (mut leaders, mut first) = (Vec::new(), 0);
    while first < ranks.len() {
        let rest = ranks.len() - first;
        let mut len = if reaches(first, rest)? { rest } else { 1 };
        while len < rest && reaches(first, len + 1)? {
            len += 1;
        }
        let line = len;
        while line <= rest - len && reaches(first, len + line)? {
            len += line;
        }
        leaders.push(first);
        first += len;
    }
    Ok(leaders)
}

impl Part<'_> {
    /// Meets all members: up the tree, and down by multicast.
    pub(crate) async fn meet_in_boxes(&mut self) -> Result<()> {
        self.take_hardware()?;
        let boxes = self.hardware.as_mut().and_then(|hardware| hardware.boxes.as_deref_mut());
        let Some(boxes) = boxes else { return Err(FabricError::Unsupported { feature: &"multicast" }.into()) };
        boxes.barriers += 1;
        let (comm, me) = (self.comm, self.comm.me());
        for leader in &boxes.leaders {
            self.released.push(Edge::new(comm, *leader).await?);
        }
        let root = if me == boxes.leader && me > 0 { Some(Edge::new(comm, 0).await?) } else { None };
        for child in &self.children {
            child.signalled(Way::Up).await?;
        }
        if let Some(parent) = &self.parent {
            parent.signal(Way::Up).await?;
            match &root {
                Some(root) => boxes.signalled(comm, root).await?,
                None => boxes.released(comm).await?,
            }
        }
        let signals = join_all(self.released.iter().map(|leader| leader.signal(Way::Down)));
        let (signalled, released) = join(signals, boxes.release(&comm.fabric)).await;
        released.and(signalled.into_iter().collect())
    }
}
