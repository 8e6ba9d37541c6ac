//! The threads that run a job's ranks, with stacks large enough for the futures of protocols.

use crate::{Config, Delivery, Job, fabric::Modelled, job::Actor};
use loom::thread::{self, Builder, JoinHandle};
use rdma_fabric::{Fabric, Rank, join::join_all};
use std::{
    any::Any,
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
};

/// The waker by which a rank requests another poll without parking. A rank that ends another's wait
/// unparks its thread, so no other waker is needed.
#[derive(Debug, Default)]
struct Again(AtomicBool);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl Job {
    /// Polls, parks, and polls again until a program or helper and all futures that it detached
    /// have completed. A helper that waits although `has_ended` reports that its program has
    /// returned is dropped, and this returns `None`.
    pub(crate) fn block_on<O>(&self, me: Actor, future: Running<O>, has_ended: impl Fn() -> bool) -> Option<O> {
        let mut future = Some(future);
        let again = Arc::new(Again::default());
        let waker = Waker::from(again.clone());
        let mut cx = Context::from_waker(&waker);
        let mut out = None;
        loop {
            if let Some(polled) = &mut future {
                match polled.as_mut().poll(&mut cx) {
                    Poll::Ready(done) => (out, future) = (Some(done), None),
                    Poll::Pending if has_ended() => future = None,
                    Poll::Pending => {}
                }
            }
            if self.detached.poll(me, &mut cx) && future.is_none() {
                return out;
            }
            if !again.0.swap(false, Relaxed) {
                // The rank is about to block. If this delivery ends one of its own waits, `park`
                // returns immediately.
                self.drain(me, None);
                thread::park();
            }
        }
    }

    fn run_rank(&self, rank: Rank, program: Running<Kept>) -> Kept {
        let me = Actor::program(rank);
        self.states()[me.task].thread = Some(thread::current());
        let out = self.block_on(me, program, || false).expect("nothing ends a program");
        self.drain(me, None);
        self.end_program(rank);
        let state = &mut self.states()[me.task];
        // Later wake-ups must not reach a thread that has ended or is waiting for others to end.
        state.thread = None;
        state.closing = true;
        if let Some(nic) = &state.nic {
            nic.unpark();
        }
        out
    }
}

/// Runs `program` as every rank, rank 0 on the calling thread. Returns the job when all ranks have
/// ended and every put has been delivered. The values that the ranks return, in particular their
/// registered memory, live until then. Call this inside a loom model.
pub fn run<P, R>(config: Config, program: P) -> Rc<Job>
where
    P: Fn(Fabric) -> R + 'static,
    R: Future + 'static,
    R::Output: 'static,
{
    let job = Rc::new(Job::new(config));
    job.cells.share(|_, _| crate::memory::CellUse::Word);
    let program = Rc::new(program);
    let part = |fabric: Fabric| {
        let program = program.clone();
        part(move || program(fabric))
    };
    let parts = fabrics(&job).map(part).collect();
    launch(job, parts)
}

/// Runs `program` as every rank after a set-up that is not part of the model: one thread runs
/// `set_up` for all ranks, and every rank sees its effects when `program` begins. Regions can only
/// be created during set-up, and the set-up's result must keep alive those that the program
/// accesses. Call this inside a loom model.
///
/// If the set-up waits for helpers that it has started, these run on its thread, too, up to where
/// they wait when it completes. Rank 0 also has its own thread; the calling thread waits.
///
/// # Panics
/// If the set-up does not complete.
pub fn run_after<S, M, P, R>(config: Config, set_up: S, program: P)
where
    S: Fn(Fabric) -> M + 'static,
    M: Future,
    M::Output: 'static,
    P: Fn(Fabric, M::Output) -> R + 'static,
    R: Future + 'static,
    R::Output: 'static,
{
    let root = move || {
        let job = Rc::new(Job::new(config));
        let fabrics: Vec<_> = fabrics(&job).collect();
        let made = at_once(&job, join_all(fabrics.iter().cloned().map(set_up)));
        {
            let mut regions = job.regions();
            regions.close();
            job.cells.share(|rank, cell| regions.kind(rank, cell));
        }
        let program = Rc::new(program);
        let part = |(fabric, made): (Fabric, M::Output)| {
            let program = program.clone();
            part(move || program(fabric, made))
        };
        let parts = fabrics.into_iter().zip(made).map(part).collect();
        launch(job, parts);
    };
    join(spawn(root));
}

