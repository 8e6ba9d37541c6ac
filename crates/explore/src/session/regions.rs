//! A rank's registered memory: the regions that its program holds, and their end.

use super::{Session, Source};
use crate::{
    act::{Act, Answer},
    dropped::Holding,
    fabric::RankHandle,
};
use rdma_fabric::{Region, RegionKey, provider::OneThread};
use std::rc::Rc;

/// The owner's side of a region, which stays registered until this is dropped.
#[derive(Debug)]
struct Registered {
    session: Rc<Session>,
    key: RegionKey,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.session.drop_region(self.key.index);
    }
}

impl RankHandle {
    pub(crate) fn region(&self, key: RegionKey, len: usize) -> Region {
        let registered = Registered { session: self.session.clone(), key };
        Region::new(key, len, None, OneThread::new(registered))
    }
}

impl Session {
    pub(crate) fn next_local_region(&self) -> u32 {
        let next = &mut self.inner.borrow_mut().local_regions;
        *next += 1;
        *next - 1
    }

    pub(crate) fn next_symmetric_region(&self) -> u32 {
        let next = &mut self.inner.borrow_mut().symmetric_regions;
        *next += 1;
        *next - 1
    }

    /// Returns whether each use of this region queries whether it was dropped. Otherwise a use is
    /// only a notification.
    fn queries(&self, holding: Holding) -> bool {
        matches!(self.source, Source::Live(_)) || self.cells.borrow().contested.contains(holding)
    }

    /// Drops one of the rank's own regions.
    pub(crate) fn drop_region(&self, index: u32) {
        if self.has_ended() {
            return;
        }
        self.inner.borrow_mut().dropped.insert(index);
        self.inner.borrow_mut().let_go.push(index);
        if !self.together.get() {
            self.let_go();
        }
    }

    /// Emits the drops of the regions that were dropped before `act`. Calls of the probe do not
    /// count as acts.
    pub(super) fn let_go_before(&self, act: &Act) {
        if !matches!(act, Act::Fact(..) | Act::Note(_) | Act::Step(_)) {
            self.let_go();
        }
    }

    fn let_go(&self) {
        let dropped = std::mem::take(&mut self.inner.borrow_mut().let_go);
        for index in dropped {
            let holding = Holding { rank: self.rank, index };
            if self.queries(holding) {
                self.request(Act::Drop(holding));
                self.continued();
            } else {
                self.report(Act::Drop(holding));
            }
        }
    }

    /// Returns whether a region can no longer be used.
    pub(crate) fn finds_dropped(&self, holding: Holding) -> bool {
        if holding.rank == self.rank {
            return self.inner.borrow().dropped.contains(&holding.index);
        }
        if self.queries(holding) {
            let answer = self.request(Act::IsDropped(holding));
            self.continued();
            return answer == Some(Answer::Value(1));
        }
        if let Source::Script(script) = &self.source
            && self.given.get() == script.len()
        {
            let reported = &mut self.inner.borrow_mut().reported;
            if !reported.contains(&Act::Reach(holding)) {
                reported.push(Act::Reach(holding));
            }
        }
        false
    }
}
