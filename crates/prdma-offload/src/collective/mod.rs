//! Persistent collectives of a whole group: barrier, broadcast, allreduce.
//!
//! They are requests like any others: created collectively, then repeatedly started and waited for;
//! after start, the queues need no CPU. A collective is not as sparse as an exchange with
//! neighbours, so it must not waste queues. With one queue ([`Form::Mrc`]), every collective goes
//! up a tree and down again ([`tree`]). With about log2 N ([`Form::Fast`]), a barrier's words and
//! an allreduce's blocks are disseminated, and in a broadcast a late member delays only its parent
//! and the members below it ([`fast`]). Without queues, the CPUs execute the same steps in their
//! calls ([`plan::CpuPlan`]).
//!
//! Queues cannot compute. An allreduce brings all blocks to all members, and each folds them at
//! wait in the order of members: the result has the same bits at all of them and in every run, also
//! for floating point. It takes N blocks of memory at each member, so it is meant for short blocks.
//!
//! # Source
//! M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2 protocol offload,
//! §4.4.1; MPI 4.1, section 6.13; the dissemination barrier: D. Hensgen, R. Finkel, U. Manber, Two
//! algorithms for barrier synchronization (1988); of blocks: J. Bruck et al., Efficient algorithms
//! for all-to-all communications in multiport message-passing systems (1997).

mod fast;
mod making;
#[cfg(test)]
mod model;
mod plan;
mod reduction;
mod tree;

pub(crate) use reduction::Reduction;
pub use tree::Shape;

use crate::{
    Buffer, Form, Layout, Options, PrdmaError, Request, Result, Side,
    buffer::{ClaimSet, Memory, Use},
    init::{Block, Made, all_succeed, compiled_here, longest},
    publish::TableHeader,
};
use core::fmt;
use fabric_offload::ControlQueue;
use making::{CollectiveBuilder, Operation};
use rdma_fabric::{FabricError, Group, GroupMemory, Pod, Rank, provider::Boxed};
use tree::{Load, Tree};

/// How a broadcast is forwarded down the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The links along which it travels.
    pub shape: Shape,
    /// The number of segments, each of which is passed on as soon as it has arrived. More are used
    /// where the network can't carry a segment in one transfer.
    pub segments: u32,
}

impl Default for Pipeline {
    /// One segment, along a binomial tree.
    fn default() -> Self {
        Pipeline { shape: Shape::Binomial, segments: 1 }
    }
}

/// A group whose members make persistent collectives.
///
/// All members make the same collective calls on it in the same order.
pub struct Collectives {
    group: Group,
    /// The memory through which members publish tables to each other.
    headers: GroupMemory,
}

impl fmt::Debug for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collectives({:?})", self.group)
    }
}

