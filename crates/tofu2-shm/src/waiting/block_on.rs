//! Running a rank's future on the calling thread: spin, yield, park.
//!
//! All waits of a rank end with a write to its memory or a change of its state, so the executor
//! keeps no list of waiters: it polls the whole future again. After [`SPINS`] fruitless polls it
//! yields; after [`YIELDS`] more it parks on the rank's doorbell, following the doorbell's protocol
//! (the poll between `prepare` and `park` is step W3).
//!
//! A leaf future that is polled under another waker (tokio, `FuturesUnordered`) can't rely on being
//! polled again; it registers that waker with [`super::wakers`].

use super::{doorbell::Watch, report::ParkReport, watchdog::Awaiting};
use crate::memory::Mapping;
use core::{
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::Wake,
    thread::{self, Thread},
    time::Instant,
};
use tofu2_job::{Blocked, poll_apart};

/// Fruitless polls before the first yield, if there is a CPU for every rank.
const SPINS: u32 = 200;
/// Fruitless polls before the first yield, if there are more ranks than CPUs.
const SPINS_OVERSUBSCRIBED: u32 = 0;
/// Yields before parking.
const YIELDS: u32 = 300;

/// Runs `future` to completion on this thread.
///
/// Waits of ranks spin for a few microseconds, then yield, then park until a peer writes the rank's
/// memory; an idle program uses almost no CPU. Other futures work too: their wakers unpark the
/// thread.
///
/// # Panics
/// If a future of a rank in virtual time is still pending: the thread that would be parked is the
/// one that runs the simulation, so the future would never complete. Await such futures instead.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    run(&mut |cx| poll_apart(future.as_mut(), cx))
}

/// Polls until `poll` is ready. Compiled once for each type of output, not for each program.
fn run<T>(poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let signal =
        Arc::new(Signal { woken: AtomicBool::new(false), doorbell: Mutex::new(None), thread: thread::current() });
    let waker = Waker::from(signal.clone());
    let mut cx = Context::from_waker(&waker);
    let _frame = Frame::enter(waker.clone());
    // A count above this means that the future has kept a clone of the waker, which may wake this
    // thread.
    let known = Arc::strong_count(&signal);
    let mut report = ParkReport::default();
    let mut idle = 0u32;
    loop {
        if let Poll::Ready(out) = poll(&mut cx) {
            return out;
        }
        if let Some(parker) = Frame::parker() {
            parker.park(signal.woken.swap(false, SeqCst));
            // The next poll serves whatever has woken it meanwhile.
            signal.woken.store(false, SeqCst);
            continue;
        }
        let requests = Frame::take_requests();
        if requests.fresh {
            idle = 0;
            report.end();
        }
        idle = idle.saturating_add(1);
        let spins = if requests.oversubscribed { SPINS_OVERSUBSCRIBED } else { SPINS };
        if requests.keen {
            idle = idle.min(spins + 1);
        }
        if idle <= spins {
            core::hint::spin_loop();
        } else if signal.woken.swap(false, SeqCst) || idle <= spins + YIELDS {
            thread::yield_now();
        } else {
            let parks = idle - spins - YIELDS;
            let Some(doorbell) = Frame::doorbell() else {
                thread::park_timeout(requests.longest(parks));
                continue;
            };
            signal.listen(&doorbell);
            let watch = requests.watch;
            let parking = doorbell.prepare_park(watch);
            if let Poll::Ready(out) = poll(&mut cx) {
                return out;
            }
            let next = Frame::take_requests();
            if next.fresh || next.keen {
                idle = 0;
                report.end();
            } else if !signal.woken.load(SeqCst) && watch == next.watch {
                match next.endless() {
                    Some(awaiting) => {
                        report.keeps_waiting(&doorbell, awaiting, next.waits - 1, Arc::strong_count(&signal) > known)
                    }
                    None => report.end(),
                }
                parking.park(next.longest(parks));
            }
        }
    }
}

/// The request of a pending leaf future to the executor that polls it.
#[derive(Debug)]
pub(crate) struct PollRequest<'a> {
    /// The segment whose doorbell ends the wait.
    pub(crate) segment: &'a Arc<Mapping>,
    /// The event in the segment that ends the wait.
    pub(crate) awaiting: Awaiting,
    /// Whether this is the first poll of the wait: the rank has made progress.
    pub(crate) first: bool,
    /// Whether there are more ranks than CPUs.
    pub(crate) oversubscribed: bool,
    /// The longest time to stay parked without polling.
    pub(crate) longest: Duration,
    /// The time at which to poll in any case.
    pub(crate) until: Option<Instant>,
}

/// Passes the `request` of the future that is being polled to the [`block_on`] whose waker is in
/// `cx`. Returns false if there is none.
#[inline]
pub(crate) fn note(cx: &Context<'_>, request: PollRequest<'_>) -> bool {
    FRAMES.with_borrow_mut(|frames| match frames.last_mut() {
        Some(frame) if frame.waker.will_wake(cx.waker()) => {
            frame.note(request);
            true
        }
        _ => false,
    })
}

/// Reports to the [`block_on`] that polls with `cx`, if there is one, whether the rank has made
/// progress (`has_got_on`), and whether it must poll again rather than park (`is_keen`): the
/// awaited event will happen soon and rings no doorbell.
pub fn gets_on(cx: &Context<'_>, has_got_on: bool, is_keen: bool) {
    FRAMES.with_borrow_mut(|frames| match frames.last_mut() {
        Some(frame) if frame.waker.will_wake(cx.waker()) => {
            frame.requests.fresh |= has_got_on;
            frame.requests.keen |= is_keen;
        }
        _ => {}
    });
}

