//! A rank's private state of its own control queues.

mod sessions;

use super::{
    config::TAG_BYTES,
    executor::Executor,
    known::KnownCommands,
    lock::{Lock, LockGuard},
    opening::NodeQueues,
    remote::{Moving, RemoteCommands},
    route::Routes,
};
use crate::{
    QueueMachine,
    endpoint::Endpoint,
    job::Job,
    memory::{allocator::RegisteredExtent, layout, regions::RegionKind},
};
use core::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use rdma_fabric::{
    Rank, RegionKey, Result,
    control_queue::{QueueError, QueueId, QueueMode, QueueSpec, Stadd},
};
pub(crate) use sessions::OwnSession;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// The queues of one rank.
#[derive(Debug, Default)]
pub(crate) struct OwnQueues {
    state: Mutex<State>,
    /// The machine whose control queues the rank has for itself, as the only rank of its node;
    /// otherwise the ranks of a node share those of the job's machine.
    own_machine: OnceLock<QueueMachine>,
    /// The number of open session queues; 0 means that there is nothing to serve.
    sessions: AtomicUsize,
    /// The number of automatic tags assigned so far, so that no queue assigns a tag that an earlier
    /// queue assigned recently.
    uses: AtomicU32,
    /// Regions from or to which bytes of commands are being moved between nodes.
    moving: Moving,
    cached: Lock<Cached>,
}

/// State for the execution of commands, which one thread of the rank uses at a time.
#[derive(Debug, Default)]
pub(crate) struct Cached {
    /// The open session queues, which stay open while a thread holds this.
    pub(crate) sessions: Vec<OwnSession>,
    /// The routes of commands that the rank has executed, no matter which rank posted them.
    pub(crate) routes: Routes<{ OwnQueues::ROUTES }>,
    /// The commands that it executes repeatedly.
    pub(crate) known: KnownCommands,
}

#[derive(Debug, Default)]
struct State {
    /// Mode and contexts in use (one bit each) of the control queues that the rank holds, by engine
    /// and number.
    held: HashMap<(u8, u8), (QueueMode, u8)>,
    /// Session queues that are open.
    sessions: Vec<QueueId>,
    /// The commands of each open queue that were sent to other nodes, in a job that runs on several
    /// nodes.
    remote: HashMap<QueueId, Arc<RemoteCommands>>,
    /// The table that all queues share if they have one address space.
    shared: Option<Arc<TagTable>>,
}

/// A table of tags, and its owner's record of it.
#[derive(Debug)]
pub(crate) struct TagTable {
    pub(crate) taken: RegisteredExtent,
    pub(crate) known: Mutex<KnownTags>,
}

/// The contents of a table of tags.
#[derive(Debug, Default)]
pub(crate) struct KnownTags {
    /// The automatic tags, by region.
    pub(crate) automatic: HashMap<u64, Stadd>,
    /// All tags, by place.
    pub(crate) tags: HashMap<usize, NamedTag>,
}

/// A registration under a tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedTag {
    pub(crate) tag: u32,
    pub(crate) key: RegionKey,
}

impl OwnQueues {
    /// The number of routes that are remembered.
    pub(crate) const ROUTES: usize = 64;

    /// Returns the state for the execution of commands, unless another thread of the rank is using it.
    #[inline]
    pub(crate) fn cached(&self) -> Option<LockGuard<'_, Cached>> {
        self.cached.try_lock()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics between statements that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the rank the only one of its node, with the control queues of `machine`. Returns whether
    /// it now is; that is impossible once it holds a control queue, or has another machine.
    #[cfg(target_os = "linux")]
    pub(crate) fn have_own(&self, machine: QueueMachine) -> bool {
        self.lock().held.is_empty() && *self.own_machine.get_or_init(|| machine) == machine
    }

    /// Returns the machine whose control queues the rank uses.
    pub(crate) fn machine(&self, job: &Job) -> QueueMachine {
        self.own_machine.get().copied().unwrap_or(job.queues.machine)
    }

