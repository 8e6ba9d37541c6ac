//! What dropped futures still owe: polled whenever their rank is.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

type Rest = Pin<Box<dyn Future<Output = ()>>>;

thread_local! {
    /// By rank. All ranks of a run are coroutines of one thread, and only one job runs on it at a time.
    static DETACHED: RefCell<BTreeMap<usize, Vec<Rest>>> = const { RefCell::new(BTreeMap::new()) };
}

/// At the begin of a run: a run that failed may have left some.
pub(crate) fn forget_all() {
    drop(DETACHED.take());
}

pub(crate) fn add(rank: usize, rest: impl Future<Output = ()> + 'static) {
    DETACHED.with_borrow_mut(|all| all.entry(rank).or_default().push(Box::pin(rest)));
}

/// `program`, and then all that its rank has detached.
pub(crate) async fn with_detached<Out>(rank: usize, program: impl Future<Output = Out>) -> Out {
    let mut program = pin!(program);
    let mut out = None;
    std::future::poll_fn(|cx| {
        if out.is_none()
            && let Poll::Ready(ended) = program.as_mut().poll(cx)
        {
            out = Some(ended);
        }
        if poll(rank, cx) && out.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    out.expect("the program has ended")
}

/// Poll what `rank` has detached, and what that detaches. True if all is over.
fn poll(rank: usize, cx: &mut Context<'_>) -> bool {
    let mut kept = Vec::new();
    loop {
        let batch = DETACHED.with_borrow_mut(|all| all.remove(&rank)).unwrap_or_default();
        if batch.is_empty() {
            break;
        }
        kept.extend(batch.into_iter().filter_map(|mut rest| rest.as_mut().poll(cx).is_pending().then_some(rest)));
    }
    let over = kept.is_empty();
    if !over {
        DETACHED.with_borrow_mut(|all| all.insert(rank, kept));
    }
    over
}
