//! The simulated machine as ranks and handles hold it.

use super::{
    core::Core,
    detached::{Detached, Rest},
    rank_state::Status,
    watch::{Watch, What},
};
use rdma_fabric::{Deps, FabricError, Rank};
use std::{
    cell::{RefCell, RefMut},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Wake, Waker},
};

/// Shared by the executor, all ranks and all handles of one run.
pub(super) struct World {
    core: RefCell<Core>,
    /// The waker that tasks are polled with: tells that the task wants to be polled again.
    waker: Waker,
    again: Arc<Again>,
    pub(super) detached: Detached,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// Set when the task being polled wakes itself. Only ever touched by the simulating thread; atomic because wakers must be.
#[derive(Debug, Default)]
struct Again(AtomicBool);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl World {
    pub(super) fn new(core: Core) -> Rc<Self> {
        let again = Arc::new(Again::default());
        Rc::new(World {
            core: RefCell::new(core),
            waker: Waker::from(Arc::clone(&again)),
            again,
            detached: Detached::default(),
        })
    }

    /// The state. Never held while code of a program, a waker or a buffer type may run.
    #[inline]
    pub(super) fn core(&self) -> RefMut<'_, Core> {
        self.core.borrow_mut()
    }

    /// Polls `rest` with a rank from now on, as long as the rank runs.
    pub(super) fn detach(&self, rank: u32, rest: Rest) {
        let mut core = self.core();
        if core.status_of(rank) == Some(Status::Running) {
            core.wake(rank);
            drop(core);
            self.detached.add(rank, rest);
        }
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether the task just polled woke itself.
    #[inline]
    pub(super) fn take_again(&self) -> bool {
        self.again.0.load(Relaxed) && self.again.0.swap(false, Relaxed)
    }

    /// Remembers whom to tell when a rank's task is resumed, unless that is the task itself.
    #[inline]
    pub(super) fn listen(&self, rank: u32, cx: &Context<'_>) {
        if !cx.waker().will_wake(&self.waker) {
            self.listen_cold(rank, cx.waker());
        }
    }

    #[cold]
    fn listen_cold(&self, rank: u32, waker: &Waker) {
        let waker = waker.clone();
        let mut core = self.core();
        let wakers = &mut core.ranks[rank as usize].extra().wakers;
        if wakers.iter().any(|known| known.will_wake(&waker)) {
            drop(core);
            drop(waker);
        } else {
            wakers.push(waker);
        }
    }
}

impl Core {
    /// Why a wait of `me` with these dependencies can't go on, if so. Otherwise sees to it that the wait is woken when that changes.
    pub(super) fn hopeless(&mut self, me: u32, id: u32, deps: Deps<'_>) -> Option<FabricError> {
        if let Some(lost) = self.lost_among(me, deps) {
            return Some(FabricError::PeerLost { rank: Rank::new(lost) });
        }
        let members = match &deps {
            Deps::All => {
                let others = self.ranks.len() as u32 - 1;
                let alone = self.departed == others && self.ranks[me as usize].outstanding == 0;
                return alone.then_some(FabricError::PeersLeft);
            }
            Deps::One(rank) | Deps::Step { writer: rank, .. } => std::slice::from_ref(rank),
            Deps::Ranks(ranks) => ranks,
        };
        // Start somewhere else for each rank, so that the list of dependents of one doesn't get long.
        let start = if members.is_empty() { 0 } else { me as usize % members.len() };
        let mut others = members[start..].iter().chain(&members[..start]).map(|rank| rank.number());
        let mut anybody = false;
        let staying = others.find(|&rank| {
            let other = rank != me && (rank as usize) < self.ranks.len();
            anybody |= other;
            other && !self.ranks[rank as usize].departed
        });
        match staying {
            Some(dependency) => {
                self.depend(me, id, dependency);
                None
            }
            // Who depends on nobody is as one whom all have left; who names himself may still end his wait.
            None => ((anybody || members.is_empty()) && self.ranks[me as usize].outstanding == 0)
                .then_some(FabricError::PeersLeft),
        }
    }

    fn lost_among(&self, me: u32, deps: Deps<'_>) -> Option<u32> {
        let first = self.first_lost?;
        match deps {
            Deps::All => Some(first).filter(|&rank| rank != me),
            Deps::One(rank) => Some(rank.number()).filter(|&rank| self.status_of(rank) == Some(Status::Lost)),
            Deps::Ranks(ranks) => ranks.iter().map(|r| r.number()).find(|&r| self.status_of(r) == Some(Status::Lost)),
            Deps::Step { writer, group } => self
                .lost_among(me, Deps::One(writer))
                .or_else(|| self.lost_among(me, group.map_or(Deps::All, Deps::Ranks))),
        }
    }

    pub(super) fn status_of(&self, rank: u32) -> Option<Status> {
        self.ranks.get(rank as usize).map(|state| state.status)
    }

    /// Lets `dependency` wake `me` when it leaves.
    fn depend(&mut self, me: u32, id: u32, dependency: u32) {
        let watches = &mut self.ranks[me as usize].extra().watches;
        let Some(watch) = watches.iter_mut().find(|watch| watch.id == id) else { return };
        let before = watch.dependency.replace(dependency);
        if before == Some(dependency) {
            return;
        }
        self.forget_dependency(me, before);
        self.ranks[dependency as usize].extra().dependents.push(me);
    }

    fn forget_dependency(&mut self, me: u32, dependency: Option<u32>) {
        let Some(dependency) = dependency else { return };
        if let Some(extra) = self.ranks[dependency as usize].existing()
            && let Some(at) = extra.dependents.iter().rposition(|&rank| rank == me)
        {
            extra.dependents.swap_remove(at);
        }
    }

    /// Registers a wait of `me`.
    pub(super) fn watch(&mut self, me: u32, what: What) -> u32 {
        let state = &mut self.ranks[me as usize];
        state.watching += 1;
        let extra = state.extra();
        let id = extra.next_watch;
        extra.next_watch = id.wrapping_add(1);
        extra.watches.push(Watch { id, what, dependency: None, told: false, deadlock: None });
        id
    }

    /// Ends a wait of `me`.
    pub(super) fn unwatch(&mut self, me: u32, id: u32) {
        let state = &mut self.ranks[me as usize];
        let Some(extra) = state.existing() else { return };
        let Some(at) = extra.watches.iter().position(|watch| watch.id == id) else { return };
        let watch = extra.watches.remove(at);
        state.watching -= 1;
        self.forget_dependency(me, watch.dependency);
    }
}
