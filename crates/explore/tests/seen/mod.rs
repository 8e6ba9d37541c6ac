//! All outcomes of a small program.

use explore::{Explorer, View};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank, Result};
use std::{cell::RefCell, collections::BTreeSet, future::Future, rc::Rc};

/// What `look` sees at the end, over all orders.
pub(crate) fn seen<Fut, T: Ord + 'static>(
    explorer: Explorer<'_>,
    look: impl Fn(&View<'_>) -> T + 'static,
    program: impl Fn(Fabric) -> Fut,
) -> BTreeSet<T>
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let noted = Rc::clone(&seen);
    let explorer = explorer.at_end("outcome", move |view| {
        noted.borrow_mut().insert(look(view));
        true
    });
    explorer.run(program).expect_exhausted();
    seen.take()
}

/// 1 if it went well, 2 if `owner` had dropped the region.
#[allow(dead_code, reason = "not every test has regions that go")]
pub(crate) fn told<T>(end: &Result<T>, owner: Rank) -> u64 {
    match end {
        Ok(_) => 1,
        Err(FabricError::StaleRegion { rank, .. }) if *rank == owner => 2,
        Err(error) => panic!("{error}"),
    }
}
