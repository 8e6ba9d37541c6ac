//! A layer that breaks a protocol on its way to a fabric.
//!
//! A check proves something only if it can fail. A protocol has no switches for its own mutation; what a mutated line would do differently
//! is seen at the fabric: a flush that is missing, a result that is ignored, a store that comes late. A [`Mutant`] does that to
//! every rank alike, on any fabric.

mod handle;
mod layer;
mod mutation;

pub use handle::MutantHandle;
pub use mutation::Mutation;

use rdma_fabric::{Fabric, RemoteAddr, layer::Layered};
use std::{cell::RefCell, fmt, rc::Rc};

/// `F`, mutated: `Mutant::new(fabric, mutation)` is one rank's fabric with one rank's [`Mutation`].
pub type Mutant<F, M> = Layered<F, Mutating<F, M>>;

/// What a [`Mutation`] has to remember.
pub struct Mutating<F, M> {
    mutation: Rc<M>,
    /// Stores that wait for an atomic to complete.
    held: Rc<RefCell<Vec<(RemoteAddr, u64)>>>,
    /// Puts that wait for a word to let them go.
    later: Later<F>,
}

type Later<F> = Rc<RefCell<Vec<Box<dyn FnOnce(&F)>>>>;

impl<F: Fabric, M: Mutation> From<M> for Mutating<F, M> {
    fn from(mutation: M) -> Self {
        Mutating { mutation: Rc::new(mutation), held: Rc::default(), later: Rc::default() }
    }
}

impl<F, M> Clone for Mutating<F, M> {
    fn clone(&self) -> Self {
        Mutating { mutation: self.mutation.clone(), held: self.held.clone(), later: self.later.clone() }
    }
}

impl<F, M: Mutation> fmt::Debug for Mutating<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mutation.fmt(f)
    }
}
