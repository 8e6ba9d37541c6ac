//! A group whose members know their neighbours, and its persistent exchanges: the general one and what is made of it.

use crate::{
    Buffer, Layout, Options, Request, Result,
    init::{self, Blocks, Channel, RequestBuilder, check},
    layout::LayoutError,
    publish::TableHeader,
    topology::Topology,
    transient::Mailboxes,
};
use core::fmt;
use rdma_fabric::{Group, GroupMemory, Pod};

/// A group of ranks with a topology (MPI: a communicator with one): what requests are made on.
///
/// All members make the same collective calls on it in the same order.
pub struct Neighbourhood {
    pub(crate) group: Group,
    pub(crate) topology: Topology,
    pub(crate) channels: Vec<Channel>,
    /// Where members publish tables to each other.
    pub(crate) headers: GroupMemory,
    /// Of exchanges that are not persistent; made by the first of them.
    pub(crate) mailboxes: Option<Mailboxes>,
}

impl fmt::Debug for Neighbourhood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbourhood({:?}, {} channels)", self.group, self.channels.len())
    }
}

impl Neighbourhood {
    /// Give the members of `group` the neighbours that each names. Collective.
    ///
    /// # Errors
    /// As [`Group::memory`]; [`rdma_fabric::FabricError::NoSuchRank`] for an edge to nobody.
    pub async fn new(mut group: Group, topology: Topology) -> Result<Self> {
        let headers = group.memory(TableHeader::BYTES).await?;
        let channels = init::channels(&topology, &group)?;
        Ok(Neighbourhood { group, topology, channels, headers, mailboxes: None })
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The group, for collective calls between requests.
    pub fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// The own neighbours.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl Neighbourhood {
    /// A persistent exchange, the general one: block `j` of `sends` goes along destination slot `j`, what comes along source slot `i` is laid
    /// down as block `i` of `receives` (`MPI_Neighbor_alltoallw_init`). Blocks of slots without a neighbour count for nothing.
    ///
    /// Both buffers may be one. Collective; sizes are compared. Nothing is sent yet.
    ///
    /// # Errors
    /// [`crate::PrdmaError::Slots`], [`crate::PrdmaError::OutOfBounds`], [`crate::PrdmaError::Overlap`], [`crate::PrdmaError::Unmatched`],
    /// [`crate::PrdmaError::Size`] where it is so, and [`crate::PrdmaError::ElsewhereFailed`] at all other members; no member has a request then.
    pub async fn alltoallw_init<S: Pod, R: Pod>(
        &mut self,
        send: &Buffer<S>,
        sends: &[Layout],
        receive: &Buffer<R>,
        receives: &[Layout],
        options: &Options,
    ) -> Result<Request> {
        self.given(send, Ok(sends.to_vec()), receive, Ok(receives.to_vec()), options).await
    }

    /// `count` elements along each slot: block `j` starts at element `j * count` of its buffer, on both sides (`MPI_Neighbor_alltoall_init`).
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
        let rows = |slots: usize| (0..slots).map(|slot| (slot.saturating_mul(count), count)).collect::<Vec<_>>();
        let (sends, receives) = (rows(self.topology.destinations().len()), rows(self.topology.sources().len()));
        self.alltoallv_init(send, &sends, receive, &receives, options).await
    }

    /// Contiguous blocks, each given by its first element and their number (`MPI_Neighbor_alltoallv_init`).
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
        let (sends, receives) = (ranges::<T>(sends), ranges::<T>(receives));
        self.given(send, sends, receive, receives, options).await
    }

    /// The same `count` elements from `start` of the send buffer on go to every destination; what comes from source slot `i` starts at
    /// element `i * count` (`MPI_Neighbor_allgather_init`).
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
        let sources = self.topology.sources().len();
        let receives: Vec<_> = (0..sources).map(|slot| (slot.saturating_mul(count), count)).collect();
        self.allgatherv_init(send, (start, count), receive, &receives, options).await
    }

    /// The same elements (the first one, how many) go to every destination; what comes along each source slot is laid down where it says
    /// (`MPI_Neighbor_allgatherv_init`).
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
        let sends = ranges::<T>(&vec![sent; self.topology.destinations().len()]);
        self.given(send, sends, receive, ranges::<T>(receives), options).await
    }

    /// An exchange whose layouts may be impossible: then all members hear of it.
    async fn given<S: Pod, R: Pod>(
        &mut self,
        send: &Buffer<S>,
        sends: Result<Vec<Layout>, LayoutError>,
        receive: &Buffer<R>,
        receives: Result<Vec<Layout>, LayoutError>,
        options: &Options,
    ) -> Result<Request> {
        let blocks = || {
            let blocks = Blocks {
                sends: sends?.into_iter().map(|layout| send.block(layout)).collect(),
                receives: receives?.into_iter().map(|layout| receive.block(layout)).collect(),
            };
            check(&self.topology, &blocks.sends, &blocks.receives).map(|()| blocks)
        };
        let blocks = blocks();
        self.exchange(blocks, options).await
    }

    async fn exchange(&mut self, blocks: Result<Blocks>, options: &Options) -> Result<Request> {
        let Neighbourhood { group, channels, headers, .. } = self;
        let requests = [&channels[..]];
        let making = RequestBuilder { group, headers, requests: &requests, blocks: blocks.as_ref(), options };
        let made = making.make_by_node().await?;
        Ok(Request::new(made, channels, &blocks?))
    }
}

/// The layouts of elements given by the first one and their number.
fn ranges<T: Pod>(ranges: &[(usize, usize)]) -> Result<Vec<Layout>, LayoutError> {
    ranges.iter().map(|(start, len)| Layout::contiguous::<T>(*start, *len)).collect()
}
