//! A group whose members know their neighbours, and its persistent exchanges: the general form, and
//! those built on it.

use crate::{
    Buffer, Layout, Options, Request, Result,
    buffer::Memory,
    init::{self, Block, Blocks, Channel, Presented, RequestBuilder, Wish, check, compiled_here},
    layout::LayoutError,
    publish::TableHeader,
    topology::Topology,
    transient::Mailboxes,
};
use core::fmt;
use rdma_fabric::{Group, GroupMemory, Pod, provider::Boxed};

/// A group of ranks with a topology (MPI: a communicator with a topology), on which requests are
/// made.
///
/// All members make the same collective calls on it in the same order.
///
/// ```
/// use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options};
/// use rdma_fabric::{Fabric, Group, ProgramResult};
///
/// /// Each member of a ring sends its number to both neighbours, ten times.
/// async fn ring(fabric: Fabric) -> ProgramResult<()> {
///     let group = Group::world(&fabric).await?;
///     let (me, members) = (group.me(), group.len());
///     let topology = Cartesian::new(&[members], &[true])?.topology(me);
///     let mut hood = Neighbourhood::new(group, topology).await?;
///     // Slot 0 is the left neighbour, slot 1 the right one, in both buffers.
///     let (send, receive) = (Buffer::<u64>::new(&fabric, 2)?, Buffer::<u64>::new(&fabric, 2)?);
///     let mut exchange = hood.alltoall_init(&send, &receive, 1, &Options::form(Form::Cpu)).await?;
///     for step in 0..10 {
///         send.write(0, &[me as u64 + step; 2])?;
///         exchange.start().await?;
///         exchange.wait().await?;
///         let [left, right] = [(me + members - 1) % members, (me + 1) % members];
///         assert_eq!(receive.to_vec()?, [left as u64 + step, right as u64 + step]);
///     }
///     // A buffer may be freed once no neighbour sends to it.
///     Ok(hood.group_mut().barrier().await?)
/// }
/// # checks::documented::run(4, &ring);
/// ```
pub struct Neighbourhood {
    pub(crate) group: Group,
    pub(crate) topology: Topology,
    pub(crate) channels: Vec<Channel>,
    /// The memory through which members publish tables to each other.
    pub(crate) headers: GroupMemory,
    /// Mailboxes of exchanges that are not persistent; created by the first such exchange.
    pub(crate) mailboxes: Option<Mailboxes>,
}

impl fmt::Debug for Neighbourhood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbourhood({:?}, {} channels)", self.group, self.channels.len())
    }
}

impl Neighbourhood {
    /// Assigns each member of `group` the neighbours in its topology. Collective.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`rdma_fabric::FabricError::NoSuchRank`] for an edge to a missing
    /// member.
    pub fn new(mut group: Group, topology: Topology) -> impl Future<Output = Result<Self>> {
        compiled_here(async move {
            let headers = group.memory(TableHeader::BYTES).await?;
            let channels = init::channels(&topology, &group)?;
            Ok(Neighbourhood { group, topology, channels, headers, mailboxes: None })
        })
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the group, for collective calls between requests.
    pub fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// Returns this member's neighbours.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Makes a persistent exchange, in its general form: block `j` of `sends` is sent along
    /// destination slot `j`, and the block received along source slot `i` is stored as block `i` of
    /// `receives` (`MPI_Neighbor_alltoallw_init`). Blocks of slots without a neighbour are ignored.
    ///
    /// Both buffers may be the same. Collective; sizes are compared. Nothing is sent yet.
    ///
    /// # Errors
    /// [`crate::PrdmaError::Slots`], [`crate::PrdmaError::OutOfBounds`],
    /// [`crate::PrdmaError::Overlap`], [`crate::PrdmaError::Unmatched`],
    /// [`crate::PrdmaError::Size`] at the member with such blocks, and
    /// [`crate::PrdmaError::ElsewhereFailed`] at all others; then no member has a request.
    pub async fn alltoallw_init<S: Pod, R: Pod>(
        &mut self,
        send: &Buffer<S>,
        sends: &[Layout],
        receive: &Buffer<R>,
        receives: &[Layout],
        options: &Options,
    ) -> Result<Request> {
        self.exchange((&send.memory, Ok(sends.to_vec())), (&receive.memory, Ok(receives.to_vec())), options).await
    }

    /// Makes a persistent exchange of `count` elements along each slot: block `j` starts at element
    /// `j * count` of its buffer, on both sides (`MPI_Neighbor_alltoall_init`). Collective.
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`].
    pub async fn alltoall_init<T: Pod>(
        &mut self,
        send: &Buffer<T>,
        receive: &Buffer<T>,
        count: usize,
        options: &Options,
    ) -> Result<Request> {
        let (sends, receives) = (self.topology.destinations().len(), self.topology.sources().len());
        self.alltoallv_init(send, &rows(sends, count), receive, &rows(receives, count), options).await
    }

    /// Makes a persistent exchange of contiguous blocks, each given by its first element and its
    /// number of elements (`MPI_Neighbor_alltoallv_init`). Collective.
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`].
    pub async fn alltoallv_init<T: Pod>(
        &mut self,
        send: &Buffer<T>,
        sends: &[(usize, usize)],
        receive: &Buffer<T>,
        receives: &[(usize, usize)],
        options: &Options,
    ) -> Result<Request> {
        self.exchange((&send.memory, ranges::<T>(sends)), (&receive.memory, ranges::<T>(receives)), options).await
    }

