//! A job on several nodes: shared memory within each node, libfabric between nodes, one contract.
//!
//! The heap of a rank's segment is accessed in two ways. Ranks of the same node map it
//! ([`tofu2_shm::part`]); for all other ranks it is registered with libfabric, in pieces, each
//! before the first region in it is allocated. The address of an operation selects its path: operations on memory of this node access the mapping directly.
//!
//! * Puts and gets use `fi_write` and `fi_read`. A put completes when its bytes are visible at the
//!   target, or, over NICs that only acknowledge it, when a get has followed it. The target is woken
//!   if it is parked.
//! * Single-copy-atomic accesses (words, atomics, aligned puts of 4 or 8 bytes) are sent as
//!   messages, except for loads and stores over providers that keep words whole
//!   ([`Offer::words`](crate::Offer::words)). The target's CPU executes them, on the rank's own thread or, while the rank computes
//!   or sleeps, on its progress thread. Operations on one word are therefore atomic regardless of
//!   their path. If every node has exactly one rank, [`AtomicsBy::Nic`] uses libfabric's atomics
//!   for all of these accesses instead, including those of a rank to its own memory.
//! * A put with a notice is also a message. The bytes of a long one are put first.
//! * A region is looked up when it is first resolved. Its owner records the ranks that have looked
//!   it up, and revokes the region from them before the memory is reused. No live rank therefore
//!   uses the key of a dropped region.
//! * Gates are executed on their own node, which sends their signals to other nodes as messages.
//! * The loss of a rank is reported once none of its operations can take effect any more
//!   ([`Member::drain`]).
//!
//! The launcher connects the ranks: it exchanges the contact data returned by [`Member::join`] and
//! delivers membership events.

// | module | responsibility |
// |---|---|
// | `core` | the state of a rank, and the completion of operations |
// | `rma`, `outbox` | starting operations, by RMA or as messages |
// | `notices` | the order of notices to a rank |
// | `transfer`, `polling` | posting and polling the program's operations |
// | `serve`, `message`, `directory` | requests of other ranks, executed by this rank |
// | `poll_loop`, `progress` | when the program's threads poll the network |
// | `net`, `thread` | the lock around the state of a rank; the progress thread |
// | `provider` | the provider behind a `Fabric` |
// | `queues`, `commands` | control queues, and their commands to other nodes |
// | `gates` | the barrier unit |
// | `arrivals` | deferred work of control queues and gates |
// | `epoch` | rank failure |
// | `words`, `watched` | words by libfabric's atomics (`AtomicsBy::Nic`), and waits on such words |
// | `registered`, `pieces`, `heap` | the registered pieces of this rank's heap |
// | `keys` | the keys of the other ranks' pieces |
// | `confirm` | visibility of puts that were only acknowledged |
// | `written` | the address range that a put reports to its target |
mod arrivals;
mod commands;
mod confirm;
mod core;
mod counters;
mod directory;
mod epoch;
mod failures;
mod flight;
mod gates;
mod heap;
mod keys;
mod link;
mod message;
mod mutant;
mod net;
mod notices;
mod outbox;
mod pending_transfer;
mod pieces;
mod poll_loop;
mod polling;
mod progress;
mod provider;
mod queues;
mod region;
mod registered;
mod remote_rank;
mod rma;
mod serve;
mod shutdown;
#[cfg(test)]
mod tests;
mod thread;
mod transfer;
mod wait;
mod watched;
mod words;
mod written;

pub use self::{counters::Counters, net::Council, shutdown::Shutdown, words::AtomicsBy};

use self::{net::Net, provider::Cluster, thread::ProgressThread, wait::Patience};
use crate::{Domain, OfiError, Result};
use ::core::time::Duration;
use rdma_fabric::{
    Atomics, Caps, Fabric, LockedMemory, Multicasts, Program, PutOrder, Rank,
    provider::{JobFacts, Nodes},
};
use std::sync::Arc;
use tofu2_shm::part::Part;