    /// Returns the control queues that the rank may take; `None` if there is no such rank.
    pub(crate) fn node<'a>(&self, job: &'a Job, me: Rank) -> Option<NodeQueues<'a>> {
        let first = if self.own_machine.get().is_some() { me } else { job.first_of_node(me)? };
        NodeQueues::of(job, first, self.machine(job))
    }

    /// Takes a control queue for `spec`, as context `wanted` of it if that is given. Returns its id.
    ///
    /// # Errors
    /// [`QueueError::InUse`], [`QueueError::NoneFree`], [`QueueError::Limit`].
    pub(crate) fn take(
        &self,
        job: &Job,
        me: Rank,
        spec: &QueueSpec,
        wanted: Option<u8>,
    ) -> Result<QueueId, QueueError> {
        let machine = self.machine(job);
        let asked = QueueId::new(me, spec.engine.unwrap_or(0).min(15), spec.number.unwrap_or(0), 0);
        let limit = |what, value: u64, limit: u64| QueueError::Limit { queue: asked, what, value, limit };
        let numbers = machine.numbers(spec.mode);
        if let Some(engine) = spec.engine.filter(|&engine| engine >= machine.engines) {
            return Err(limit("the engine", engine.into(), u64::from(machine.engines) - 1));
        }
        if let Some(number) = spec.number {
            if spec.engine.is_none() {
                return Err(limit("the control queue's number without an engine", number.into(), 0));
            }
            if number >= machine.queues_per_engine || numbers >> number & 1 == 0 {
                return Err(limit(
                    "the control queue's number",
                    number.into(),
                    u64::from(15 - numbers.leading_zeros()),
                ));
            }
        }
        let node = self.node(job, me).ok_or(QueueError::NotOpen(asked))?;
        let mut state = self.lock();
        let mut engines: Vec<u8> = spec.engine.map_or_else(|| (0..machine.engines).collect(), |engine| vec![engine]);
        // A stable sort: among engines with equally many queues taken, the first is used.
        engines.sort_by_key(|&engine| node.taken(engine));
        let fits = |number: &u8| numbers >> number & 1 != 0 && spec.number.is_none_or(|wanted| wanted == *number);
        for &engine in &engines {
            for number in (0..machine.queues_per_engine).filter(fits) {
                if let Some(context) = state.context(&node, (engine, number), me, spec.mode, machine.contexts, wanted) {
                    return Ok(QueueId::new(me, engine, number, context));
                }
            }
        }
        match spec.number {
            Some(_) => Err(QueueError::InUse(asked)),
            None => Err(QueueError::NoneFree(numbers.count_ones() * engines.len() as u32)),
        }
    }

    /// Releases what [`OwnQueues::take`] took.
    pub(crate) fn give_back(&self, job: &Job, me: Rank, id: QueueId) {
        let mut state = self.lock();
        let at = (id.engine(), id.number());
        if let Some((_, contexts)) = state.held.get_mut(&at) {
            *contexts &= !(1 << id.context());
            if *contexts == 0 {
                state.held.remove(&at);
                if let Some(node) = self.node(job, me) {
                    node.give_back(at.0, at.1, me);
                }
            }
        }
    }

    /// Sets the commands of a queue that are sent to other nodes; `None` if the queue has closed.
    pub(crate) fn set_remote(&self, id: QueueId, remote: Option<Arc<RemoteCommands>>) {
        let mut state = self.lock();
        match remote {
            Some(remote) => _ = state.remote.insert(id, remote),
            None => _ = state.remote.remove(&id),
        }
    }

    /// Returns the commands of one of this rank's queues that were sent to other nodes.
    pub(crate) fn remote(&self, id: QueueId) -> Option<Arc<RemoteCommands>> {
        self.lock().remote.get(&id).cloned()
    }

    /// Returns the regions from or to which bytes of commands are being moved between nodes.
    pub(crate) fn moving(&self) -> &Moving {
        &self.moving
    }

    /// Returns whether a session queue is open.
    pub(crate) fn has_sessions(&self) -> bool {
        self.sessions.load(SeqCst) != 0
    }

    /// Executes the commands that were handed over to the rank, if any. If `all`, also executes the
    /// commands left in its session queues because the rank that should have executed them has
    /// died. Returns whether anything was handed over.
    pub(crate) fn serve(&self, executor: &Executor<'_>, all: bool) -> bool {
        if self.sessions.load(Relaxed) == 0 {
            return false;
        }
        let pending = executor.segment.word(layout::QUEUES_PENDING);
        let asked = pending.load(Relaxed) != 0 && pending.swap(0, SeqCst) != 0;
        if asked || all {
            let sessions = self.lock().sessions.clone();
            sessions.into_iter().for_each(|id| executor.help_if_due(id));
        }
        asked
    }

    /// Returns a number that was not used recently for automatic tags of the rank.
    pub(crate) fn next_use(&self) -> u32 {
        self.uses.fetch_add(1, Relaxed)
    }

    /// Returns a table of tags for a new queue.
    pub(crate) fn table(&self, endpoint: &Endpoint) -> Result<Arc<TagTable>> {
        let fresh = || -> Result<Arc<TagTable>> {
            let taken = endpoint.take_extent(TAG_BYTES, RegionKind::Queue, |_, _| ())?;
            Ok(Arc::new(TagTable { taken, known: Mutex::default() }))
        };
        if !endpoint.job().queues.shared_address_space {
            return fresh();
        }
        if let Some(shared) = &self.lock().shared {
            return Ok(shared.clone());
        }
        let table = fresh()?;
        let mut state = self.lock();
        if let Some(shared) = &state.shared {
            endpoint.allocator().free(endpoint.segment(), endpoint.me(), &table.taken);
            return Ok(shared.clone());
        }
        state.shared = Some(table.clone());
        Ok(table)
    }
}

impl State {
    /// Takes a context of a control queue, which is first taken from the node if necessary.
    fn context(
        &mut self,
        node: &NodeQueues<'_>,
        at: (u8, u8),
        me: Rank,
        mode: QueueMode,
        most: u8,
        wanted: Option<u8>,
    ) -> Option<u8> {
        let first = wanted.unwrap_or(0);
        if first >= most {
            return None;
        }
        match self.held.get_mut(&at) {
            Some((QueueMode::Normal, contexts)) if mode == QueueMode::Normal => {
                let context = wanted.unwrap_or((!*contexts).trailing_zeros() as u8);
                let free = context < most && *contexts & 1 << context == 0;
                free.then(|| *contexts |= 1 << context).map(|()| context)
            }
            Some(_) => None,
            None => node.take(at.0, at.1, me).then(|| {
                self.held.insert(at, (mode, 1 << first));
                first
            }),
        }
    }
}

impl TagTable {
    pub(crate) fn known(&self) -> MutexGuard<'_, KnownTags> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
