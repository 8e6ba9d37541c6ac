//! Runs a future of the lock's protocol on the calling thread: spins, yields, then parks.

use crate::{descriptor, doorbell, mapping::Mapping, process::Unknown, slots};
use core::{
    future::Future,
    hint::spin_loop,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use rustix::thread::sched_getaffinity;
use std::{path::Path, sync::OnceLock, thread, time::Instant};

/// The number of unsuccessful polls before the first yield.
const SPINS: u32 = 100;
/// The same if there are more processes using the lock than processors: a spinning process may then
/// keep the process that it waits for from running.
const SPINS_IN_A_CROWD: u32 = 2;
/// The duration of yielding before parking: on a busy machine a single yield may take as long as a
/// time slice.
const YIELDING: Duration = Duration::from_micros(30);

/// Runs `future`, whose waits belong to `me`, to completion, and checks periodically whether the
/// processes that use the lock are alive. `deadline` only limits the time until the next poll of
/// the future.
///
/// # Errors
/// [`Unknown`] if a process that uses the lock cannot be probed; the future is then dropped.
pub(crate) fn block_on<F: Future>(
    map: &Mapping,
    me: usize,
    deadline: Option<Instant>,
    future: F,
) -> Result<F::Output, Unknown> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    let (mut idle, mut spins, mut yields_until) = (0, SPINS, None);
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return Ok(out);
        }
        idle += 1;
        if idle == 1 && slots::in_use(map) > processors() {
            (spins, yields_until) = (SPINS_IN_A_CROWD, Some(Instant::now()));
        }
        if idle <= spins {
            spin_loop();
        } else if Instant::now() < *yields_until.get_or_insert_with(|| Instant::now() + YIELDING) {
            thread::yield_now();
        } else {
            slots::look(map, me, doorbell::LONGEST)?;
            let ticket = doorbell::prepare(map, me);
            if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
                return Ok(out);
            }
            let left = deadline.map_or(doorbell::LONGEST, |at| at.saturating_duration_since(Instant::now()));
            doorbell::park(map, me, ticket, left);
        }
    }
}

/// Returns the number of processors of this machine. The affinity of this process does not count,
/// because other processes may be bound to other processors.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| {
        let online = descriptor::read(Path::new("/sys/devices/system/cpu/online")).ok();
        let online = online.and_then(|ranges| count(str::from_utf8(&ranges).ok()?)).unwrap_or(0);
        // The standard library's function would open files with standard descriptor numbers.
        online.max(sched_getaffinity(None).map_or(1, |own| own.count() as usize))
    })
}

/// Returns the number of processors in a list such as `0-3,8`.
fn count(ranges: &str) -> Option<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = |range: &str| match range.split_once('-') {
        Some((first, last)) => Some((number(last)? + 1).saturating_sub(number(first)?)),
        None => number(range).map(|_| 1),
    };
    ranges.split(',').map(range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        for (ranges, all) in
            [("0\n", Some(1)), ("0-1\n", Some(2)), ("0-3,8,10-11\n", Some(7)), ("\n", None), ("x-2", None)]
        {
            assert_eq!(count(ranges), all, "{ranges:?}");
        }
        assert!(processors() > 0);
    }
}
