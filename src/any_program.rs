//! A program, whichever it is: so what starts ranks is compiled with this crate, and not again with each program.

use rdma_fabric::{Fabric, Program, ProgramResult};
use std::pin::Pin;

type Running<'p> = Pin<Box<dyn Future<Output = ProgramResult<()>> + 'p>>;

/// Runs a program behind a pointer. What its ranks yield is dropped when they end.
pub(crate) struct AnyProgram<'p>(pub(crate) &'p (dyn Fn(Fabric) -> Running<'p> + Sync));

impl Program for AnyProgram<'_> {
    type Out = ();

    fn run(&self, fabric: Fabric) -> impl Future<Output = ProgramResult<()>> {
        (self.0)(fabric)
    }
}
