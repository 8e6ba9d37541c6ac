//! Steps of the protocol done wrong, and the smallest jobs known to show it.

use super::{
    cases::{ONE_WAY, PAIR, called, case, slow},
    exchange::{Run, exchange},
    member::{Call::Parts, Case},
    wrong::{
        Spoiled,
        Wrong::{self, *},
    },
};
use explore::{Probe, mutant::mutant};
use rdma_fabric::{Fabric, PutOrder};
use std::{cell::Cell, rc::Rc};

/// A wrong step and a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mistaken {
    pub(crate) wrong: Wrong,
    pub(crate) case: Case,
    /// What the finding begins with.
    pub(crate) found: &'static str,
}

const WRONG_DATA: &str = "rank";
const STUCK: &str = "deadlock";

const WEAK: Case = slow(case("a pair x2", PAIR, 2, PutOrder::None));
const STRONG: Case = slow(case("a pair x2, put order", PAIR, 2, PutOrder::SameTarget));
const PARTS: Case = Case { words: 2, ..called(case("parts: one way x2", ONE_WAY, 2, PutOrder::None), Parts(2)) };

const fn mistaken(wrong: Wrong, case: Case, found: &'static str) -> Mistaken {
    Mistaken { wrong, case, found }
}

pub(crate) const MISTAKES: &[Mistaken] = &[
    mistaken(ReadyIsAFlag, WEAK, WRONG_DATA),
    mistaken(ReadyIsAFlag, PARTS, WRONG_DATA),
    mistaken(ReadyTooEarly, WEAK, WRONG_DATA),
    mistaken(ReadyTooEarly, PARTS, WRONG_DATA),
    mistaken(ReadyLost, WEAK, STUCK),
    mistaken(ReadyLost, PARTS, STUCK),
    mistaken(DataNotFlushed, WEAK, WRONG_DATA),
    mistaken(DataNotFlushed, PARTS, WRONG_DATA),
    mistaken(EndNotOrdered, STRONG, WRONG_DATA),
    mistaken(EndFirst, WEAK, WRONG_DATA),
    mistaken(EndFirst, STRONG, WRONG_DATA),
    mistaken(EndRepeated, WEAK, STUCK),
    mistaken(WaitsForTheLast, WEAK, WRONG_DATA),
    mistaken(WaitsForTheLast, PARTS, WRONG_DATA),
];

impl Mistaken {
    pub(crate) fn name(&self) -> String {
        format!("{:?} ({})", self.wrong, self.case.name)
    }

    /// The exchange with its wrong step, for each rank.
    pub(crate) fn job(self) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, begun) = (Probe::of(&fabric), Rc::new(Cell::new(false)));
            let spoiled = mutant(fabric.clone(), Spoiled { wrong: self.wrong, begun: begun.clone() });
            Box::pin(exchange(spoiled, fabric, probe, self.case, move || begun.set(true)))
        }
    }
}
