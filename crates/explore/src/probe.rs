//! What a program under exploration says to the explorer.

use crate::{
    act::{Act, Answer},
    fabric::Explored,
    mix::Mix,
    session::Session,
};
use rdma_fabric::{Amo, Fabric};
use std::{any::Any, hash::Hash, rc::Rc};

/// One rank's line to the explorer: facts about the job that invariants speak of, the ends of
/// steps, remarks.
///
/// A *fact* is a number that all ranks share, beside the fabric and at once, as no network could:
/// who is inside, how often something was done. Facts start at 0. Touching one is an act of its
/// own, ordered against those of other ranks in every way there is. Nothing that the protocol does
/// may depend on them.
#[derive(Clone, Debug)]
pub struct Probe {
    session: Rc<Session>,
}

impl Probe {
    /// That of the rank whose fabric this is.
    ///
    /// # Panics
    /// If it is not what an explorer has handed to a program, or a
    /// [keyless](rdma_fabric::Fabric::keyless) handle of that.
    pub fn of(fabric: &Fabric) -> Self {
        let provider: &dyn Any = fabric.provider();
        let Some(explored) = provider.downcast_ref::<Explored>() else { panic!("{fabric:?} is not explored") };
        Probe { session: explored.session.clone() }
    }

    fn fact_of(&self, fact: u32, amo: Amo<u64>) -> u64 {
        let part = self.session.cells.borrow_mut().fact(self.session.rank, fact);
        let answer = self.session.ask(Act::Fact(part, amo));
        self.session.went_on();
        if let Some(Answer::Value(before)) = answer { before } else { 0 }
    }

    /// Adds to a fact, wrapping; yields what it was before.
    pub fn add(&self, fact: u32, add: u64) -> u64 {
        self.fact_of(fact, Amo::Add(add))
    }

    /// Subtracts from a fact, wrapping; yields what it was before.
    pub fn subtract(&self, fact: u32, subtract: u64) -> u64 {
        self.fact_of(fact, Amo::Add(subtract.wrapping_neg()))
    }

    /// Changes a fact; yields what it was before.
    pub fn set(&self, fact: u32, value: u64) -> u64 {
        self.fact_of(fact, Amo::Swap(value))
    }

    /// Returns what a fact is.
    pub fn get(&self, fact: u32) -> u64 {
        self.fact_of(fact, Amo::Or(0))
    }

    /// A step of the program ends here: whatever happened in it, what this rank does from now on
    /// depends only on `result`, on the facts, and on what it will read from memory. The rank's
    /// history before is forgotten, so that states after different histories are the same one.
    /// Without effect while the rank holds handles of operations or runs detached futures.
    ///
    /// This is the caller's word. [`Report::contradiction`](crate::Report::contradiction) tells of
    /// runs that broke it.
    pub fn step(&self, result: impl Hash) {
        let mut mix = Mix::new();
        result.hash(&mut mix);
        self.session.end_step(mix.end());
    }

    /// Stands for what this rank last stored in each word of its own memory: for the result of a
    /// [step](Probe::step), where the rank remembers what it published.
    pub fn stored(&self) -> u128 {
        self.session.stored()
    }

    /// A remark for the timeline of a counter-example.
    pub fn note(&self, text: &str) {
        self.session.tell(Act::Note(text.into()));
    }
}
