//! The state of a rank in a cluster, and the completion of operations. [`super::rma`] and
//! [`super::outbox`] start operations, [`super::serve`] executes requests of peers, and
//! [`super::epoch`] handles the loss of ranks.

use super::{
    arrivals::Arrival,
    confirm::Unconfirmed,
    counters::Counters,
    directory::Directory,
    failures::{GRACE, Orphaned},
    flight::{Flights, Job},
    keys::{Keys, RemotePiece},
    link::Link,
    message::Head,
    mutant::Mutant,
    outbox::Outbox,
    registered::{RegisteredHeap, network},
    remote_rank::{HeldNotice, QueuedNotice, RemoteRank, Window},
    watched::Watched,
    written,
};
use crate::Event;
use core::{fmt, time::Duration};
use rdma_fabric::{Fabric, FabricError, Rank, Result};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    task::Waker,
    time::Instant,
};
use tofu2_shm::part::Part;

/// Maximum number of operations and requests of this rank in flight.
pub(super) const DEEPEST: usize = 512;

/// The phase of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// A rank is lost: no new operations start.
    Draining,
    /// The endpoint could not be opened or has failed: no further operations start.
    Broken,
}

/// The state of a rank, without its endpoint.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) me: u32,
    pub(super) part: Part,
    /// This rank's access to its own node.
    pub(super) below: Fabric,
    pub(super) phase: Phase,
    /// The epoch whose drain has not been reported to the `Council` yet.
    pub(super) untold: Option<u64>,
    pub(super) flights: Flights,
    pub(super) directory: Directory,
    /// This rank's own heap.
    pub(super) heap: Arc<RegisteredHeap>,
    /// The keys of the other ranks' heaps.
    pub(super) keys: Keys,
    pub(super) ranks: BTreeMap<u32, RemoteRank>,
    /// Puts to all ranks together.
    pub(super) puts: Window,
    pub(super) outbox: Outbox,
    /// Transfers of which a part has completed and the next one has not been posted.
    pub(super) halfway: VecDeque<u64>,
    pub(super) orphaned: HashMap<u64, Orphaned>,
    /// Ranks to which an answer could not be sent: the time and the error of the first failure.
    pub(super) unanswered: BTreeMap<u32, (Instant, FabricError)>,
    /// Whether an operation or answer waits for the report of a loss, or for [`Core::grace`] to
    /// pass.
    pub(super) trouble: bool,
    pub(super) looked_at: Instant,
    /// [`GRACE`], except in tests.
    pub(super) grace: Duration,
    /// A fault injected by a test.
    pub(super) mutant: Option<Mutant>,
    /// The unreported error of puts to a rank.
    pub(super) errors: BTreeMap<u32, FabricError>,
    /// Whether puts complete when their bytes are visible, not when they are acknowledged.
    delivery: bool,
    /// Acknowledged puts that may not be visible, by rank; no entry is empty.
    pub(super) unconfirmed: BTreeMap<u32, Unconfirmed>,
    /// Unsent notices by target rank, in order; no entry is empty.
    pub(super) queued: BTreeMap<u32, VecDeque<QueuedNotice>>,
    /// Received notices that wait for room, by sender and in order; no entry is empty.
    pub(super) held: BTreeMap<u32, VecDeque<HeldNotice>>,
    /// Wakers of tasks that wait for room, or for puts to become visible.
    pub(super) waiters: Vec<Waker>,
    /// Wakers to wake after the lock is released.
    pub(super) woken: Vec<Waker>,
    /// Wakers to drop after the lock is released: dropping one may drop its task, which may use the
    /// lock.
    pub(super) shed: Vec<Waker>,
    /// Lost ranks, including those whose loss has not been reported yet.
    pub(super) lost: BTreeSet<u32>,
    /// Revoke requests for regions in which operations are still in flight.
    pub(super) revoking: Vec<Head>,
    /// The door of this rank's endpoint: messages for another door are dropped.
    pub(super) door: u64,
    /// Whether the target of a put is woken by a message, because the provider delivers no data.
    pub(super) tells_by_message: bool,
    /// Deferred work of control queues and gates.
    pub(super) arrivals: VecDeque<Arrival>,
    pub(super) counters: Counters,
    /// The words that are waited for, with `AtomicsBy::Nic`.
    watched: Option<Arc<Watched>>,
    /// The id of the rank's `Net`, which is stored in the regions that it looks up.
    pub(super) net: u64,
}

/// The state of a rank.
#[derive(Debug)]
pub(super) struct State {
    pub(super) link: Option<Link>,
    pub(super) core: Core,
}

/// Describes the operations in flight, for debug output.
impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} messages wait", self.phase, self.unsent())?;
        self.flights.all().try_for_each(|flight| write!(f, ", {:?} at rank {}", flight.job, flight.rank))?;
        let queued = |(rank, to): (&u32, &VecDeque<_>)| write!(f, ", {} notices to rank {rank}", to.len());
        self.queued.iter().try_for_each(queued)?;
        let held = |(rank, of): (&u32, &VecDeque<_>)| write!(f, ", {} notices of rank {rank}", of.len());
        self.held.iter().try_for_each(held)
    }
}

