//! Persistent point-to-point communication.
//!
//! Each edge is a separate request that is started and waited for by itself. The sender's data wait
//! in a session queue; the receiver's READY is sent from a normal queue and releases them, whether
//! it is early or late. Without queues, this is PRDMA by the CPU.
//!
//! # Source
//! M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2 protocol offload, §4.2
//! and §4.3, figures 4 to 6; MPI 4.1, section 3.9.

use crate::{
    Edge, Layout, Options, Request, Result,
    buffer::{Buffer, ClaimSet, Use},
    init::{Block, Blocks, Channel, Presented, RequestBuilder, Wish, channels, check, compiled_here, single},
    publish::TableHeader,
    topology::Topology,
};
use core::fmt;
use rdma_fabric::{Group, Pod};

/// One message that is sent repeatedly between two members.
pub struct Point {
    edge: Edge,
    block: Block,
}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Point(member {}, tag {}, {} bytes)", self.edge.member, self.edge.label, self.block.layout.bytes())
    }
}

impl Point {
    /// Makes a point to or from `member`, with `tag`. The k-th send to a member with a tag matches
    /// the k-th receive from there with this tag.
    pub fn new<T: Pod>(member: usize, tag: u32, buffer: &Buffer<T>, layout: Layout) -> Self {
        Point { edge: Edge { member, label: tag }, block: buffer.block(layout) }
    }
}

/// The bytes of points that are transferred by a protocol of the program itself: while claimed,
/// they are in use like those of an active [`Request`].
#[derive(Debug)]
pub struct Claims(ClaimSet);

impl Claims {
    /// Makes claims of sent points, and of received points.
    pub fn new(sends: &[Point], receives: &[Point]) -> Self {
        let sends = sends.iter().map(|point| (Use::Send, &point.block));
        Claims(ClaimSet::of(sends.chain(receives.iter().map(|point| (Use::Receive, &point.block)))))
    }

    /// Takes the bytes. [`Claims::end`] releases them.
    ///
    /// # Errors
    /// [`crate::PrdmaError::InUse`] if there is a view of them that their use excludes.
    pub fn begin(&self) -> Result<()> {
        self.0.begin()?;
        self.0.activate();
        Ok(())
    }

    /// Releases the bytes.
    pub fn end(&self) {
        self.0.end(false);
    }
}

/// Makes a request for each of `sends`, and one for each of `receives` (`MPI_Send_init`,
/// `MPI_Recv_init`), in the order given.
///
/// Collective over the group, because sizes and tags are compared here. The requests themselves are
/// not collective: their two members may start each of them at any time, and drop it when both have
/// waited.
///
/// # Errors
/// As [`crate::Neighbourhood::alltoallw_init`]; slots are indices of the two lists.
pub fn points_init<'a>(
    group: &'a mut Group,
    sends: Vec<Point>,
    receives: Vec<Point>,
    options: &'a Options,
) -> impl Future<Output = Result<(Vec<Request>, Vec<Request>)>> {
    compiled_here(async move {
        let headers = group.memory(TableHeader::BYTES).await?;
        let many = sends.len();
        let (topology, given) = given(sends, receives);
        let channels = single(&topology, group);
        let checked = check(&topology, &given.sends, &given.receives);
        let sound = channels.as_ref().map_err(Clone::clone).and(checked);
        let channels = channels.unwrap_or_default();
        let requests: Vec<_> = channels.chunks(1).collect();
        let mut shown = sound.and_then(|()| Presented::new(group.fabric(), &given, options));
        let (blocks, wish) = (shown.as_ref().map(|shown| &shown.blocks), Wish::of(group.fabric(), options));
        let builder = RequestBuilder { group, headers: &headers, requests: &requests, blocks, options, wish };
        let made = builder.make().await?.into_iter().zip(&requests);
        let mut made: Vec<_> = made
            .map(|(mut made, channels)| {
                shown.iter_mut().for_each(|shown| shown.attach(channels, &mut made.connections));
                Request::new(made, channels, &given)
            })
            .collect();
        let received = made.split_off(many);
        Ok((in_order(made, &channels[..many]), in_order(received, &channels[many..])))
    })
}

/// Makes one request of all of `sends` and `receives`: an exchange whose blocks may be in different
/// buffers. Collective over the group; every member participates, possibly without points.
///
/// It is equivalent to [`crate::Neighbourhood::alltoallw_init`], for a program that has one group
/// and many exchanges.
///
/// # Errors
/// As [`crate::Neighbourhood::alltoallw_init`]; slots are indices of the two lists.
pub fn exchange_init<'a>(
    group: &'a mut Group,
    sends: Vec<Point>,
    receives: Vec<Point>,
    options: &'a Options,
) -> impl Future<Output = Result<Request>> {
    compiled_here(async move {
        let headers = group.memory(TableHeader::BYTES).await?;
        let (topology, given) = given(sends, receives);
        let channels = channels(&topology, group);
        let checked = check(&topology, &given.sends, &given.receives);
        let sound = channels.as_ref().map_err(Clone::clone).and(checked);
        let channels = channels.unwrap_or_default();
        let mut shown = sound.and_then(|()| Presented::new(group.fabric(), &given, options));
        let (blocks, wish) = (shown.as_ref().map(|shown| &shown.blocks), Wish::of(group.fabric(), options));
        let requests = [&channels[..]];
        let builder = RequestBuilder { group, headers: &headers, requests: &requests, blocks, options, wish };
        let mut made = builder.make_by_node().await?;
        shown.iter_mut().for_each(|shown| shown.attach(&channels, &mut made.connections));
        Ok(Request::new(made, &channels, &given))
    })
}

/// Returns the topology of points, and their blocks.
fn given(sends: Vec<Point>, receives: Vec<Point>) -> (Topology, Blocks) {
    let edges = |points: &[Point]| points.iter().map(|point| Some(point.edge)).collect();
    let topology = Topology::of(edges(&receives), edges(&sends));
    let blocks = |points: Vec<Point>| points.into_iter().map(|point| point.block).collect();
    (topology, Blocks { sends: blocks(sends), receives: blocks(receives) })
}

/// Sorts requests by their channels' slots.
fn in_order(requests: Vec<Request>, channels: &[Channel]) -> Vec<Request> {
    let slot = |channel: &Channel| channel.out.or(channel.inn).map(|end| end.slot);
    let mut requests: Vec<_> = requests.into_iter().zip(channels.iter().map(slot)).collect();
    requests.sort_by_key(|(_, slot)| *slot);
    requests.into_iter().map(|(request, _)| request).collect()
}