    /// Makes a persistent exchange in which the same `count` elements of the send buffer, starting
    /// at `start`, are sent to every destination, and the block from slot `i` is stored from
    /// element `i * count` on (`MPI_Neighbor_allgather_init`). Collective.
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`].
    pub async fn allgather_init<T: Pod>(
        &mut self,
        send: &Buffer<T>,
        start: usize,
        receive: &Buffer<T>,
        count: usize,
        options: &Options,
    ) -> Result<Request> {
        let receives = rows(self.topology.sources().len(), count);
        self.allgatherv_init(send, (start, count), receive, &receives, options).await
    }

    /// Makes a persistent exchange in which the same elements (given by the first and their number)
    /// are sent to every destination, and the block from each source slot is stored at the elements
    /// given for it (`MPI_Neighbor_allgatherv_init`). Collective.
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`].
    pub async fn allgatherv_init<T: Pod>(
        &mut self,
        send: &Buffer<T>,
        sent: (usize, usize),
        receive: &Buffer<T>,
        receives: &[(usize, usize)],
        options: &Options,
    ) -> Result<Request> {
        let sends = vec![sent; self.topology.destinations().len()];
        self.alltoallv_init(send, &sends, receive, receives, options).await
    }

    /// Makes an exchange, each side given by its memory and layouts. If these are invalid, all
    /// members receive an error. Collective.
    fn exchange<'a>(
        &'a mut self,
        (send, sends): (&Memory, Result<Vec<Layout>, LayoutError>),
        (receive, receives): (&Memory, Result<Vec<Layout>, LayoutError>),
        options: &'a Options,
    ) -> Boxed<'a, Result<Request>> {
        let blocks = |memory: &Memory, layouts: Vec<Layout>| {
            layouts.into_iter().map(|layout| Block { memory: memory.clone(), layout }).collect()
        };
        let blocks = || {
            let blocks = Blocks { sends: blocks(send, sends?), receives: blocks(receive, receives?) };
            check(&self.topology, &blocks.sends, &blocks.receives).map(|()| blocks)
        };
        let blocks = blocks();
        compiled_here(async move {
            let Neighbourhood { group, channels, headers, .. } = self;
            let requests = [&channels[..]];
            let wish = Wish::of(group.fabric(), options);
            let shown = blocks.as_ref().map_err(Clone::clone);
            let shown = shown.and_then(|blocks| Presented::new(group.fabric(), blocks, options));
            let shown_blocks = shown.as_ref().map(|shown| &shown.blocks);
            let builder = RequestBuilder { group, headers, requests: &requests, blocks: shown_blocks, options, wish };
            let mut made = builder.make_by_node().await?;
            shown?.attach(channels, &mut made.connections);
            Ok(Request::new(made, channels, &blocks?))
        })
    }
}

/// Returns rows of `count` elements, one after the other: the first element and the number of each.
fn rows(slots: usize, count: usize) -> Vec<(usize, usize)> {
    (0..slots).map(|slot| (slot.saturating_mul(count), count)).collect()
}

/// Returns the layouts of ranges that are given by their first element and number of elements.
fn ranges<T: Pod>(ranges: &[(usize, usize)]) -> Result<Vec<Layout>, LayoutError> {
    ranges.iter().map(|(start, len)| Layout::contiguous::<T>(*start, *len)).collect()
}
