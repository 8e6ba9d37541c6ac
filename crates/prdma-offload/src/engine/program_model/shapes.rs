//! The exchanges that are explored.

use super::{Case, Link};
use crate::{EndOfData, Form, engine::Demand};

impl Link {
    fn new(other: usize, there: usize, out: bool, inn: bool) -> Link {
        Link { other, there, demand: Demand::new(out.then_some(1), inn) }
    }
}

impl Case {
    /// Members in a ring, each exchanging with both sides; with one or two members, both sides are
    /// the same.
    pub(super) fn ring(members: usize, form: Form, slots: u64, rounds: u8) -> Case {
        let channels = |me: usize| {
            let (left, right) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(left, 1, true, true), Link::new(right, 0, true, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, end: EndOfData::WithData, rounds }
            .with_slots(slots)
    }

    /// Member 0 exchanges with all others.
    pub(super) fn star(members: usize, form: Form, rounds: u8) -> Case {
        let leaf = |me: usize| vec![Link::new(0, me - 1, true, true)];
        let hub = (1..members).map(|leaf| Link::new(leaf, 0, true, true)).collect();
        Case {
            channels: [hub].into_iter().chain((1..members).map(leaf)).collect(),
            form,
            end: EndOfData::WithData,
            rounds,
        }
    }

    /// Members send along a ring in one direction.
    pub(super) fn one_way(members: usize, form: Form, rounds: u8) -> Case {
        let channels = |me: usize| {
            let (before, after) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(after, 1, true, false), Link::new(before, 0, false, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, end: EndOfData::WithData, rounds }
    }

    /// Member 0 sends to 1 and 2, which send nothing.
    pub(super) fn fan(form: Form, rounds: u8) -> Case {
        let channels = vec![
            vec![Link::new(1, 0, true, false), Link::new(2, 0, true, false)],
            vec![Link::new(0, 0, false, true)],
            vec![Link::new(0, 1, false, true)],
        ];
        Case { channels, form, end: EndOfData::WithData, rounds }
    }

    pub(super) fn with_slots(mut self, slots: u64) -> Case {
        for data in self.channels.iter_mut().flatten().filter_map(|link| link.demand.data.as_mut()) {
            *data = slots;
        }
        self
    }
}
