//! The end of a rank's program, which is reported after the operations that it posted have
//! completed.

use super::net::Net;
use core::time::Duration;
use rdma_fabric::{Fabric, Program, ProgramResult};

/// A program that ends after the operations that it posted have completed: see
/// [`Member::with_shutdown`](super::Member::with_shutdown).
#[derive(Debug)]
pub struct Shutdown<'a, P> {
    net: &'a Net,
    program: &'a P,
    within: Duration,
}

impl<'a, P> Shutdown<'a, P> {
    pub(super) fn new(net: &'a Net, program: &'a P, within: Duration) -> Self {
        Shutdown { net, program, within }
    }
}

impl<P: Program> Program for Shutdown<'_, P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        let _quiesces = QuiesceOnDrop(self.net, self.within);
        self.program.run(fabric).await
    }
}

/// Dropped after the program's future, however that ends.
struct QuiesceOnDrop<'a>(&'a Net, Duration);

impl Drop for QuiesceOnDrop<'_> {
    fn drop(&mut self) {
        self.0.quiesce_posted(self.1);
    }
}
