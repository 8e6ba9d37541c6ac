//! The state of one rank: its number, its registered and resolved regions, its operations in
//! flight.

use crate::{
    GlobalAddress, Mode, Options, Result,
    container::Unawaited,
    counters::Counters,
    delegation::{self, Replies, Serving},
    directory::{OwnRegions, Resolver},
    engine::Engine,
    queue::CommandQueue,
};
use core::task::{Context, Waker};
use rdma_fabric::{Rank, Region, provider::Boxed};
use std::sync::Arc;

pub(crate) struct State {
    /// The symmetric allocation that contains the reserved regions and the directory.
    pub(crate) world: Arc<Region>,
    /// This rank's number.
    pub(crate) me: Rank,
    pub(crate) memory: Resolver,
    pub(crate) own: OwnRegions,
    pub(crate) engine: Engine,
    pub(crate) counters: Counters,
    /// The reply places of this rank's program.
    pub(crate) replies: Arc<Replies>,
    /// Allocations in heaps that no call has returned yet.
    pub(crate) unclaimed: Vec<(GlobalAddress, Unawaited)>,
    /// Requests to other ranks whose futures were dropped. They occupy their reply places, and
    /// therefore their slots, until the replies have arrived.
    pub(crate) unawaited: Vec<Boxed<'static, Result<u64>>>,
    /// Serves other ranks whenever this one waits; `None` if the network needs no delegation, or a
    /// helper serves.
    server: Option<Boxed<'static, Result<()>>>,
    /// The waker of the task that last waited, which continues to serve when it is woken.
    serves: Waker,
    /// Serves other ranks, if [`Options::serving_helper`] is set.
    _serving: Option<Serving>,
    /// The queue of the helper that executes this rank's operations; `None` in [`Mode::Direct`].
    pub(crate) queue: Option<CommandQueue>,
}

impl State {
    pub(crate) fn new(world: Region, me: Rank, memory: Resolver, options: &Options) -> Result<Self> {
        let (fabric, world) = (memory.fabric(), Arc::new(world));
        let (mut queue, mut server, mut serving) = (None, None, None);
        match options.mode {
            Mode::CommandQueue | Mode::Split => queue = Some(CommandQueue::start(&memory, &world, me, options)?),
            Mode::Direct if !delegation::is_needed(fabric, options) => {}
            Mode::Direct if options.serving_helper => serving = Some(Serving::start(&memory, &world, me, false)?),
            Mode::Direct => server = Some(delegation::serve(memory.fresh(fabric), me, None)),
        }
        let (own, engine, replies) = (OwnRegions::new(), Engine::new(fabric), Replies::of_program());
        Ok(State {
            world,
            me,
            memory,
            own,
            engine,
            counters: Counters::default(),
            replies,
            unclaimed: Vec::new(),
            unawaited: Vec::new(),
            server,
            serves: Waker::noop().clone(),
            _serving: serving,
            queue,
        })
    }

    /// Serves the pending requests of other ranks, and makes progress with unawaited requests.
    #[inline(always)]
    pub(crate) fn poll_server(&mut self, cx: &mut Context<'_>) {
        if !self.unawaited.is_empty() {
            self.unawaited.retain_mut(|asked| asked.as_mut().poll(cx).is_pending());
        }
        if self.server.is_some() {
            if !self.serves.will_wake(cx.waker()) {
                self.serves.clone_from(cx.waker());
            }
            self.serve();
        }
    }

    /// Serves other ranks in a call that completes without waiting, so that they make progress even
    /// if all of this rank's calls complete in this way.
    #[inline(always)]
    pub(crate) fn serve_now(&mut self) {
        if self.server.is_some() {
            self.serve();
        }
    }

    #[cold]
    fn serve(&mut self) {
        let mut cx = Context::from_waker(&self.serves);
        if let Some(server) = &mut self.server
            && server.as_mut().poll(&mut cx).is_ready()
        {
            // This rank's memory no longer exists: the fabric is being torn down, as every other
            // call will report.
            self.server = None;
        }
    }
}