impl Core {
    pub(super) fn new(net: u64, part: Part, link: &Link, watched: Option<Arc<Watched>>) -> Self {
        let below = part.fabric();
        Core {
            net,
            me: below.rank().number(),
            part,
            below,
            phase: Phase::Running,
            untold: None,
            flights: Flights::default(),
            directory: Directory::default(),
            heap: link.heap.clone(),
            keys: Keys::default(),
            ranks: BTreeMap::new(),
            puts: Window::default(),
            outbox: Outbox::default(),
            halfway: VecDeque::new(),
            orphaned: HashMap::new(),
            unanswered: BTreeMap::new(),
            trouble: false,
            looked_at: Instant::now(),
            grace: GRACE,
            mutant: None,
            errors: BTreeMap::new(),
            delivery: link.endpoint.limits().delivery,
            unconfirmed: BTreeMap::new(),
            queued: BTreeMap::new(),
            held: BTreeMap::new(),
            waiters: Vec::new(),
            woken: Vec::new(),
            shed: Vec::new(),
            lost: BTreeSet::new(),
            revoking: Vec::new(),
            door: link.door,
            tells_by_message: written::encode(0, 0, link.endpoint.limits().data).is_none(),
            arrivals: VecDeque::new(),
            counters: Counters::default(),
            watched,
        }
    }

    /// Adds a waker to those that wait for room or puts.
    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            self.waiters.push(waker.clone());
        }
    }

    pub(super) fn remote(&mut self, rank: u32) -> &mut RemoteRank {
        self.ranks.entry(rank).or_default()
    }

    /// Returns the registered piece that contains a byte of a rank's heap.
    ///
    /// # Errors
    /// [`FabricError::Corrupt`]: the rank has published a region, but not the key of its memory.
    pub(super) fn piece(&self, rank: u32, at: u64) -> Result<RemotePiece> {
        let own = || self.heap.piece(usize::try_from(at).ok()?).map(|(start, region)| (start as u64, region.key()));
        let piece = match rank == self.me {
            true => own().map(|(start, key)| RemotePiece::new(start, key)),
            false => self.keys.piece(rank, at),
        };
        piece.ok_or(FabricError::Corrupt { rank: Rank::new(rank), what: &"the keys of its memory" })
    }

    /// Returns whether a test injects this fault.
    pub(super) fn has_mutant(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Completes an operation or request.
    pub(super) fn end(&mut self, id: u64, outcome: Result<u64>) {
        let failed = outcome.as_ref().err().cloned();
        let Some(flight) = self.flights.end(id, outcome) else { return };
        let (rank, put, remote, own) = (flight.rank, flight.put, flight.remote.take(), flight.own.take());
        let (waker, wanted, posted) = (flight.waker.take(), flight.wanted, flight.posted);
        let is_notice = matches!(flight.job, Job::PutThenNotice | Job::Notice);
        let confirms = matches!(flight.job, Job::Confirm);
        let moved = matches!(flight.job, Job::Put | Job::Word(_)) && failed.is_none();
        let unconfirmed = remote.as_ref().filter(|_| moved && !self.delivery).map(|remote| remote.at);
        if let (Job::GetInto(place), None) = (&flight.job, &failed) {
            self.below.provider().wake(place);
        }
        self.woken.extend(waker);
        if posted && (remote.is_some() || own.is_some()) {
            self.orphaned.insert(id, Orphaned::new(remote, own));
            self.trouble = true;
        } else {
            self.leave_region(remote.as_deref(), own);
        }
        if is_notice {
            self.give_up_notice(rank, id);
        }
        if confirms {
            self.confirmed(rank, failed.clone());
        }
        if let Some(put) = put {
            match unconfirmed {
                Some(at) => self.acknowledged(rank, put, at),
                None => self.end_put(rank, put),
            }
            if let (Some(error), false) = (failed, wanted) {
                self.errors.entry(rank).or_insert(error);
            }
        }
        if !wanted && let Some(flight) = self.flights.remove(id) {
            self.ended(flight);
        }
        self.woken.append(&mut self.waiters);
    }
}

impl State {
    /// Makes progress on the endpoint and handles its events. Returns the number of events.
    pub(super) fn progress(&mut self) -> usize {
        let State { link: Some(link), core } = self else { return 0 };
        let worked = link.endpoint.progress(&mut |event| match event {
            Event::Message(message) => core.receive(message),
            Event::Complete { tag, outcome } => core.complete(tag, outcome),
            Event::Data(told) => written::wake(&core.part, told),
            Event::Fault(_) => {}
        });
        // An atomic of a peer produces no event.
        if core.watched.as_ref().is_some_and(|watched| watched.has_news(&core.below)) {
            core.part.wake();
        }
        core.offer_held();
        core.end_trouble();
        let events = worked.unwrap_or_else(|error| {
            core.give_up(&network(&error));
            0
        });
        self.advance();
        self.confirm_wanted();
        self.flush_outbox();
        events
    }
}

impl Core {
    /// Checks that the endpoint has not failed.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn is_whole(&self) -> Result<()> {
        let failed = FabricError::System { call: &"libfabric", errno: 0 };
        if self.phase == Phase::Broken { Err(failed) } else { Ok(()) }
    }

    /// Fails all operations in flight: the endpoint is no longer usable.
    pub(super) fn give_up(&mut self, error: &FabricError) {
        self.phase = Phase::Broken;
        for id in self.flights.those(|_| true) {
            self.end(id, Err(error.clone()));
        }
        self.none_confirmed(error);
        // Waits for gates check the state again.
        self.part.wake();
    }
}
