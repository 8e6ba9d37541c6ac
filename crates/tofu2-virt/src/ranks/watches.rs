//! The waits that ranks have registered: the awaited event of each, and the ranks it depends on.

use super::{super::memory::Loc, RankState, Ranks, Status};
use rdma_fabric::{Deps, FabricError, Rank};

/// The event for which a future of a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// A write to these bytes of the rank's own memory.
    Word(Loc),
    Notice,
    /// A report of one of the rank's own control queues.
    Queue(u32, QueueReport),
    /// The end of a barrier-gate operation, which wakes the rank when it happens.
    Gate,
    /// Any report of the rank's own queues, any write of the network to its memory.
    News,
}

/// The kinds of reports that a wait for a control queue may await.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueReport {
    /// Room in the TOQ.
    Room,
    /// A completion.
    Completion,
    /// A notice.
    Notice,
}

/// A registered wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    id: u32,
    pub(super) what: Watched,
    /// A rank on which the wait depends and that has not left. It wakes the waiter when it leaves.
    dependency: Option<u32>,
    /// For a queue or news: the waiter was woken and has not checked since.
    notified: bool,
    /// The number of waiting ranks, if no event can happen any longer.
    deadlock: Option<u32>,
}

impl RankState {
    /// Whether anything waits for these bytes.
    #[inline]
    pub(super) fn waits_for(&self, bytes: &Loc) -> bool {
        self.watching > 0
            && self.extra.as_deref().is_some_and(|extra| {
                extra.watches.iter().any(|watch| match &watch.what {
                    Watched::Word(word) => word.overlaps(bytes),
                    Watched::News => true,
                    _ => false,
                })
            })
    }

    /// Records that something happened for which waits for news were registered.
    fn notify_news(&mut self) {
        for watch in self.existing().into_iter().flat_map(|extra| &mut extra.watches) {
            watch.notified |= watch.what == Watched::News;
        }
    }
}

