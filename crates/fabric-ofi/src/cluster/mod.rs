//! A job on several nodes: shared memory within each, libfabric between them, one contract.
//!
//! The memory of a rank's segment is one memory that is used in two ways. Ranks of its node map it
//! ([`tofu2_sim::shm::part`]); for all others its heap is registered with libfabric. Which way an
//! operation takes depends on its place: those of the own node are mapped, and accessed directly.
//!
//! * Puts and gets are those of libfabric (`fi_write`, `fi_read`). A put is over when its bytes are
//!   visible, and its target is woken if it is parked.
//! * What has to stay whole (words, atomics, puts of 4 or 8 aligned bytes) is a message. The
//!   processor of the target does it, on its rank's own thread or on one that works for the rank
//!   while it computes or sleeps. So atomics on one word are atomic whichever way they come. If
//!   all nodes have one rank, [`AtomicsBy::Nic`] leaves all of it to libfabric's atomics instead,
//!   those of a rank on its own memory included.
//! * A put with a notice is a message, too; long ones put their bytes first.
//! * A region is looked up when it is first resolved. Its owner knows who has done so, and revokes
//!   before it gives the memory to anybody else: no rank that lives ever uses a key that is gone.
//! * Gates are executed on their own node, which tells others what they signal.
//! * A loss is told when nothing of the lost rank can take effect any more ([`Member::drain`]).
//!
//! Whoever starts the job brings the ranks together: it exchanges what [`Member::join`] returns, and
//! brings the news of other ranks.

// Where to begin: `core` is the state of a rank, and how operations end; they begin in `rma` or, as
// messages, in `outbox`. `transfer` is what its program posts and `polling` what it asks for later, `serve` what it does for others, as
// `message` and `directory` say. `looking` and `attention` decide when the program looks. `net` puts
// a lock around it, for the program's threads and the one in `thread`; `provider` is what a fabric
// sees, `queues` the control queues, whose `commands` go to other nodes, `gates` the barrier unit; what they
// have to do is in `arrivals`. `epoch` is about losses. `words` is what libfabric's atomics do, if they do
// it; what waits for their effects is in `watched`, what puts tell of theirs in `written`.
mod arrivals;
mod attention;
mod commands;
mod core;
mod counters;
mod directory;
mod epoch;
mod far_rank;
mod flight;
mod gates;
mod heap;
mod link;
mod looking;
mod message;
mod mistake;
mod net;
mod outbox;
mod polling;
mod provider;
mod queues;
mod region;
mod rest;
mod rma;
mod serve;
mod settling;
#[cfg(test)]
mod tests;
mod thread;
mod transfer;
mod trouble;
mod wait;
mod watched;
mod words;
mod written;

pub use self::{counters::Counters, net::Council, settling::Settling, words::AtomicsBy};

use self::{net::Net, provider::Cluster, thread::ProgressThread, wait::Patience};
use crate::{Domain, OfiError, Result};
use ::core::time::Duration;
use rdma_fabric::{
    Atomics, Caps, Fabric, LockedMemory, Multicasts, Program, PutOrder, Rank,
    provider::{JobFacts, Nodes},
};
use std::sync::Arc;
use tofu2_sim::shm::part::Part;

/// A rank of a job on several nodes. Dropping it closes its endpoint.
#[derive(Debug)]
pub struct Member {
    /// Dropped first, so that nobody works on what is closed.
    _thread: ProgressThread,
    net: Arc<Net>,
    nodes: Arc<[u32]>,
}

