//! Helpers that collect all outcomes of a small program.

use explore::{Explorer, Probe, View};
use rdma_fabric::{Fabric, ProgramResult, Rank, Region};
use std::{cell::RefCell, collections::BTreeSet, future::Future, rc::Rc};

pub(crate) const A: Rank = Rank::new(0);
pub(crate) const B: Rank = Rank::new(1);
pub(crate) const C: Rank = Rank::new(2);

/// Makes an explorer for tests in which the end of a job does not matter.
pub(crate) fn explorer(ranks: usize) -> Explorer<'static> {
    Explorer::new(ranks).leave_together()
}

/// Allocates four words at each rank.
pub(crate) async fn words(fabric: &Fabric) -> ProgramResult<Region> {
    Ok(fabric.alloc_symmetric(32).await?)
}

/// Returns all results of `look` at the end, over all orders.
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

/// Asserts that the last rank to return anything but 0 from `program` returns one of `outcomes`,
/// and each of them in some order.
#[track_caller]
pub(crate) fn expect<Fut>(explorer: Explorer<'_>, outcomes: &[u64], program: impl Fn(Fabric) -> Fut)
where
    Fut: Future<Output = ProgramResult<u64>> + 'static,
{
    let found = seen(
        explorer,
        |view| view.fact(0),
        |fabric| {
            let (probe, run) = (Probe::of(&fabric), program(fabric));
            async move {
                match run.await? {
                    0 => {}
                    outcome => drop(probe.set(0, outcome)),
                }
                Ok(())
            }
        },
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), outcomes);
}