impl Ranks {
    /// Returns the reason why a wait of `lane` with these dependencies can't continue, if so.
    /// Otherwise ensures that the wait is woken when that changes.
    pub(crate) fn hopeless(&mut self, lane: u32, id: u32, deps: Deps<'_>) -> Option<FabricError> {
        let me = self.rank_of(lane);
        if self.has_helper_failed(me) {
            return Some(FabricError::HelperFailed { rank: Rank::new(me) });
        }
        if let Some(lost) = self.lost_among(me, deps) {
            return Some(FabricError::PeerLost { rank: Rank::new(lost) });
        }
        let members = match &deps {
            Deps::All => {
                let others = self.ranks - 1;
                let alone = self.departed == others && self.at(me).outstanding == 0;
                return alone.then_some(FabricError::PeersLeft);
            }
            Deps::One(rank) | Deps::Step { writer: rank, .. } => std::slice::from_ref(rank),
            Deps::Ranks(ranks) => ranks,
        };
        // Each rank starts at a different member, so that no member's list of dependents becomes
        // long.
        let start = if members.is_empty() { 0 } else { me as usize % members.len() };
        let mut others = members[start..].iter().chain(&members[..start]).map(|rank| rank.number());
        let (mut anybody, mut oneself) = (false, false);
        let staying = others.find(|&rank| {
            let other = rank != me && rank < self.ranks;
            anybody |= other;
            oneself |= rank == me;
            other && !self.states[rank as usize].departed
        });
        match staying {
            Some(dependency) => {
                self.depend(lane, id, dependency);
                None
            }
            // The program and its helpers may end each other's waits.
            None if oneself && !self.helpers_of(me).is_empty() => None,
            // If a wait has no dependencies, all its dependencies have left. A rank that depends
            // only on itself may still end its own wait.
            None => ((anybody || members.is_empty()) && self.at(me).outstanding == 0).then_some(FabricError::PeersLeft),
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

    /// Makes `dependency` wake `me` when it leaves.
    fn depend(&mut self, me: u32, id: u32, dependency: u32) {
        let watches = &mut self.at(me).extra().watches;
        let Some(watch) = watches.iter_mut().find(|watch| watch.id == id) else { return };
        let before = watch.dependency.replace(dependency);
        if before == Some(dependency) {
            return;
        }
        self.forget_dependency(me, before);
        self.at(dependency).extra().dependents.push(me);
    }

    fn forget_dependency(&mut self, me: u32, dependency: Option<u32>) {
        let Some(dependency) = dependency else { return };
        if let Some(extra) = self.at(dependency).existing()
            && let Some(at) = extra.dependents.iter().rposition(|&rank| rank == me)
        {
            extra.dependents.swap_remove(at);
        }
    }

    /// Registers a wait of `me`. Returns its number.
    pub(crate) fn watch(&mut self, me: u32, what: Watched) -> u32 {
        let state = self.at(me);
        state.watching += 1;
        let extra = state.extra();
        let id = extra.next_watch;
        extra.next_watch = id.wrapping_add(1);
        // Few ranks have as many waits as the vector's first allocation has room for.
        if extra.watches.len() == extra.watches.capacity() {
            extra.watches.reserve_exact(extra.watches.len().max(1));
        }
        extra.watches.push(Watch { id, what, dependency: None, notified: false, deadlock: None });
        id
    }

    /// Ends a wait of `me`.
    pub(crate) fn unwatch(&mut self, me: u32, id: u32) {
        let state = self.at(me);
        let Some(extra) = state.existing() else { return };
        let Some(at) = extra.watches.iter().position(|watch| watch.id == id) else { return };
        let watch = extra.watches.remove(at);
        state.watching -= 1;
        self.forget_dependency(me, watch.dependency);
    }

    /// Returns the oldest of the registered waits of the rank's program, and the number of its
    /// waits, including those of its helpers.
    pub(crate) fn waits_of(&self, rank: u32) -> (Option<Watched>, usize) {
        let watches = self.states[rank as usize].extra.as_deref().map_or(&[][..], |extra| &extra.watches);
        (watches.first().map(|watch| watch.what), watches.len() + self.waits_of_helpers(rank))
    }

    /// Returns whether the rank has registered any wait.
    #[inline]
    pub(crate) fn is_watching(&self, rank: u32) -> bool {
        self.states[rank as usize].watching > 0
    }

    /// Resumes the tasks that wait for these bytes, which have been written.
    #[inline]
    pub(crate) fn touched(&mut self, bytes: &Loc) {
        if self.has_helpers() {
            return self.touched_somewhere(bytes);
        }
        if self.at(bytes.rank).waits_for(bytes) {
            self.at(bytes.rank).notify_news();
            self.wake(bytes.rank);
        }
    }

    #[cold]
    fn touched_somewhere(&mut self, bytes: &Loc) {
        self.waiting_for(bytes).into_iter().for_each(|lane| self.wake(lane));
    }

    /// Returns whether the rank waits for this report of the queue, or for any report if `None`,
    /// and has not been woken since its last check. Waking it once is enough, and a rank whose CPU
    /// is busy is polled when the CPU is idle.
    #[inline]
    pub(crate) fn awaits(&mut self, rank: u32, queue: u32, report: Option<QueueReport>) -> bool {
        let state = self.at(rank);
        state.watching > 0
            && state.existing().is_some_and(|extra| {
                let mut wakes = false;
                for watch in &mut extra.watches {
                    let is_awaited = match watch.what {
                        Watched::Queue(other, what) => other == queue && report.is_none_or(|report| report == what),
                        Watched::News => true,
                        _ => false,
                    };
                    if is_awaited {
                        wakes |= !std::mem::replace(&mut watch.notified, true);
                    }
                }
                wakes
            })
    }

    /// Ends all waits for control queues with [`FabricError::Deadlock`], which reports `waiting`
    /// waiting ranks. Returns false if there are no such waits.
    pub(crate) fn end_queue_waits(&mut self, waiting: usize) -> bool {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
        let mut any = false;
        for rank in 0..self.states.len() as u32 {
            let state = self.at(rank);
            if state.watching == 0 {
                continue;
            }
            let mut hit = false;
            for watch in state.existing().into_iter().flat_map(|extra| &mut extra.watches) {
                if matches!(watch.what, Watched::Queue(..)) {
                    watch.deadlock = Some(waiting);
                    hit = true;
                }
            }
            if hit {
                self.wake(rank);
                any = true;
            }
        }
        any
    }

    /// Returns whether a registered wait was notified.
    pub(crate) fn is_notified(&mut self, rank: u32, id: u32) -> bool {
        let watches = self.at(rank).existing().map_or(&[][..], |extra| &extra.watches);
        watches.iter().any(|watch| watch.id == id && watch.notified)
    }

    /// Records that a wait for a queue has checked and will continue. Returns the error if the wait
    /// was ended by a deadlock.
    pub(crate) fn poll_again(&mut self, rank: u32, id: u32) -> Option<FabricError> {
        let watches = &mut self.at(rank).existing()?.watches;
        let watch = watches.iter_mut().find(|watch| watch.id == id)?;
        watch.notified = false;
        watch.deadlock.map(|waiting| FabricError::Deadlock { waiting: waiting as usize })
    }
}
