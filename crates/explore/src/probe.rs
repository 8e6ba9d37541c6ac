//! Communication of a program under exploration with the explorer.

use crate::{
    act::{Act, Answer},
    fabric::Explored,
    mix::Mix,
    session::Session,
};
use rdma_fabric::{Amo, Fabric};
use std::{any::Any, hash::Hash, rc::Rc};

/// One rank's channel to the explorer: facts about the job for invariants, the ends of steps, and
/// remarks.
///
/// A *fact* is a number that all ranks share outside the fabric and instantly, as no network could:
/// for example, the rank inside a critical section, or the number of times an event occurred. Facts
/// start at 0. Accessing a fact is a separate act, which is explored in every order relative to
/// those of other ranks. The protocol must not depend on facts.
#[derive(Clone, Debug)]
pub struct Probe {
    session: Rc<Session>,
}

impl Probe {
    /// Returns the probe of the rank that `fabric` belongs to.
    ///
    /// # Panics
    /// If `fabric` is neither one that an explorer passed to a program nor a
    /// [protected](rdma_fabric::Fabric::protected) handle of one.
    pub fn of(fabric: &Fabric) -> Self {
        let provider: &dyn Any = fabric.provider();
        let Some(explored) = provider.downcast_ref::<Explored>() else { panic!("{fabric:?} is not explored") };
        Probe { session: explored.session.clone() }
    }

    fn fact_of(&self, fact: u32, amo: Amo<u64>) -> u64 {
        let part = self.session.cells.borrow_mut().fact(self.session.rank, fact);
        let answer = self.session.request(Act::Fact(part, amo));
        self.session.continued();
        if let Some(Answer::Value(before)) = answer { before } else { 0 }
    }

    /// Adds to a fact, wrapping around on overflow. Returns its previous value.
    pub fn add(&self, fact: u32, add: u64) -> u64 {
        self.fact_of(fact, Amo::Add(add))
    }

    /// Subtracts from a fact, wrapping around on overflow. Returns its previous value.
    pub fn subtract(&self, fact: u32, subtract: u64) -> u64 {
        self.fact_of(fact, Amo::Add(subtract.wrapping_neg()))
    }

    /// Sets a fact. Returns its previous value.
    pub fn set(&self, fact: u32, value: u64) -> u64 {
        self.fact_of(fact, Amo::Swap(value))
    }

    /// Returns the value of a fact.
    pub fn get(&self, fact: u32) -> u64 {
        self.fact_of(fact, Amo::Or(0))
    }

    /// Declares that a step of the program ends here: the rank's behaviour from now on depends only
    /// on `result`, on the facts, and on the values that it will read from memory, not on the
    /// course of the step. The rank's earlier history is forgotten, so that different histories
    /// lead to the same state. This has no effect while the rank holds handles of operations or
    /// runs detached futures.
    ///
    /// The explorer relies on this declaration.
    /// [`Report::contradiction`](crate::Report::contradiction) reports runs that violated it.
    pub fn step(&self, result: impl Hash) {
        let mut mix = Mix::new();
        result.hash(&mut mix);
        self.session.end_step(mix.end());
    }

    /// Returns a digest of the last value that this rank stored in each word of its own memory. Use
    /// it in the result of a [step](Probe::step) if the rank remembers the values that it
    /// published.
    pub fn stored(&self) -> u128 {
        self.session.stored()
    }

    /// Adds a remark to the timeline of a counter-example.
    pub fn note(&self, text: &str) {
        self.session.report(Act::Note(text.into()));
    }
}