impl Member {
    /// Becomes the rank of `part`, whose memory other nodes reach through `domain`. `nodes` is the
    /// node of each rank, and `atomics` says, the same on all ranks, who works on words of other
    /// ranks. Also returns what the others must be told, by [`Member::meet`], before any rank's
    /// program begins.
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
        let firsts = first_of_others(&nodes, net.me);
        let told = Arc::downgrade(&net);
        net.part.on_card(move |card| {
            if let Some(net) = told.upgrade() {
                net.tell_card(&firsts, &card.to_bytes());
            }
        });
        let (tells, confirms) = (Arc::downgrade(&net), Arc::downgrade(&net));
        net.part.on_gates(
            move |to, news| {
                if let Some(net) = tells.upgrade() {
                    net.tell_gate(to, news);
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

    /// Learns how to reach the others: what each was returned by [`Member::join`], or by
    /// [`Member::reopen`]; nothing of those that are lost.
    ///
    /// # Errors
    /// [`OfiError::Key`] for bytes that no rank told.
    pub fn meet(&self, contacts: &[Option<Vec<u8>>]) -> Result<()> {
        self.net.meet(contacts)
    }

    /// Returns the fabric that is given to the rank's program.
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
        caps.locked_memory = LockedMemory::Copies;
        caps.max_transfer = self.net.domain.longest() as u64;
        let facts = JobFacts { ranks: below.ranks(), nodes: Nodes::Table(self.nodes.clone()), caps };
        Fabric::new(self.net.me, Arc::new(facts), Cluster { net: self.net.clone(), below })
    }

    /// Returns the rank's share in its node.
    pub fn part(&self) -> &Part {
        &self.net.part
    }

    /// Returns a number that changes whenever anything is sent or comes, if nothing is under way.
    pub fn at_rest(&self) -> Option<u64> {
        let state = self.net.lock();
        let Counters { writes, reads, atomics, messages, served } = state.core.counters;
        state.core.is_idle().then(|| writes + reads + atomics + messages + served)
    }

    /// Ends all waits of this node's ranks, since `waiting` ranks of the job wait for each other.
    pub fn deadlocked(&self, waiting: usize) {
        self.net.part.deadlocked(waiting);
        self.net.rouse();
    }

    /// Returns what was done by which means so far.
    pub fn counters(&self) -> Counters {
        self.net.counters()
    }

    /// Waits until nothing that the rank has posted is under way, before it is told that the rank has
    /// left. Returns whether that came to be within the time.
    pub fn settle(&self, within: Duration) -> bool {
        let mut patience = Patience::new();
        while !self.net.is_idle() {
            if patience.age() > within {
                return false;
            }
            patience.rest();
        }
        true
    }

    /// Returns a program that does what `program` does and, when that has returned or panicked, waits
    /// up to `within` for what it has posted. So nothing of a rank is under way when the others of
    /// its node are told that it is lost.
    pub fn settling<'a, P: Program>(&'a self, program: &'a P, within: Duration) -> Settling<'a, P> {
        Settling::new(&self.net, program, within)
    }

    /// Lets nothing new begin, because ranks are lost; [`Council::drained`] is called, with this
    /// `epoch`, when what was under way among the others is over.
    pub fn drain(&self, epoch: u64, lost: &[Rank]) {
        self.net.drain(epoch, lost);
        self.net.progress();
    }

    /// Closes the endpoint, which gets nothing any more, and opens another one. Returns what the
    /// others must be told.
    ///
    /// # Errors
    /// As [`Member::join`]. The rank then communicates no more.
    pub fn reopen(&self) -> Result<Vec<u8>> {
        self.net.reopen()
    }

    /// Tells the loss of ranks to this rank's node and to whoever waits, and lets operations begin
    /// again. All that live have reopened, and know each other by [`Member::meet`].
    pub fn resume(&self, lost: &[Rank]) {
        self.net.resume(lost);
    }

    /// Tells the loss of a rank that has said it of itself, after it had [settled](Member::settle):
    /// nothing of it is under way, so no epoch is needed, and one that is under way goes on.
    pub fn lost(&self, rank: Rank) {
        self.net.lost(&[rank]);
    }

    /// Notes that a rank has left.
    pub fn left(&self, rank: Rank) {
        self.net.part.left(rank);
        self.net.rouse();
    }

    /// Notes that a rank has ended the whole job.
    pub fn aborted(&self, rank: Rank, text: &str, code: i32) {
        self.net.part.aborted(rank, text, code);
        self.net.rouse();
    }
}

/// Returns the first rank of each node but that of `me`.
fn first_of_others(nodes: &[u32], me: Rank) -> Vec<u32> {
    let own = nodes.get(me.index());
    let first = |(rank, node): (usize, &u32)| {
        let is_first = nodes.iter().position(|other| other == node) == Some(rank);
        (is_first && Some(node) != own).then_some(rank as u32)
    };
    nodes.iter().enumerate().filter_map(first).collect()
}