/// A rank of a job on several nodes. Dropping it closes its endpoint.
#[derive(Debug)]
pub struct Member {
    /// Dropped first, so that the thread does not use closed objects.
    _thread: ProgressThread,
    net: Arc<Net>,
    nodes: Arc<[u32]>,
}

impl Member {
    /// Joins the job as the rank of `part`, whose memory other nodes access through `domain`.
    /// `nodes` is the node of each rank. `atomics` selects how words of other ranks are accessed,
    /// and must be the same on all ranks. Also returns contact data, which must be passed to all
    /// other ranks by [`Member::connect`] before the program of any rank starts.
    ///
    /// # Errors
    /// Those of [`Domain::region_over`] and [`Endpoint::open`](crate::Endpoint::open);
    /// [`OfiError::Call`] if no thread could be started. With [`AtomicsBy::Nic`]
    /// [`OfiError::SharedNode`] if a node has several ranks, [`OfiError::NoAtomic`] if the domain
    /// lacks an atomic, or was opened without them.
    pub fn join(
        part: Part,
        domain: Domain,
        nodes: Arc<[u32]>,
        atomics: AtomicsBy,
        council: impl Council + 'static,
    ) -> Result<(Self, Vec<u8>)> {
        if atomics == AtomicsBy::Nic {
            words::one_rank_a_node(&nodes)?;
        }
        let net = Arc::new(Net::new(part, domain, atomics, Box::new(council))?);
        let contact = net.contact();
        let heap = Arc::downgrade(&net.heap);
        net.part.on_export(move |range| heap.upgrade().map_or(Ok(()), |heap| heap.cover(range)));
        let firsts = first_of_others(&nodes, net.me);
        let told = Arc::downgrade(&net);
        net.part.on_control_record(move |control_record| {
            if let Some(net) = told.upgrade() {
                net.send_control_record(&firsts, &control_record.to_bytes());
            }
        });
        let (tells, confirms) = (Arc::downgrade(&net), Arc::downgrade(&net));
        net.part.on_gates(
            move |to, news| {
                if let Some(net) = tells.upgrade() {
                    net.send_gate_update(to, news);
                }
            },
            move |news| confirms.upgrade().map_or(Ok(()), |net| net.confirm_gates(news)),
        );
        let discards = Arc::downgrade(&net);
        net.part.on_discard(move |region| match discards.upgrade() {
            Some(net) => drop(region::SharedRegion::over(&net, region)),
            None => drop(region),
        });
        commands::connect(&net);
        let started = ProgressThread::start(net.clone());
        let refused = |error: std::io::Error| OfiError::Call {
            call: "pthread_create",
            provider: "any".to_owned(),
            code: error.raw_os_error().unwrap_or(0),
            text: error.to_string(),
        };
        Ok((Member { _thread: started.map_err(refused)?, net, nodes }, contact))
    }

    /// Sets the contact data of the other ranks, as returned by their [`Member::join`] or
    /// [`Member::reopen`]; `None` for lost ranks.
    ///
    /// # Errors
    /// [`OfiError::Key`] for bytes that are not contact data.
    pub fn connect(&self, contacts: &[Option<Vec<u8>>]) -> Result<()> {
        self.net.connect(contacts)
    }

    /// Returns the fabric for the rank's program.
    pub fn fabric(&self) -> Fabric {
        let below = self.net.part.fabric();
        let mut caps: Caps = below.caps();
        caps.put_order = PutOrder::None;
        caps.puts_in_order = false;
        caps.third_party_copy = false;
        caps.multicasts = Multicasts::None;
        caps.atomics = Atomics::Software;
        if self.net.watched.is_some() {
            (caps.atomics, caps.coherent_atomics) = (Atomics::Hardware, false);
        }
        caps.immediate = false;
        // Nodes may differ.
        caps.oversubscribed = false;
        caps.locked_memory = LockedMemory::Copies;
        caps.max_transfer = self.net.domain.longest() as u64;
        let facts = JobFacts { ranks: below.ranks(), nodes: Nodes::Table(self.nodes.clone()), caps };
        Fabric::new(self.net.me, Arc::new(facts), Cluster { net: self.net.clone(), below })
    }

