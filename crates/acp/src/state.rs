//! What one rank knows: who it is, what it has registered and resolved, what it has under way.

use crate::{
    GlobalAddress, Mode, Options, Result,
    container::Unawaited,
    delegation::{self, Replies, Serving},
    directory::{OwnRegions, Resolver},
    engine::Engine,
    queue::CommandQueue,
};
use core::task::Context;
use rdma_fabric::{Rank, Region, provider::Boxed};
use std::sync::Arc;

pub(crate) struct State {
    /// The symmetric allocation behind the reserved regions and the directory.
    pub(crate) world: Arc<Region>,
    /// This rank's number.
    pub(crate) me: Rank,
    pub(crate) memory: Resolver,
    pub(crate) own: OwnRegions,
    pub(crate) engine: Engine,
    /// The words in which this rank awaits replies.
    pub(crate) replies: Arc<Replies>,
    /// What was allocated in heaps, as long as no call has returned it.
    pub(crate) unclaimed: Vec<(GlobalAddress, Unawaited)>,
    /// Serves other ranks whenever this one waits; `None` where the network leaves nothing to do, or
    /// a helper does it.
    server: Option<Boxed<'static, Result<()>>>,
    /// Serves other ranks, if [`Options::serving_helper`] says so.
    _serving: Option<Serving>,
    /// The queue of the helper that carries out this rank's operations; `None` in [`Mode::Direct`].
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
        let (own, engine, replies, unclaimed) =
            (OwnRegions::new(), Engine::default(), Replies::of_program(), Vec::new());
        Ok(State { world, me, memory, own, engine, replies, unclaimed, server, _serving: serving, queue })
    }

    /// Serves other ranks, as far as there is something to do.
    #[inline(always)]
    pub(crate) fn poll_server(&mut self, cx: &mut Context<'_>) {
        if let Some(server) = &mut self.server
            && server.as_mut().poll(cx).is_ready()
        {
            // Its own memory has gone: the fabric is being torn down, as every other call will say.
            self.server = None;
        }
    }
}
