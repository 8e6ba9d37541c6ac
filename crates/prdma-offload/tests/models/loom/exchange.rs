//! One execution of a job.

use checks::exchange::{Case, ExchangeMutant, Member, MutatedExchange};
use explore::mutant::mutated;
use loom_fabric::{Config, Delivery, RankHandle, run_after};
use prdma_offload::Buffer;
use rdma_fabric::{Fabric, PutOrder};
use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// Cells for the control block of a group, and for the memory of an exchange.
pub(super) const CELLS: usize = 1024;

/// Observations of some execution.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// A sender had ended an iteration that its receiver had not.
    pub(super) ahead: AtomicBool,
}

pub(super) fn config(ranks: usize, delivery: Delivery, order: PutOrder) -> Config {
    let mut config = Config { cells_per_rank: CELLS, ..Config::new(ranks, delivery) };
    config.caps.put_order = order;
    config
}

/// `words` words for which loom detects every race.
pub(super) fn buffer(loom: &Fabric, words: usize) -> prdma_offload::Result<Buffer<u64>> {
    RankHandle::of(loom).watched(|| Buffer::new(loom, words))
}

/// All members of `case`, each on its fabric wrapped by `wrap`, except for the blocks; the cell is
/// set after set-up.
fn execution(
    config: Config,
    case: Case,
    wrap: impl Fn(Fabric, Rc<Cell<bool>>) -> Fabric + Send + 'static,
    seen: Arc<Seen>,
) {
    let set_up = move |loom: Fabric| {
        let begun = Rc::new(Cell::new(false));
        let fabric = wrap(loom.clone(), begun.clone());
        async move {
            let member = Member::new(&fabric, case, |words| buffer(&loom, words)).await;
            (member.expect("the set-up is right"), begun)
        }
    };
    let ended: Arc<[AtomicU64]> = (0..case.ranks()).map(|_| AtomicU64::new(0)).collect();
    run_after(config, set_up, move |_, (mut member, begun)| {
        let (ended, seen) = (ended.clone(), seen.clone());
        async move {
            begun.set(true);
            for iteration in 1..=case.iterations {
                member.begin(iteration).await.expect("no error is possible");
                member.end().await.expect("no error is possible");
                ended[member.number()].store(iteration, Relaxed);
                in_step(&case, &ended, &seen);
            }
            member.look(case.iterations).expect("no error is possible");
            member
        }
    });
}

/// Checks that a sender is no more than one iteration ahead.
fn in_step(case: &Case, ended: &[AtomicU64], seen: &Seen) {
    for (from, to) in case.edges.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to))) {
        let (sender, receiver) = (ended[from].load(Relaxed), ended[to].load(Relaxed));
        assert!(sender <= receiver + 1, "rank {from} is more than one iteration ahead of rank {to}");
        if sender > receiver {
            seen.ahead.store(true, Relaxed);
        }
    }
}

/// The correct exchange.
pub(super) fn right(config: Config, case: Case, seen: Arc<Seen>) -> impl Fn() + Send + Sync + 'static {
    move || execution(config, case, |loom, _| loom, seen.clone())
}

/// The exchange with one step mutated.
pub(super) fn mutant_exchange(config: Config, case: Case, mutant: ExchangeMutant) -> impl Fn() + Send + Sync + 'static {
    move || execution(config, case, move |loom, begun| mutated(loom, MutatedExchange { mutant, begun }), Arc::default())
}
