//! The control queues of a node: the open ones, and the queue that an id identifies.
//!
//! Ranks' fabric operations go through system queues that are not counted here. A CQ belongs to one
//! rank at a time; only normal queues of that rank can share it.

pub(super) use super::super::slots::NONE;

use super::super::platform::QueueTable;
use rdma_fabric::{
    FabricError, Rank,
    control_queue::{QueueError, QueueId, QueueMode, QueueSpec},
};

/// The CQs of one node, by engine and number.
#[derive(Debug)]
pub(super) struct NodeQueues {
    cqs: Box<[Cq]>,
    /// The number of CQs per engine.
    numbers: u8,
}

/// A CQ of the hardware.
#[derive(Clone, Copy, Debug)]
struct Cq {
    /// The rank to which the CQ belongs; [`NONE`] if it is free.
    owner: u32,
    /// The queue opened last; the others that share the CQ are linked from there. [`NONE`] if the
    /// CQ is free.
    first: u32,
    mode: QueueMode,
    /// A bit per context in use.
    contexts: u16,
}

const FREE: Cq = Cq { owner: NONE, first: NONE, mode: QueueMode::Normal, contexts: 0 };

impl Cq {
    fn is_free(&self) -> bool {
        self.owner == NONE
    }

    /// Returns whether a rank's next normal queue may share this CQ.
    fn may_share(&self, rank: u32, mode: QueueMode, table: &QueueTable) -> bool {
        self.owner == rank
            && self.mode == QueueMode::Normal
            && mode == QueueMode::Normal
            && self.contexts.trailing_ones() < u32::from(table.contexts)
    }
}

/// Returns the id that a spec requests, as far as it is specified, for error messages.
pub(super) fn asked_for(rank: u32, spec: &QueueSpec) -> QueueId {
    QueueId::new(Rank::new(rank), spec.engine.unwrap_or(0) & 0xf, spec.number.unwrap_or(0), 0)
}

impl NodeQueues {
    pub(super) fn new(table: &QueueTable) -> Self {
        let all = usize::from(table.engines) * usize::from(table.numbers);
        NodeQueues { cqs: vec![FREE; all].into(), numbers: table.numbers }
    }

    fn of_engine(&self, engine: u8) -> &[Cq] {
        &self.cqs[usize::from(engine) * usize::from(self.numbers)..][..usize::from(self.numbers)]
    }

    fn at(&mut self, id: QueueId) -> Option<&mut Cq> {
        if id.number() >= self.numbers {
            return None;
        }
        self.cqs.get_mut(usize::from(id.engine()) * usize::from(self.numbers) + usize::from(id.number()))
    }

    /// Returns the number of free CQs.
    pub(super) fn free(&self) -> u32 {
        self.cqs.iter().filter(|cq| cq.is_free()).count() as u32
    }

    /// Returns the queue opened last on the CQ that an id identifies, if the CQ belongs to the id's
    /// rank. The others are reached through its links.
    #[inline]
    pub(super) fn first(&self, id: QueueId) -> Option<u32> {
        if id.number() >= self.numbers {
            return None;
        }
        let cq = self.cqs.get(usize::from(id.engine()) * usize::from(self.numbers) + usize::from(id.number()))?;
        (cq.owner == id.rank().number()).then_some(cq.first)
    }

    /// Returns whether another queue of this mode may be opened on the engine, on a separate CQ.
    fn allows(&self, engine: u8, mode: QueueMode, table: &QueueTable) -> bool {
        let limit = match mode {
            QueueMode::Normal => return true,
            QueueMode::Exclusive => table.exclusive,
            QueueMode::Session => table.session,
        };
        let open = self.of_engine(engine).iter().filter(|cq| !cq.is_free() && cq.mode == mode).count();
        (open as u32) < limit
    }

    /// Returns the number of the CQ that a queue would get on an engine: one that the rank's normal
    /// queues share, or the lowest free one.
    fn number_on(&self, engine: u8, rank: u32, mode: QueueMode, table: &QueueTable) -> Option<u8> {
        let cqs = self.of_engine(engine);
        let shared = cqs.iter().position(|cq| cq.may_share(rank, mode, table));
        let own = || cqs.iter().position(Cq::is_free).filter(|_| self.allows(engine, mode, table));
        shared.or_else(own).map(|number| number as u8)
    }

