//! The possible events of a job in which the driver chooses the next one.

use super::{Live, LiveJob};
use crate::{acknowledged::Execution, loss::bit, state::ItemKind};
use rdma_fabric::Rank;

/// A possible next event of a [`LiveJob`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A rank's CPU runs.
    Go(Rank),
    /// The n-th part of the operations in flight takes effect, or its poster is notified.
    Happen(usize),
    /// The n-th part, an atomic if [`rdma_fabric::Caps::coherent_atomics`] is not guaranteed, reads
    /// its word and will write it later.
    Begin(usize),
    /// The n-th word that atomics have changed in a network interface is written to memory, under
    /// [`Explorer::acknowledged`](crate::Explorer::acknowledged).
    Write(usize),
    /// A rank's clock reaches its next deadline.
    Tick(Rank),
    /// A [mortal](LiveJob::mortal) rank dies. This event need not be chosen.
    Die(Rank),
    /// A rank learns of another one's loss.
    Learn {
        /// The rank that learns.
        by: Rank,
        /// The rank that died.
        lost: Rank,
    },
}

impl LiveJob {
    /// Collects the events that may happen now, in a fixed order.
    pub fn events(&self, into: &mut Vec<Event>) {
        into.clear();
        let live = self.live.borrow();
        let ranks = || (0..self.tasks.len()).map(|rank| (rank, Rank::new(rank as u32)));
        into.extend(
            ranks().filter(|(r, _)| live.awake[*r] && !self.tasks[*r].is_empty()).map(|(_, rank)| Event::Go(rank)),
        );
        let order = self.caps.put_order;
        // In live jobs, a handle knows as soon as its operation has happened.
        let news = |place: &usize| !live.state.only_reports(*place) && live.state.may_happen(*place, order);
        into.extend((0..live.state.items.len()).filter(news).map(Event::Happen));
        into.extend((0..live.state.unwritten.len()).map(Event::Write));
        if !self.caps.coherent_atomics && self.execution == Execution::Memory {
            into.extend((0..live.state.items.len()).filter(|place| self.may_begin(&live, *place)).map(Event::Begin));
        }
        into.extend(ranks().filter(|(r, _)| live.deadlines[*r].is_some()).map(|(_, rank)| Event::Tick(rank)));
        for (r, lost) in ranks().filter(|(_, rank)| live.mortal & bit(*rank) != 0) {
            if !live.state.losses.is_dead(lost) {
                into.extend((!self.tasks[r].is_empty()).then_some(Event::Die(lost)));
                continue;
            }
            // A rank that has ended makes no further queries, but its knowledge of a loss may
            // prevent others' operations from taking effect.
            let under_way = live.state.items.iter().any(|item| item.by == lost);
            let record_loss = ranks().filter(|(by, rank)| {
                live.state.losses.may_learn(*rank, lost) && (under_way || !self.tasks[*by].is_empty())
            });
            into.extend(record_loss.map(|(_, by)| Event::Learn { by, lost }));
        }
    }

    /// Returns whether something could be lost if the item at `place` read its word now and wrote
    /// it later.
    fn may_begin(&self, live: &Live, place: usize) -> bool {
        let item = &live.state.items[place];
        let stores = || live.awake[item.target.index()] && live.cells.borrow().is_stored(item.at.cell);
        item.kind == ItemKind::Atomic
            && live.state.may_happen(place, self.caps.put_order)
            && live.state.too_late(place).is_none()
            && (live.state.is_arriving(item.at) || stores())
    }

    /// Returns the rank whose event it is.
    pub fn actor(&self, event: Event) -> Rank {
        match event {
            Event::Go(rank) | Event::Tick(rank) | Event::Die(rank) | Event::Learn { by: rank, .. } => rank,
            Event::Write(place) => self.live.borrow().state.unwritten[place].at.rank,
            Event::Happen(place) | Event::Begin(place) => self.live.borrow().state.items[place].by,
        }
    }

    pub(crate) fn is_put(&self, place: usize) -> bool {
        self.live.borrow().state.items[place].is_put()
    }
}
