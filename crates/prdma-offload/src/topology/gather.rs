//! A distributed graph from edges that any member may contribute.
//!
//! No member knows which members contribute its edges. So a contributor sorts its edges by the
//! members at their ends and takes a ticket at each of these members. The members count the
//! tickets, allocate room for as many notes, and receive notes with the locations of their edges,
//! which they then fetch by gets. A member holds only the edges that it contributed and its own.

use super::{Topology, TopologyError, agreement::agreed};
use crate::{
    init::compiled_here,
    publish::{NOWHERE, TableHeader},
};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::{Fabric, FabricError, Group, GroupMemory, Region, RegionKey, RemoteAddr, Result, join::join_all};
use std::collections::HashMap;

/// An edge as one of its ends receives it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Half {
    /// The other end.
    peer: u64,
    /// 1 if the other end is the destination, 0 if it is the source.
    destination: u64,
}

/// The location of a contributor's edges for a member.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Note {
    contributor: u64,
    key: u64,
    /// The index of the first edge, and the number of edges.
    start: u64,
    count: u64,
}

/// Offsets in the memory of each member.
const TICKETS: u64 = 0;
const INBOX: u64 = 8;

impl Topology {
    /// Makes the graph of all edges that the members contribute, each a source and its
    /// destinations; any member may contribute any edge (`MPI_Dist_graph_create`). Collective over
    /// the group.
    ///
    /// Slots are in the order of the contributing members, then in the order in which each passed
    /// its edges. An edge that is passed several times becomes several edges.
    ///
    /// # Errors
    /// [`TopologyError::NoSuchEnd`] at all members; other errors of one member are
    /// [`TopologyError::Failed`] at the others. As [`Group::memory`], [`Group::barrier`].
    pub fn from_edges<'a>(
        group: &'a mut Group,
        edges: &'a [(usize, Vec<usize>)],
    ) -> impl Future<Output = Result<Topology, TopologyError>> {
        compiled_here(Topology::gather(group, edges))
    }

    async fn gather(group: &mut Group, edges: &[(usize, Vec<usize>)]) -> Result<Topology, TopologyError> {
        let memory = group.memory(TableHeader::BYTES).await?;
        let (me, members) = (group.me(), group.len());
        let all = || edges.iter().flat_map(|(source, to)| to.iter().map(|destination| (*source, *destination)));
        let ends = edges.iter().flat_map(|(source, to)| core::iter::once(source).chain(to)).copied();
        let inside = match ends.into_iter().find(|end| *end >= members) {
            Some(named) => Err(TopologyError::NoSuchEnd { contributor: me, named, members }),
            None => Ok(()),
        };
        let mut halves: HashMap<usize, Vec<Half>> = HashMap::new();
        for (source, destination) in all().filter(|_| inside.is_ok()) {
            let half = |peer: usize, destination| Half { peer: peer as u64, destination };
            halves.entry(source).or_default().push(half(destination, 1));
            halves.entry(destination).or_default().push(half(source, 0));
        }
        let mut halves: Vec<_> = halves.into_iter().collect();
        halves.sort_unstable_by_key(|(member, _)| *member);
        let mine = scattered(group, &memory, &halves).await?;
        let topology = inside.and(mine.map_err(TopologyError::from)).and_then(|mine| {
            let of = |side| mine.iter().filter(move |half| half.destination == side).map(|half| half.peer as usize);
            Topology::graph(members, me, &of(0).collect::<Vec<_>>(), &of(1).collect::<Vec<_>>())
        });
        agreed(group, topology).await
    }
}

/// Passes each of these members its half edges, and returns those of this member. The outer error has ended
/// the collective; the inner one is this member's.
async fn scattered(
    group: &mut Group,
    memory: &GroupMemory,
    halves: &[(usize, Vec<Half>)],
) -> Result<Result<Vec<Half>>> {
    let fabric = group.fabric().clone();
    let outbox =
        TableHeader::register(&fabric, &halves.iter().flat_map(|(_, halves)| halves).copied().collect::<Vec<_>>());
    let tickets = match &outbox {
        Ok(_) => tickets(group, memory, halves.iter().map(|(member, _)| member)).await,
        Err(error) => Err(error.clone()),
    };
    group.barrier().await?;
    let inbox = inbox(&fabric, memory);
    group.barrier().await?;
    let noted = match (&outbox, tickets) {
        (Ok((outbox, _)), Ok(tickets)) => note(group, memory, outbox.key, halves, tickets).await,
        (_, Err(error)) => Err(error),
        (Err(error), _) => Err(error.clone()),
    };
    group.barrier().await?;
    let read = match &inbox {
        Ok(inbox) => collect(group, inbox).await,
        Err(error) => Err(error.clone()),
    };
    group.barrier().await?;
    // Both stay registered until here.
    drop((outbox, inbox));
    Ok(noted.and(read))
}