    /// Returns the number of queues open on an engine.
    fn open_on(&self, engine: u8) -> u32 {
        self.of_engine(engine).iter().map(|cq| cq.contexts.count_ones()).sum()
    }

    /// Chooses the position of a new queue; its context is `context` if that is given, otherwise the
    /// lowest that is free.
    pub(super) fn choose(
        &self,
        rank: u32,
        spec: &QueueSpec,
        context: Option<u8>,
        table: &QueueTable,
    ) -> Result<QueueId, FabricError> {
        let limit = |what: &'static str, value: u8, limit: u8| {
            let queue = asked_for(rank, spec);
            FabricError::from(QueueError::Limit { queue, what, value: value.into(), limit: limit.into() })
        };
        if spec.mode == QueueMode::Session && table.session == 0 {
            return Err(FabricError::Unsupported { feature: &"session mode on this machine" });
        }
        let none_free = |engines: u8| QueueError::NoneFree(u32::from(engines) * u32::from(table.numbers));
        let number = match (spec.engine, spec.number) {
            (None, Some(number)) => return Err(limit("a CQ number without an engine", number, 0)),
            (Some(engine), _) if engine >= table.engines => {
                return Err(limit("the number of the engine", engine, table.engines.saturating_sub(1)));
            }
            (_, Some(number)) if number >= table.numbers => {
                return Err(limit("the number of the CQ", number, table.numbers.saturating_sub(1)));
            }
            (Some(engine), Some(number)) => {
                let cq = &self.of_engine(engine)[usize::from(number)];
                if !cq.is_free() && !cq.may_share(rank, spec.mode, table) {
                    return Err(QueueError::InUse(asked_for(rank, spec)).into());
                }
                if cq.is_free() && !self.allows(engine, spec.mode, table) {
                    return Err(none_free(1).into());
                }
                (engine, number)
            }
            (Some(engine), None) => {
                (engine, self.number_on(engine, rank, spec.mode, table).ok_or_else(|| none_free(1))?)
            }
            (None, None) => {
                let candidates = (0..table.engines)
                    .filter_map(|engine| Some((engine, self.number_on(engine, rank, spec.mode, table)?)));
                candidates.min_by_key(|(engine, _)| self.open_on(*engine)).ok_or_else(|| none_free(table.engines))?
            }
        };
        let cq = &self.of_engine(number.0)[usize::from(number.1)];
        let free = cq.contexts.trailing_ones() as u8;
        let context = match context {
            None => free,
            Some(context) if context >= table.contexts => {
                return Err(limit("the context", context, table.contexts.saturating_sub(1)));
            }
            Some(context) if cq.contexts >> context & 1 == 1 => {
                return Err(QueueError::InUse(QueueId::new(Rank::new(rank), number.0, number.1, context)).into());
            }
            Some(context) => context,
        };
        Ok(QueueId::new(Rank::new(rank), number.0, number.1, context))
    }

    /// Records a queue at the position that [`NodeQueues::choose`] returned. Returns the queue to
    /// which it must be linked.
    pub(super) fn open(&mut self, id: QueueId, mode: QueueMode, queue: u32) -> u32 {
        let Some(cq) = self.at(id) else { return NONE };
        (cq.owner, cq.mode) = (id.rank().number(), mode);
        cq.contexts |= 1 << id.context();
        std::mem::replace(&mut cq.first, queue)
    }

    /// Removes a queue. Returns true if it was the first in the CQ's list, which then begins with
    /// `next`; otherwise the caller must repair the list.
    pub(super) fn close(&mut self, id: QueueId, queue: u32, next: u32) -> bool {
        let Some(cq) = self.at(id) else { return true };
        cq.contexts &= !(1 << id.context());
        let first = cq.first == queue;
        if first {
            cq.first = next;
        }
        if cq.contexts == 0 {
            *cq = FREE;
        }
        first
    }

    /// Returns the size of the table in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.cqs.len() * size_of::<Cq>()
    }
}
