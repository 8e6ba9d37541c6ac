//! Sources and sinks of the outer fabric, given to the inner one.

use super::{Mutant, Mutation};
use rdma_fabric::{
    Fabric, GetSink, Pod, PutSource,
    op::{SinkView, SourceView},
};
use std::marker::PhantomData;

/// A source, sink or operation of the inner fabric that is one of the outer.
pub(super) struct Across<M, B>(pub(super) B, PhantomData<fn() -> M>);

impl<M, B> Across<M, B> {
    pub(super) fn new(buffer: B) -> Self {
        Across(buffer, PhantomData)
    }
}

impl<F: Fabric, M: Mutation, T: Pod, S: PutSource<Mutant<F, M>, T>> PutSource<F, T> for Across<M, S> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&self) -> SourceView<'_, F::Loc> {
        self.0.view()
    }
}

impl<F: Fabric, M: Mutation, T: Pod, D: GetSink<Mutant<F, M>, T>> GetSink<F, T> for Across<M, D> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        self.0.view()
    }
}