fn fabrics(job: &Rc<Job>) -> impl Iterator<Item = Fabric> + use<> {
    let job = job.clone();
    (0..job.config.ranks as u32).map(move |rank| Modelled::fabric(&job, Rank::new(rank)))
}

/// Runs the set-up, on this thread. Helpers that it has started take part only if it does not
/// complete without them.
fn at_once<T>(job: &Rc<Job>, future: impl Future<Output = T>) -> T {
    const ALONE: usize = 100;
    const POLLS: usize = 10_000;
    let (mut future, mut cx) = (pin!(future), Context::from_waker(Waker::noop()));
    for poll in 0..POLLS {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
        if poll >= ALONE {
            job.poll_helpers(&mut cx);
        }
    }
    panic!("the set-up did not end within {POLLS} polls")
}

/// The future that a rank runs.
type Running<O> = Pin<Box<dyn Future<Output = O>>>;
/// The value that a rank's program returned, kept until the job ends.
type Kept = Box<dyn Any>;
/// Creates a rank's future in the rank's thread.
type Part = Box<dyn FnOnce() -> Running<Kept>>;

fn part<R>(begin: impl FnOnce() -> R + 'static) -> Part
where
    R: Future + 'static,
    R::Output: 'static,
{
    Box::new(move || {
        let run = begin();
        Box::pin(async move { Box::new(run.await) as Kept })
    })
}

/// Runs each part as one rank, in rank order.
fn launch(job: Rc<Job>, parts: Vec<Part>) -> Rc<Job> {
    let (mut threads, mut nics) = (Vec::new(), Vec::new());
    let ranks = (0..job.config.ranks as u32).map(Rank::new);
    if job.config.delivery == Delivery::Nic {
        for rank in ranks.clone() {
            let shared = job.clone();
            let nic = spawn(move || shared.nic(Actor::program(rank)));
            job.states()[rank.index()].nic = Some(nic.thread().clone());
            nics.push(nic);
        }
    }
    let outs = Rc::new(RefCell::new(Vec::new()));
    let mut parts = ranks.zip(parts).map(|(rank, part)| {
        let (job, outs) = (job.clone(), outs.clone());
        move || {
            let out = job.run_rank(rank, part());
            outs.borrow_mut().push(out);
        }
    });
    job.begin_helpers();
    let here = parts.next().expect("a job has ranks");
    threads.extend(parts.map(spawn));
    here();
    threads.into_iter().chain(nics).for_each(join);
    job.join_helpers();
    drop(outs);
    job
}

/// The stack size of a thread, which loom counts in words.
const STACK: usize = 1 << 17;

type Body = Box<dyn FnOnce()>;

thread_local! {
    /// The bodies of threads that have not started. Loom's threads are coroutines of one OS thread,
    /// so no body actually moves to another thread, although loom's builder requires `Send`.
    static BODIES: RefCell<Vec<Option<Body>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn spawn(body: impl FnOnce() + 'static) -> JoinHandle<()> {
    let place = BODIES.with_borrow_mut(|bodies| {
        let place = bodies.iter().position(Option::is_none).unwrap_or(bodies.len());
        if place == bodies.len() {
            bodies.push(None);
        }
        bodies[place] = Some(Box::new(body));
        place
    });
    let take = move || BODIES.with_borrow_mut(|bodies| bodies[place].take());
    let run = move || take().expect("each body is run once")();
    Builder::new().stack_size(STACK).spawn(run).expect("loom spawns")
}

pub(crate) fn join(thread: JoinHandle<()>) {
    thread.join().expect("loom reports a panic itself");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use rdma_fabric::FabricError;

    #[test]
    fn missing_services_are_refused_by_name() {
        check(None, 1, || {
            run(Config::new(2, Delivery::AtPost), |fabric| async move {
                let Err(error) = fabric.abort("on purpose", 3);
                assert_eq!(error, FabricError::Unsupported { feature: &"ending a whole job" });
            });
        });
    }
}
