//! Exchanges without state between calls: the baseline for persistent ones.
//!
//! ```text
//! receiver : O1  put the offer (region, cells, layout) to the sender's mailbox   O2  put k after it
//! sender   : S1  its word is k   S2  compare the sizes   S3  put the data   S4  put the answer k to the receiver's mailbox, after the data
//! receiver : R1  its word is k
//! ```
//! A persistent exchange sends neither offer nor comparison: READY is one word, and the network
//! waits for it. Here the CPUs execute all steps inside the call, on every fabric, without control
//! queues.
//!
//! # Failures
//! Each edge completes at both ends in any case: an offer or answer reports different sizes or
//! invalid blocks, and the next exchange is not affected. A call that is dropped closes the
//! mailboxes of this member forever, and notifies its neighbours ([`Fabric::detach`]): their
//! exchanges with it fail, and so do its own.
//!
//! # Source
//! MPI 4.1, section 8.6 (`MPI_Neighbor_alltoallw`).

mod edge;
mod mailboxes;

pub(crate) use mailboxes::Mailboxes;

use crate::{
    Buffer, Layout, Neighbourhood, PrdmaError, Result,
    buffer::ClaimSet,
    cost,
    init::{Blocks, check, compiled_here},
};
use mailboxes::CLOSED;
use rdma_fabric::{Fabric, Pod, Rank, RemoteWord, join, provider::Boxed};

impl Neighbourhood {
    /// Exchanges blocks once (`MPI_Neighbor_alltoallw`): block `j` of `sends` is sent along
    /// destination slot `j`, and the block received along source slot `i` is stored as block `i` of
    /// `receives`. Waits until this member's blocks have arrived and the sent ones may be modified
    /// again.
    ///
    /// Addresses are exchanged in every call, and the CPUs move the data. All members call it the
    /// same number of times. The first call creates mailboxes, and is collective over the group;
    /// later calls involve only neighbours.
    ///
    /// Dropping the future ends transient exchanges with this member: see [`PrdmaError::Dropped`].
    /// Blocks that its neighbours have already started to send to it may still arrive.
    ///
    /// # Errors
    /// [`PrdmaError::Slots`], [`PrdmaError::OutOfBounds`], [`PrdmaError::Overlap`],
    /// [`PrdmaError::InUse`] at the member with such blocks, and [`PrdmaError::ElsewhereFailed`] at
    /// its neighbours; [`PrdmaError::Size`] at both ends of an edge with different sizes; the other
    /// edges are still exchanged. [`PrdmaError::Unmatched`] in the first call, and then
    /// `ElsewhereFailed` at all others. Errors of the fabric.
    pub async fn alltoallw<S: Pod, R: Pod>(
        &mut self,
        send: &Buffer<S>,
        sends: &[Layout],
        receive: &Buffer<R>,
        receives: &[Layout],
    ) -> Result<()> {
        let blocks = Blocks {
            sends: sends.iter().map(|layout| send.block(*layout)).collect(),
            receives: receives.iter().map(|layout| receive.block(*layout)).collect(),
        };
        self.transient(blocks).await
    }

    fn transient(&mut self, blocks: Blocks) -> Boxed<'_, Result<()>> {
        let Neighbourhood { group, topology, channels, headers, mailboxes } = self;
        compiled_here(async move {
            let boxes = match mailboxes {
                Some(boxes) => boxes,
                None => mailboxes.insert(Mailboxes::new(group, headers, channels).await?),
            };
            if boxes.closed {
                return Err(PrdmaError::Dropped);
            }
            let checked = check(topology, &blocks.sends, &blocks.receives);
            let blocks = checked.is_ok().then_some(blocks);
            let claims = blocks.as_ref().map(|blocks| ClaimSet::of_channels(channels, blocks));
            let begun = claims.as_ref().map_or(Ok(()), ClaimSet::begin);
            let (claims, blocks) = if begun.is_ok() { (claims, blocks) } else { (None, None) };
            claims.iter().for_each(ClaimSet::activate);
            let exchanged = boxes.exchange(group.fabric(), blocks.as_ref()).await;
            claims.iter().for_each(|claims| claims.end(false));
            checked.and(begun).and(exchanged)
        })
    }
}

impl Mailboxes {
    /// Exchanges along all edges together: none delays another.
    async fn exchange(&mut self, fabric: &Fabric, blocks: Option<&Blocks>) -> Result<()> {
        self.iteration += 1;
        let k = self.iteration;
        // Holds until the exchange is complete.
        self.closed = true;
        let closing = CloseOnDrop { fabric, boxes: self, over: false };
        // The call costs at least as much as a start.
        fabric.charge(cost::START).await;
        let receives = self.ins.iter().map(|inn| inn.receive(fabric, k, blocks.map(|all| &all.receives[inn.slot])));
        let sends = self.outs.iter().map(|out| out.send(fabric, k, blocks.map(|all| &all.sends[out.slot])));
        let (received, sent) = join::join(join::join_all(receives), join::join_all(sends)).await;
        closing.over();
        self.closed = false;
        for (out, sent) in self.outs.iter_mut().zip(&sent) {
            out.answered = 2 * k + u64::from(sent.is_err());
        }
        // An error of this member is more informative than the fact that another member failed.
        let mut errors: Vec<_> = received.into_iter().chain(sent).filter_map(Result::err).collect();
        errors.sort_by_key(|error| *error == PrdmaError::ElsewhereFailed);
        errors.into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns the last writes of a member to words of its neighbours when it leaves. They have
    /// read all earlier offers, but possibly not the last answer.
    fn leave_words(&self) -> Vec<(Rank, RemoteWord<u64>, u64)> {
        let answers = self.outs.iter().map(|out| (out.to, out.answer.clone(), CLOSED | out.answered));
        answers.chain(self.ins.iter().map(|inn| (inn.from, inn.offered.clone(), CLOSED))).collect()
    }
}

/// An exchange in flight: when it is dropped, this member closes its mailboxes and notifies its
/// neighbours.
struct CloseOnDrop<'a> {
    fabric: &'a Fabric,
    boxes: &'a Mailboxes,
    over: bool,
}

impl CloseOnDrop<'_> {
    fn over(mut self) {
        self.over = true;
    }
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if !self.over {
            let (fabric, words) = (self.fabric.clone(), self.boxes.leave_words());
            self.fabric.detach(async move {
                for (rank, word, last) in words {
                    // Ordered after earlier puts. A lost neighbour needs no notification.
                    let _ = fabric.flush(rank).await;
                    let _ = fabric.put_word(&word, last).await;
                }
            });
        }
    }
}