    /// Returns the rank's part of its node.
    pub fn part(&self) -> &Part {
        &self.net.part
    }

    /// Returns a number that changes with every operation and message, or `None` if any is in
    /// flight.
    pub fn at_rest(&self) -> Option<u64> {
        let state = self.net.lock();
        let Counters { writes, reads, atomics, messages, served } = state.core.counters;
        state.core.is_idle().then(|| writes + reads + atomics + messages + served)
    }

    /// Ends all waits of this node's ranks with a deadlock: `waiting` ranks of the job wait for
    /// each other.
    pub fn deadlocked(&self, waiting: usize) {
        self.net.part.deadlocked(waiting);
        self.net.wake_waits();
    }

    /// Returns the number of bytes of the rank's segment that are registered with libfabric.
    pub fn registered_bytes(&self) -> usize {
        self.net.heap.registered_bytes()
    }

    /// Returns the number of operations so far, by kind.
    pub fn counters(&self) -> Counters {
        self.net.counters()
    }

    /// Waits up to `within` until all operations posted by the rank have completed, which must
    /// precede the report that the rank has left. Returns whether they completed in time.
    pub fn quiesce(&self, within: Duration) -> bool {
        let mut patience = Patience::new();
        while !self.net.is_idle() {
            if patience.age() > within {
                return false;
            }
            patience.pause();
        }
        true
    }

    /// Wraps `program`: after it has returned or panicked, waits up to `within` for the operations
    /// that it posted. The rank therefore has no operations in flight when its loss is reported to
    /// the other ranks of its node.
    pub fn with_shutdown<'a, P: Program>(&'a self, program: &'a P, within: Duration) -> Shutdown<'a, P> {
        Shutdown::new(&self.net, program, within)
    }

    /// Stops new operations, because ranks are lost. [`Council::drained`] is called with this
    /// `epoch` once the operations between surviving ranks have completed.
    pub fn drain(&self, epoch: u64, lost: &[Rank]) {
        self.net.drain(epoch, lost);
        self.net.progress();
    }

    /// Closes the endpoint, which then receives nothing, and opens a new one. Returns its contact
    /// data for the other ranks.
    ///
    /// # Errors
    /// As [`Member::join`]. The rank can't communicate afterwards.
    pub fn reopen(&self) -> Result<Vec<u8>> {
        self.net.reopen()
    }

    /// Reports the loss of ranks to this rank's node and to pending waits, and lets operations
    /// start again. All surviving ranks must have reopened, and received the new contact data by
    /// [`Member::connect`].
    pub fn resume(&self, lost: &[Rank]) {
        self.net.resume(lost);
    }

    /// Reports the loss of a rank that announced it itself after it had
    /// [quiesced](Member::quiesce). That rank has no operations in flight, so no epoch is needed;
    /// an epoch in progress continues.
    pub fn lost(&self, rank: Rank) {
        self.net.lost(&[rank]);
    }

    /// Records that a rank has left.
    pub fn left(&self, rank: Rank) {
        self.net.part.left(rank);
        self.net.wake_waits();
    }

    /// Records that a rank has aborted the job.
    pub fn aborted(&self, rank: Rank, text: &str, code: i32) {
        self.net.part.aborted(rank, text, code);
        self.net.wake_waits();
    }
}

/// Returns the first rank of each node except the node of `me`.
fn first_of_others(nodes: &[u32], me: Rank) -> Vec<u32> {
    let own = nodes.get(me.index());
    let first = |(rank, node): (usize, &u32)| {
        let is_first = nodes.iter().position(|other| other == node) == Some(rank);
        (is_first && Some(node) != own).then_some(rank as u32)
    };
    nodes.iter().enumerate().filter_map(first).collect()
}