/// Reserves a position in the inbox of each member.
async fn tickets(group: &Group, memory: &GroupMemory, members: impl Iterator<Item = &usize>) -> Result<Vec<u64>> {
    let fabric = group.fabric();
    let tickets = join_all(members.map(|member| async move {
        let word = fabric.remote_word::<u64>(memory.at(group.rank(*member)?, TICKETS)?)?;
        fabric.fetch_add(&word, 1).await
    }));
    tickets.await.into_iter().collect()
}

/// Allocates room for one note per ticket.
fn inbox(fabric: &Fabric, memory: &GroupMemory) -> Result<Option<(Region, usize)>> {
    let taken = fabric.load(&fabric.local_word::<u64>(memory.at(fabric.rank(), TICKETS)?)?)?;
    let notes = vec![Note { key: NOWHERE, ..Note::zeroed() }; taken as usize];
    let inbox = TableHeader::register(fabric, &notes);
    let key = inbox.as_ref().map_or(NOWHERE, |(inbox, _)| inbox.key);
    fabric.store(&fabric.local_word(memory.at(fabric.rank(), INBOX)?)?, key)?;
    Ok(inbox?.1.map(|region| (region, notes.len())))
}

/// Leaves a note at each member.
async fn note(
    group: &Group,
    memory: &GroupMemory,
    outbox: u64,
    halves: &[(usize, Vec<Half>)],
    tickets: Vec<u64>,
) -> Result<()> {
    let (fabric, contributor) = (group.fabric(), group.me() as u64);
    let mut start = 0;
    let notes = halves.iter().zip(tickets).map(|((member, halves), ticket)| {
        let note = Note { contributor, key: outbox, start, count: halves.len() as u64 };
        start += note.count;
        async move {
            let rank = group.rank(*member)?;
            let key = fabric.get_word(&fabric.remote_word::<u64>(memory.at(rank, INBOX)?)?).await?;
            let region = RegionKey::from_bits(key);
            if key == NOWHERE {
                return Err(FabricError::NoSuchRegion { rank, region });
            }
            let place = RemoteAddr { rank, region, offset: ticket * size_of::<Note>() as u64 };
            fabric.put(&fabric.remote_span::<Note>(place, 1)?, [note]).await.map(drop)
        }
    });
    let left: Result<()> = join_all(notes).await.into_iter().collect();
    left.and(fabric.flush_all().await)
}

/// Fetches the half edges to which the notes point, in the order of contributors.
async fn collect(group: &Group, inbox: &Option<(Region, usize)>) -> Result<Vec<Half>> {
    let Some((region, len)) = inbox else { return Ok(Vec::new()) };
    let fabric = group.fabric();
    let mut notes = vec![Note::zeroed(); *len];
    fabric.read(&region.span::<Note>(fabric, 0, *len)?, &mut notes)?;
    notes.sort_unstable_by_key(|note| note.contributor);
    let halves = join_all(notes.iter().map(|note| async move {
        let rank = group.rank(note.contributor as usize)?;
        let key = RegionKey::from_bits(note.key);
        let missing = || FabricError::NoSuchRegion { rank, region: key };
        let offset = note.start.checked_mul(size_of::<Half>() as u64).ok_or_else(missing)?;
        let from = RemoteAddr { rank, region: key, offset };
        let halves = fabric.remote_span::<Half>(from, usize::try_from(note.count).map_err(|_| missing())?)?;
        fabric.get(&halves, vec![Half::zeroed(); halves.len()]).await
    }));
    Ok(halves.await.into_iter().collect::<Result<Vec<_>>>()?.concat())
}
