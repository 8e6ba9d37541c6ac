//! Several tasks of one rank, each with its own waker and polled only when woken.

use core::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::{Context, Poll, Waker},
};
use std::{
    sync::{Arc, Mutex},
    task::Wake,
};

struct Woken {
    is: AtomicBool,
    parent: Mutex<Waker>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is.store(true, SeqCst);
        self.parent.lock().expect("nobody panics").wake_by_ref();
    }
}

/// Runs tasks concurrently until all have completed.
pub(crate) async fn run_apart<Out>(tasks: Vec<Pin<Box<dyn Future<Output = Out> + '_>>>) -> Vec<Out> {
    let woken = |_| Arc::new(Woken { is: AtomicBool::new(true), parent: Mutex::new(Waker::noop().clone()) });
    let mut outs: Vec<Option<Out>> = tasks.iter().map(|_| None).collect();
    let mut tasks: Vec<_> = tasks.into_iter().map(Some).collect();
    let wakers: Vec<Arc<Woken>> = (0..tasks.len()).map(woken).collect();
    poll_fn(|cx| {
        for ((task, out), woken) in tasks.iter_mut().zip(&mut outs).zip(&wakers) {
            woken.parent.lock().expect("nobody panics").clone_from(cx.waker());
            if let Some(running) = task
                && woken.is.swap(false, SeqCst)
                && let Poll::Ready(done) = running.as_mut().poll(&mut Context::from_waker(&woken.clone().into()))
            {
                (*task, *out) = (None, Some(done));
            }
        }
        if tasks.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outs.into_iter().map(|out| out.expect("polled to the end")).collect()
}
