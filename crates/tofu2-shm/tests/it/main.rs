//! Control queues, thread ranks, their helpers and deadlocks, as far as a single process can test
//! them. The tests with several processes are those of `tofu2-sim`.

mod control_queues;
mod exhaustion;
mod helpers;
mod stuck;
mod threads;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread,
};

/// Runs `future` on the calling thread with an executor that is not this crate's.
pub(crate) fn other_executor<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(out) => return out,
            Poll::Pending => thread::park(),
        }
    }
}
