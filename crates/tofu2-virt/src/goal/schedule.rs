//! Schedules in memory: compact, because a schedule of a million ranks has forty million operations.

use super::{Operation, Work};

/// The number in a file, and in [`Op::peer`] or [`Op::tag`], that means any rank or any tag.
pub(super) const ANY: u32 = u32::MAX;
/// Set in an edge whose target waits for the start of its source, not for the end.
const ON_START: u32 = 1 << 31;
/// The maximum number of operations of a schedule. Event numbers, of which each operation uses at
/// most two, are 32 bits; edges use one bit for their kind.
pub(super) const MAX_OPERATIONS: usize = (1 << 31) - 1;

/// The operations of all ranks and their dependencies.
///
/// Takes 32 bytes for each operation and 4 for each dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first operation of each rank, and the end of the last one's.
    pub(super) starts: Vec<u32>,
    pub(super) ops: Vec<Op>,
    /// Sorted by source; those for the end of the source before those for its start, otherwise in
    /// the order in which they were given.
    pub(super) edges: Vec<Edge>,
    pub(super) large: Vec<u64>,
    /// The number of CPUs of each rank: one more than the highest in use.
    pub(super) cpus: u16,
    /// The number of interfaces of each rank.
    pub(super) nics: u16,
}

/// An operation: half a cache line. The replay changes `tag`, `link`, `stamp` and `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    /// Bytes or nanoseconds, or the index of a large number of them.
    pub(super) size: u32,
    pub(super) peer: u32,
    /// The tag, [`ANY`], or in a replay the channel.
    pub(super) tag: u32,
    /// The first edge from here.
    pub(super) edges: u32,
    /// The number of edges to here that have not fired; after that a list's next operation.
    pub(super) link: u32,
    /// The order of events of one time.
    pub(super) stamp: u32,
    pub(super) rank: u32,
    pub(super) kind: Kind,
    pub(super) is_large: bool,
    pub(super) cpu: u8,
    pub(super) nic: u8,
}

const _: () = assert!(size_of::<Op>() == 32);

/// In the order in which operations that become executable together start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Send = 1,
    Recv = 2,
    Calc = 3,
    /// A receive that waits for its message.
    Posted,
    /// A send that has ended, whose message has not been received.
    Message,
    /// A send that ends when its message is received.
    Offer,
    Finished,
}

/// The end of an operation, or its start, allows another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge(u32);

impl Edge {
    pub(super) fn new(target: u32, on_start: bool) -> Self {
        Edge(if on_start { target | ON_START } else { target })
    }

    #[inline]
    pub(super) fn target(self) -> u32 {
        self.0 & !ON_START
    }

    #[inline]
    pub(super) fn is_on_start(self) -> bool {
        self.0 & ON_START != 0
    }
}

impl Schedule {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Returns the number of operations of all ranks.
    pub fn operations(&self) -> usize {
        self.ops.len()
    }

    /// Returns the number of dependencies.
    pub fn dependencies(&self) -> usize {
        self.edges.len()
    }

    /// Returns the operations of a rank, in order.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn operations_of(&self, rank: u32) -> impl ExactSizeIterator<Item = Operation> + '_ {
        self.range(rank).map(|op| self.operation(op))
    }

    /// Returns the indices of a rank's operations.
    pub(super) fn range(&self, rank: u32) -> core::ops::Range<usize> {
        self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize
    }

    pub(super) fn operation(&self, index: usize) -> Operation {
        let op = &self.ops[index];
        let size = size(op, &self.large);
        let any = |number| if number == ANY { None } else { Some(number) };
        let work = match op.kind {
            Kind::Recv => Work::Recv { from: any(op.peer), bytes: size, tag: any(op.tag) },
            Kind::Calc => Work::Calc { nanoseconds: size },
            _ => Work::Send { to: op.peer, bytes: size, tag: op.tag },
        };
        Operation { work, cpu: op.cpu, nic: op.nic }
    }

    /// Returns the edges from an operation.
    #[inline]
    pub(super) fn edges_of(&self, index: usize) -> &[Edge] {
        edges(&self.ops, &self.edges, index)
    }
}

#[inline]
pub(super) fn edges<'a>(ops: &[Op], edges: &'a [Edge], index: usize) -> &'a [Edge] {
    let end = ops.get(index + 1).map_or(edges.len(), |next| next.edges as usize);
    &edges[ops[index].edges as usize..end]
}

#[inline]
pub(super) fn size(op: &Op, large: &[u64]) -> u64 {
    if op.is_large { large[op.size as usize] } else { u64::from(op.size) }
}
