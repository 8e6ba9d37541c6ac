//! Running a future of the lock's protocol on the calling thread: spin, yield, park.

use crate::{bell, mapping::Mapping, slots};
use core::{
    future::Future,
    hint::spin_loop,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{thread, time::Instant};

/// Fruitless polls before the first yield.
const SPINS: u32 = 100;
/// How long to yield before parking: on a busy machine a single yield may take as long as a time slice.
const YIELDING: Duration = Duration::from_micros(30);

/// Runs `future`, whose waits are those of `me`, to completion. Looks meanwhile whether those that
/// use the lock live. `deadline` only says when to look at the future again.
pub(crate) fn block_on<F: Future>(map: &Mapping, me: usize, deadline: Option<Instant>, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    let (mut idle, mut yields_until) = (0, None);
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
        idle += 1;
        if idle <= SPINS {
            spin_loop();
        } else if Instant::now() < *yields_until.get_or_insert_with(|| Instant::now() + YIELDING) {
            thread::yield_now();
        } else {
            slots::look(map, me, bell::LONGEST);
            let ticket = bell::prepare(map, me);
            if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
                return out;
            }
            let left = deadline.map_or(bell::LONGEST, |at| at.saturating_duration_since(Instant::now()));
            bell::park(map, me, ticket, left);
        }
    }
}