impl Collectives {
    /// Prepares the members of `group` for persistent collectives. Collective.
    ///
    /// # Errors
    /// As [`Group::memory`].
    pub fn new(mut group: Group) -> impl Future<Output = Result<Self>> {
        compiled_here(async move {
            let headers = group.memory(TableHeader::BYTES).await?;
            Ok(Collectives { group, headers })
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

    /// Makes a barrier (`MPI_Barrier_init`): no member ends an iteration before all have started
    /// it. Collective.
    ///
    /// [`Form::Fast`] takes ceil(log2 N) session queues and as many steps, [`Form::Mrc`] one queue
    /// and twice the steps.
    ///
    /// # Errors
    /// [`PrdmaError::Disagreement`]; [`PrdmaError::ElsewhereFailed`]; errors of the fabric.
    pub async fn barrier_init(&mut self, options: &Options) -> Result<Request> {
        let made = self.make(Operation::Barrier, [None, None], Ok(()), options).await?;
        Ok(Request::of(made, ClaimSet::none(), None))
    }

    /// Makes a broadcast (`MPI_Bcast_init`): `len` elements of member `root`'s `buffer`, starting
    /// at `start`, are copied to the same number of elements at `start` of each member's own
    /// `buffer`. `root`, `len` and `pipeline` are the same at all members; `start` need not be.
    /// Collective.
    ///
    /// Nothing is written at a member that has not started. [`Form::Mrc`] takes one session queue,
    /// and nothing leaves before all members have started. [`Form::Fast`] takes one for each member
    /// directly below, and one more below the root; a late member delays only those below it and
    /// its parent. It is available for binomial trees and up to 15 segments; other broadcasts have
    /// at most the form `Mrc`.
    ///
    /// # Errors
    /// [`PrdmaError::OutOfBounds`] and [`FabricError::NoSuchRank`] at the member with such
    /// arguments, and [`PrdmaError::ElsewhereFailed`] at all others; [`PrdmaError::Disagreement`];
    /// errors of the fabric.
    pub async fn broadcast_init<T: Pod>(
        &mut self,
        root: usize,
        buffer: &Buffer<T>,
        start: usize,
        len: usize,
        pipeline: Pipeline,
        options: &Options,
    ) -> Result<Request> {
        let (members, me) = (self.group.len(), self.group.me());
        let side = if me == root { Side::Destination } else { Side::Source };
        let block = block(buffer, start, len, side);
        let open = block.as_ref().map_err(Clone::clone).and_then(|block| block.memory.open_to_all("a broadcast"));
        let checked = open.and_then(|()| match root < members {
            true => Ok(()),
            false => Err(FabricError::NoSuchRank { rank: Rank::new(root as u32), ranks: members }.into()),
        });
        let tree = Tree { members, root: root.min(members - 1), shape: pipeline.shape };
        let down = len.saturating_mul(size_of::<T>()) as u64;
        let load = Load { up: 0, down, segments: self.segments(down, pipeline.segments) };
        let area = block.as_ref().ok().map(|block| (block.memory.clone(), block.layout.offset));
        let made = self.make(Operation::Tree { tree, load }, [None, area], checked, options).await?;
        let used = if me == root { Use::Send } else { Use::Receive };
        let block = block?;
        Ok(Request::of(made, ClaimSet::of([(used, &block)].into_iter()), None))
    }

    /// Makes an allreduce (`MPI_Allreduce_init`): `len` elements of each member, from the start of
    /// `send`, are combined element by element, and the result is at the start of each member's
    /// `receive`. `combine` is called left to right in the order of members:
    /// `((x0 * x1) * x2) ...`; it must be the same function at all of them. `len` is the same at
    /// all members. Collective.
    ///
    /// The exchange needs no CPU after start; folding is done in wait, or in the test that ends the
    /// iteration. [`Form::Fast`] takes ceil(log2 N) session queues and as many steps, [`Form::Mrc`]
    /// one queue and twice the steps. Members may fold while others are in the next iteration, so
    /// an allreduce takes up to 2 N blocks of registered memory; half of the blocks together must
    /// fit one transfer (`QueueLimits::longest`).
    ///
    /// # Errors
    /// [`PrdmaError::OutOfBounds`], [`PrdmaError::Overlap`], [`PrdmaError::Limit`] at the member
    /// that has the fault, and [`PrdmaError::ElsewhereFailed`] at all others;
    /// [`PrdmaError::Disagreement`]; errors of the fabric.
    pub async fn allreduce_init<T: Pod>(
        &mut self,
        send: &Buffer<T>,
        receive: &Buffer<T>,
        len: usize,
        combine: fn(T, T) -> T,
        options: &Options,
    ) -> Result<Request> {
        let (members, me) = (self.group.len(), self.group.me());
        let fabric = self.group.fabric().clone();
        let tree = Tree { members, root: 0, shape: Shape::Binomial };
        let up = len.saturating_mul(size_of::<T>()) as u64;
        let down = up.saturating_mul(members as u64);
        let load = Load { up, down, segments: self.segments(down, 1) };
        // Fails immediately if queues are missing, even if some may be freed later.
        let options = &Options { budget: options.budget.min(ControlQueue::limits(&fabric).free), ..*options };
        let prepare = || {
            let sent = block(send, 0, len, Side::Destination)?;
            let received = block(receive, 0, len, Side::Source)?;
            if sent.memory.is(&received.memory) && len > 0 {
                return Err(PrdmaError::Overlap { slot: 0, side: Side::Destination, other: 0 });
            }
            let limit = longest(&fabric);
            if up.saturating_mul(members.next_power_of_two() as u64 / 2) > limit {
                return Err(PrdmaError::Limit { what: "bytes of half of the blocks", value: down / 2, limit });
            }
            let width = sent.memory.width();
            let result = Memory::new(&fabric, down as usize, width)?;
            let gather = match members {
                1 => result.clone(),
                // All blocks, if iterations may alternate.
                _ if options.form.most().min(options.budget) > 1 => Memory::new(&fabric, down as usize, width)?,
                _ => Memory::new(&fabric, tree.below(me) * up as usize, width)?,
            };
            Ok((sent, received, gather, result))
        };
        let prepared = prepare();
        let areas = match &prepared {
            Ok((_, _, gather, result)) => [Some((gather.clone(), 0)), Some((result.clone(), 0))],
            Err(_) => [None, None],
        };
        let checked = prepared.as_ref().map(drop).map_err(Clone::clone);
        let made = self.make(Operation::Tree { tree, load }, areas, checked, options).await?;
        let (sent, result, gather, blocks) = prepared?;
        let held = ClaimSet::of([(Use::Send, &sent), (Use::Receive, &result)].into_iter());
        let (areas, fold) = ([gather, blocks], reduction::fold(combine));
        let alternating = (made.form == Form::Fast).then_some(me);
        let reduction = Reduction { sent, result, areas, members, alternating, fold };
        Ok(Request::of(made, held, Some(reduction)))
    }

    /// Returns the number of segments: the requested number, or more if the network needs them.
    fn segments(&self, bytes: u64, asked: u32) -> u64 {
        u64::from(asked.max(1)).max(bytes.div_ceil(longest(self.group.fabric())))
    }

    /// Makes the machinery of a collective if all members have `checked` their arguments.
    /// Collective.
    fn make<'a>(
        &'a mut self,
        operation: Operation,
        areas: [Option<(Memory, u64)>; 2],
        checked: Result<()>,
        options: &'a Options,
    ) -> Boxed<'a, Result<Made>> {
        let Collectives { group, headers } = self;
        compiled_here(async move {
            all_succeed(group, checked).await?;
            CollectiveBuilder { group, headers, operation, areas, options }.make().await
        })
    }
}

/// Returns a block of a buffer's elements, if the buffer has them.
fn block<T: Pod>(buffer: &Buffer<T>, start: usize, len: usize, side: Side) -> Result<Block> {
    let block = buffer.block(Layout::contiguous::<T>(start, len)?);
    let (end, len) = (block.layout.end(), block.memory.bytes());
    if end > len {
        return Err(PrdmaError::OutOfBounds { side, slot: 0, end, len });
    }
    Ok(block)
}
