//! The layer that changes nothing.

use super::Layer;
use crate::Fabric;

/// Changes nothing: to see what a layer costs, and that it is not noticed.
impl<F: Fabric> Layer<F> for () {
    type Handle<T: Unpin + 'static> = F::Handle<T>;

    #[inline(always)]
    fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> F::Handle<T> {
        handle
    }
}
