//! The end of a rank's program, which is reported after the operations that it posted have
//! completed.

use super::net::Net;
use core::time::Duration;
use rdma_fabric::{Fabric, Program, ProgramResult};

/// A program that ends after the operations that it posted have completed: see
/// [`Member::settling`](super::Member::settling).
#[derive(Debug)]
pub struct Settling<'a, P> {
    net: &'a Net,
    program: &'a P,
    within: Duration,
}

impl<'a, P> Settling<'a, P> {
    pub(super) fn new(net: &'a Net, program: &'a P, within: Duration) -> Self {
        Settling { net, program, within }
    }
}

impl<P: Program> Program for Settling<'_, P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        let _settles = Settles(self.net, self.within);
        self.program.run(fabric).await
    }
}

/// Dropped after the program's future, however that ends.
struct Settles<'a>(&'a Net, Duration);

impl Drop for Settles<'_> {
    fn drop(&mut self) {
        self.0.settle_posted(self.1);
    }
}