/// Blocks a thread whose future waits for something that only the parker makes progress with.
pub trait Parker {
    /// Blocks until the future may be polled again. `is_woken`: its waker has been woken since the last
    /// poll.
    fn park(&self, is_woken: bool);
}

/// Makes the innermost [`block_on`] of this thread park by `parker` only, from its next pending poll on.
/// Returns false if there is none.
pub fn park_by<P: Parker + 'static>(parker: &Arc<P>) -> bool {
    FRAMES.with_borrow_mut(|frames| match frames.last_mut() {
        Some(frame) => {
            if frame.parker.is_none() {
                frame.parker = Some(parker.clone());
            }
            true
        }
        None => false,
    })
}

/// Returns whether the innermost [`block_on`] of this thread polls with the waker of `cx`.
pub fn polls_with(cx: &Context<'_>) -> bool {
    FRAMES.with_borrow(|frames| frames.last().is_some_and(|frame| frame.waker.will_wake(cx.waker())))
}

/// Returns the number of CPUs this process may use.
pub(crate) fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Wakes the thread of a [`block_on`], regardless of how it is blocked.
struct Signal {
    woken: AtomicBool,
    /// The doorbell it parks on, if any.
    doorbell: Mutex<Option<Arc<Mapping>>>,
    thread: Thread,
}

impl Signal {
    fn listen(&self, doorbell: &Arc<Mapping>) {
        let mut heard = self.doorbell.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.as_ref().is_some_and(|heard| Arc::ptr_eq(heard, doorbell)) {
            *heard = Some(doorbell.clone());
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // As in the doorbell's protocol, step P1; a full barrier, since it is a read-modify-write
        // and rare.
        self.woken.swap(true, SeqCst);
        if let Some(segment) = &*self.doorbell.lock().unwrap_or_else(PoisonError::into_inner) {
            core::sync::atomic::fence(SeqCst);
            segment.ring();
        }
        self.thread.unpark();
    }
}

thread_local! {
    /// The `block_on`s of this thread, innermost last.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// The doorbell and the requests of one `block_on`'s leaf futures.
struct Frame {
    waker: Waker,
    /// The doorbell to park on; kept between polls.
    doorbell: Option<Arc<Mapping>>,
    /// What blocks the thread instead of the doorbell, once a leaf future has provided it.
    parker: Option<Arc<dyn Parker>>,
    requests: Requests,
}

/// The combined requests of the leaf futures in one poll.
#[derive(Default)]
struct Requests {
    watch: Watch,
    /// The first wait; `None` if any of the waits ends by itself.
    awaiting: Option<Awaiting>,
    /// The number of waits.
    waits: usize,
    /// Whether leaf futures wait on several doorbells; only one can be parked on.
    several: bool,
    fresh: bool,
    /// Whether not to park.
    keen: bool,
    oversubscribed: bool,
    longest: Option<Duration>,
    until: Option<Instant>,
}

/// The longest park if an event that rings no doorbell may happen.
const NAP: Duration = Duration::from_millis(1);

impl Requests {
    /// Returns the awaited event, if only other ranks can end the wait.
    fn endless(&self) -> Option<Awaiting> {
        self.awaiting.filter(|_| !self.several && self.until.is_none())
    }

    /// Returns how long the `parks`-th park in a row may last.
    fn longest(&self, parks: u32) -> Duration {
        let bound = match self.longest {
            Some(longest) if !self.several => longest,
            Some(longest) => longest.min(NAP),
            // No leaf future belongs to this provider, so others wake this thread.
            None => Duration::from_millis(100),
        };
        let backed_off = bound.min(NAP * parks.min(1000));
        match self.until {
            Some(until) => backed_off.min(until.saturating_duration_since(Instant::now())),
            None => backed_off,
        }
    }
}

impl Frame {
    fn enter(waker: Waker) -> FrameGuard {
        FRAMES.with_borrow_mut(|frames| {
            frames.push(Frame { waker, doorbell: None, parker: None, requests: Requests::default() })
        });
        FrameGuard { _blocked: Blocked::enter() }
    }

    fn note(&mut self, request: PollRequest<'_>) {
        let requests = &mut self.requests;
        match &self.doorbell {
            Some(doorbell) if Arc::ptr_eq(doorbell, request.segment) => {}
            // This request's watch is not in the segment parked on; the time bound covers it.
            Some(_) => requests.several = true,
            None => self.doorbell = Some(request.segment.clone()),
        }
        requests.watch = requests.watch.and(request.awaiting.what.watch());
        requests.awaiting = match requests.waits {
            0 => request.awaiting.of_others(),
            _ => requests.awaiting.filter(|_| request.awaiting.of_others().is_some()),
        };
        requests.waits += 1;
        requests.fresh |= request.first;
        requests.oversubscribed |= request.oversubscribed;
        requests.longest = Some(requests.longest.map_or(request.longest, |longest| longest.min(request.longest)));
        requests.until = match (requests.until, request.until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn take_requests() -> Requests {
        FRAMES.with_borrow_mut(|frames| match frames.last_mut() {
            Some(frame) => core::mem::take(&mut frame.requests),
            None => Requests::default(),
        })
    }

    /// Returns the parker of the innermost frame, if a leaf future has provided one.
    fn parker() -> Option<Arc<dyn Parker>> {
        FRAMES.with_borrow(|frames| frames.last()?.parker.clone())
    }

    /// Returns the doorbell of the innermost frame, if a leaf future has provided one.
    fn doorbell() -> Option<Arc<Mapping>> {
        FRAMES.with_borrow(|frames| frames.last()?.doorbell.clone())
    }
}

struct FrameGuard {
    _blocked: Blocked,
}

impl Drop for FrameGuard {
    fn drop(&mut self) {
        FRAMES.with_borrow_mut(|frames| drop(frames.pop()));
    }
}
