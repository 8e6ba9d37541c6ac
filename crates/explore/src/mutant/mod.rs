//! A fabric that breaks a protocol on its way to another fabric.
//!
//! A check proves something only if it can fail. A protocol has no switches for its own mutation; what a mutated line would do differently
//! is seen at the fabric: a flush that is missing, a result that is ignored, a store that comes late. [`Mutant`] does that to
//! every rank alike, on any fabric.

mod across;
mod fabric;
mod handle;
mod mutation;

pub use handle::MutantHandle;
pub use mutation::Mutation;

use across::Across;
use rdma_fabric::{Fabric, RemoteAddr, Triggers};
use std::{cell::RefCell, fmt, rc::Rc};

/// `F`, mutated.
pub struct Mutant<F: Fabric, M: Mutation> {
    inner: F,
    mutation: Rc<M>,
    /// Stores that wait for an atomic to complete.
    held: Rc<RefCell<Vec<(RemoteAddr, u64)>>>,
    /// Puts that wait for a word to let them go.
    later: Later<F>,
    triggers: Rc<Triggers<Self>>,
}

type Later<F> = Rc<RefCell<Vec<Box<dyn FnOnce(&F)>>>>;

impl<F: Fabric, M: Mutation> Clone for Mutant<F, M> {
    fn clone(&self) -> Self {
        Mutant {
            inner: self.inner.clone(),
            mutation: self.mutation.clone(),
            held: self.held.clone(),
            later: self.later.clone(),
            triggers: self.triggers.clone(),
        }
    }
}

impl<F: Fabric, M: Mutation> fmt::Debug for Mutant<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {:?}", self.inner, self.mutation)
    }
}

impl<F: Fabric, M: Mutation> Mutant<F, M> {
    /// One rank's `fabric` with one rank's `mutation`.
    pub fn new(fabric: F, mutation: M) -> Self {
        Mutant {
            inner: fabric,
            mutation: Rc::new(mutation),
            held: Rc::default(),
            later: Rc::default(),
            triggers: Rc::default(),
        }
    }
}
