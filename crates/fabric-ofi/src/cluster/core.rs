//! The state of a rank's share in a cluster, and how operations begin and end. What is done for
//! peers is in [`super::serve`]; a loss in [`super::epoch`].

use super::{
    directory::{Directory, FarRegion},
    far_rank::{FarRank, QueuedNotice, Window},
    flight::{Flight, Flights, Job},
    link::Link,
    message::Head,
};
use crate::{Brought, Event, GetInto, OfiError, PutFrom, RemoteKey};
use core::{fmt, ops::Range};
use rdma_fabric::{Fabric, FabricError, Rank, RegionKey, Result};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    task::Waker,
    time::Instant,
};
use tofu2_sim::shm::part::Part;

/// The most operations and requests of this rank under way.
pub(super) const DEEPEST: usize = 512;
/// Set in the tag of a message that asks for something; the rest is its flight.
const SENT: u64 = 1 << 63;

/// What the network is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Nothing new begins: a rank is lost. `told` once all that was under way is over.
    Draining {
        epoch: u64,
        told: bool,
    },
    /// The endpoint could not be opened or failed: nothing begins any more.
    Broken,
}

/// What was done by which means, for those who want to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Puts of libfabric.
    pub writes: u64,
    /// Gets of libfabric.
    pub reads: u64,
    /// Messages sent.
    pub messages: u64,
    /// Requests of peers that were served.
    pub served: u64,
}

/// A message that found no room.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    tag: u64,
    head: Head,
    bytes: Vec<u8>,
}

/// Everything but the endpoint.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) me: u32,
    pub(super) part: Part,
    /// This rank's access to its node.
    pub(super) below: Fabric,
    pub(super) phase: Phase,
    pub(super) flights: Flights,
    pub(super) directory: Directory,
    pub(super) ranks: BTreeMap<u32, FarRank>,
    /// Puts to all of them together.
    pub(super) puts: Window,
    outbox: VecDeque<Waiting>,
    /// Those who wait for room, or for puts to be visible.
    pub(super) waiters: Vec<Waker>,
    /// Those to be woken when the lock is given back.
    pub(super) woken: Vec<Waker>,
    /// Lost ranks, told or about to be.
    pub(super) lost: BTreeSet<u32>,
    /// Requests to end the use of regions in which something is under way.
    pub(super) revoking: Vec<Head>,
    /// Our own door: messages for another one are dropped.
    pub(super) door: u64,
    pub(super) counters: Counters,
}

/// A rank's share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) link: Option<Link>,
    pub(super) core: Core,
}

/// What libfabric says, as an error of the contract.
pub(super) fn network(error: &OfiError) -> FabricError {
    let errno = match error {
        OfiError::Call { code, .. } => *code,
        _ => 0,
    };
    FabricError::System { call: &"libfabric", errno }
}

/// What is under way, for people.
impl fmt::Display for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} messages wait", self.phase, self.outbox.len())?;
        self.flights.all().try_for_each(|flight| write!(f, ", {:?} at rank {}", flight.job, flight.rank))?;
        let told = |(rank, far): (&u32, &FarRank)| {
            let (queued, held) = (far.queued.len(), far.held.len());
            if queued + held == 0 { Ok(()) } else { write!(f, ", notices: {queued} to and {held} of rank {rank}") }
        };
        self.ranks.iter().try_for_each(told)
    }
}

impl Core {
    pub(super) fn new(part: Part, door: u64) -> Self {
        let below = part.fabric();
        Core {
            me: below.rank().number(),
            part,
            below,
            phase: Phase::Running,
            flights: Flights::default(),
            directory: Directory::default(),
            ranks: BTreeMap::new(),
            puts: Window::default(),
            outbox: VecDeque::new(),
            waiters: Vec::new(),
            woken: Vec::new(),
            lost: BTreeSet::new(),
            revoking: Vec::new(),
            door,
            counters: Counters::default(),
        }
    }

    /// Sends a message that is acknowledged, for which nobody waits.
    pub(super) fn tell(&mut self, rank: u32, head: Head, bytes: Vec<u8>) {
        if !self.lost.contains(&rank) {
            let id = self.flights.add(Flight::new(rank, Job::Ask));
            self.send_soon(rank, id | SENT, Head { id, ..head }, bytes);
        }
    }

    /// Adds a waker to those of who waits for room or puts.
    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            self.waiters.push(waker.clone());
        }
    }

    /// Numbers another put to a rank, and among all.
    pub(super) fn count_put(&mut self, rank: u32) -> (u64, u64) {
        (self.far(rank).puts.begin(), self.puts.begin())
    }

    /// Notes that a put is visible, or never will be.
    pub(super) fn end_put(&mut self, rank: u32, (number, among_all): (u64, u64)) {
        self.far(rank).puts.end(number);
        self.puts.end(among_all);
    }

    /// Returns whether something may begin now.
    pub(super) fn has_room(&self) -> bool {
        self.phase == Phase::Running && self.flights.under_way() < DEEPEST && self.outbox.is_empty()
    }

    pub(super) fn far(&mut self, rank: u32) -> &mut FarRank {
        self.ranks.entry(rank).or_default()
    }

    /// Returns whether all messages have left.
    pub(super) fn has_sent_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sends a message when there is room.
    pub(super) fn send_soon(&mut self, rank: u32, tag: u64, head: Head, bytes: Vec<u8>) {
        if !self.lost.contains(&rank) {
            self.outbox.push_back(Waiting { rank, tag, head, bytes });
        }
    }

    /// Drops messages to lost ranks.
    pub(super) fn clear_outbox(&mut self) {
        let lost = &self.lost;
        self.outbox.retain(|waiting| !lost.contains(&waiting.rank));
    }

    /// Ends an operation or request.
    pub(super) fn end(&mut self, id: u64, outcome: Result<u64>) {
        let failed = outcome.as_ref().err().cloned();
        let Some(flight) = self.flights.end(id, outcome) else { return };
        let (rank, put, far, own) = (flight.rank, flight.put, flight.far.take(), flight.own.take());
        let (waker, wanted) = (flight.waker.take(), flight.wanted);
        if let (Job::GetInto(place), None) = (&flight.job, &failed) {
            self.below.provider().ring(place);
        }
        self.woken.extend(waker);
        if let Some(far) = far
            && self.directory.leave(&far, own)
            && far.is_revoked()
        {
            self.answer_revokes(&far);
        }
        if let Some(put) = put {
            self.end_put(rank, put);
            if let (Some(error), false) = (failed, wanted) {
                self.far(rank).error.get_or_insert(error);
            }
        }
        if !wanted {
            self.flights.remove(id);
        }
        self.woken.append(&mut self.waiters);
    }

    /// Notes that the network refused an operation. It ends when its target's loss is told, or after
    /// some time.
    pub(super) fn refuse(&mut self, id: u64, error: FabricError) {
        if let Some(flight) = self.flights.get(id) {
            flight.refused.get_or_insert((Instant::now(), error));
        }
    }
}

impl State {
    /// Sends what waits, as far as there is room.
    pub(super) fn flush_outbox(&mut self) {
        while let Some(waiting) = self.core.outbox.pop_front() {
            match self.send(waiting.rank, waiting.tag, waiting.head, &waiting.bytes) {
                Ok(true) => {}
                Ok(false) => {
                    self.core.outbox.push_front(waiting);
                    return;
                }
                Err(error) => self.core.refuse(waiting.tag & !SENT, network(&error)),
            }
        }
    }

    fn send(&mut self, rank: u32, tag: u64, head: Head, bytes: &[u8]) -> crate::Result<bool> {
        let Some(link) = &mut self.link else { return Ok(false) };
        let Some((peer, _, door)) = link.reach(rank)? else { return Ok(true) };
        let sent = link.endpoint.send(peer, &[&Head { door, ..head }.to_bytes(), bytes], tag)?;
        self.core.counters.messages += u64::from(sent);
        Ok(sent)
    }

    /// Asks a rank of another node for something, if there is room. Returns the request's id.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn ask(&mut self, flight: Flight, mut head: Head, bytes: &[u8]) -> Result<Option<u64>> {
        self.core.is_whole()?;
        if !self.core.has_room() {
            return Ok(None);
        }
        let rank = flight.rank;
        let id = self.core.flights.add(flight);
        head.id = id;
        match self.send(rank, id | SENT, head, bytes) {
            Ok(true) => Ok(Some(id)),
            Ok(false) => {
                self.core.flights.remove(id);
                Ok(None)
            }
            Err(error) => {
                self.core.flights.remove(id);
                Err(network(&error))
            }
        }
    }

    /// Begins a put by libfabric to `offset` in a region of another node; the caller counts it among
    /// the puts to its rank. Returns its id, or `None` if there is no room.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn write(
        &mut self,
        mut flight: Flight,
        far: &Arc<FarRegion>,
        offset: u64,
        from: Origin<'_>,
    ) -> Result<Option<u64>> {
        if let Origin::Own(own, _) = &from {
            flight.own = Some(*own);
        }
        self.transfer(flight, far, |link, peer, key, id| {
            let from = match &from {
                Origin::Bytes(bytes) => PutFrom::Bytes(bytes),
                Origin::Own(_, range) => PutFrom::Region(&link.heap, range.clone()),
            };
            link.endpoint.put(peer, from, key, far.at + offset, Some(0), id)
        })
        .inspect(|begun| self.core.counters.writes += u64::from(begun.is_some()))
    }

    /// Begins a get by libfabric, as [`State::write`] begins a put.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn read(
        &mut self,
        mut flight: Flight,
        far: &Arc<FarRegion>,
        offset: u64,
        into: Landing,
    ) -> Result<Option<u64>> {
        if let Landing::Own(own, _) = &into {
            flight.own = Some(*own);
        }
        self.transfer(flight, far, |link, peer, key, id| {
            let into = match &into {
                Landing::Bytes(len) => GetInto::Own(*len),
                Landing::Own(_, range) => GetInto::Region(&link.heap, range.clone()),
            };
            link.endpoint.get(peer, into, key, far.at + offset, id)
        })
        .inspect(|begun| self.core.counters.reads += u64::from(begun.is_some()))
    }

    fn transfer(
        &mut self,
        mut flight: Flight,
        far: &Arc<FarRegion>,
        post: impl FnOnce(&mut Link, crate::Peer, RemoteKey, u64) -> crate::Result<bool>,
    ) -> Result<Option<u64>> {
        let (State { link: Some(link), core }, rank) = (self, flight.rank) else { return Ok(None) };
        core.is_whole()?;
        if !core.has_room() {
            return Ok(None);
        }
        // Again, under the lock: the thread that serves may have revoked it a moment ago.
        if far.is_revoked() {
            return Err(FabricError::StaleRegion { rank: Rank::new(rank), region: far.key });
        }
        let reached = link.reach(rank).map_err(|error| network(&error))?;
        let Some((peer, key, _)) = reached else { return Err(FabricError::PeerLost { rank: Rank::new(rank) }) };
        let own = flight.own;
        flight.far = Some(far.clone());
        let id = core.flights.add(flight);
        match post(link, peer, key, id) {
            Ok(true) => {
                core.directory.enter(far, own);
                Ok(Some(id))
            }
            Ok(false) => {
                core.flights.remove(id);
                Ok(None)
            }
            Err(error) => {
                core.flights.remove(id);
                Err(network(&error))
            }
        }
    }

    /// Lets the endpoint work, and does what its events ask for. Returns how many there were.
    pub(super) fn progress(&mut self) -> usize {
        let State { link: Some(link), core } = self else { return 0 };
        let mut bells = false;
        let worked = link.endpoint.progress(&mut |event| match event {
            Event::Message(message) => core.receive(message),
            Event::Over { tag, outcome } => core.over(tag, outcome),
            Event::Data(_) => bells = true,
            Event::Fault(_) => {}
        });
        if bells {
            core.part.wake();
        }
        core.offer_held();
        let events = worked.unwrap_or_else(|error| {
            core.give_up(&network(&error));
            0
        });
        self.flush_outbox();
        events
    }
}

impl Core {
    /// Notes that something posted is over.
    fn over(&mut self, tag: u64, outcome: core::result::Result<Brought<'_>, crate::Failure>) {
        let id = tag & !SENT;
        let brought = match outcome {
            Ok(brought) => brought,
            Err(failure) => {
                return self.refuse(id, FabricError::System { call: &"libfabric", errno: failure.reply.code });
            }
        };
        if tag & SENT != 0 {
            return;
        }
        if let (Brought::Bytes(bytes), Some(flight)) = (brought, self.flights.get(id)) {
            flight.bytes.extend_from_slice(bytes);
        }
        let Some(flight) = self.flights.get(id) else { return };
        if let Job::PutThenNotice = flight.job {
            flight.job = Job::Notice;
            let (rank, far, own) = (flight.rank, flight.far.take(), flight.own.take());
            if let Some(far) = far
                && self.directory.leave(&far, own)
                && far.is_revoked()
            {
                self.answer_revokes(&far);
            }
            let waiting = self.far(rank).queued.iter_mut().find(|queued| queued.id == id);
            waiting.into_iter().for_each(|queued| queued.ready = true);
            return self.send_notices(rank);
        }
        self.end(id, Ok(0));
    }

    /// Sends the notices to a rank that wait for nothing.
    pub(super) fn send_notices(&mut self, rank: u32) {
        while let Some(QueuedNotice { id, head, bytes, .. }) = {
            let queued = &mut self.far(rank).queued;
            if queued.front().is_some_and(|front| front.ready) { queued.pop_front() } else { None }
        } {
            self.send_soon(rank, id | SENT, Head { id, ..head }, bytes);
        }
    }

    /// Checks that the endpoint has not failed.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn is_whole(&self) -> Result<()> {
        let failed = FabricError::System { call: &"libfabric", errno: 0 };
        if self.phase == Phase::Broken { Err(failed) } else { Ok(()) }
    }

    /// Ends everything: the endpoint is of no use any more.
    pub(super) fn give_up(&mut self, error: &FabricError) {
        self.phase = Phase::Broken;
        for id in self.flights.those(|_| true) {
            self.end(id, Err(error.clone()));
        }
    }
}

/// Where the bytes of a put are.
pub(super) enum Origin<'a> {
    Bytes(&'a [u8]),
    /// In a region of this rank: bytes of its heap.
    Own(RegionKey, Range<usize>),
}

/// Where the bytes of a get go.
pub(super) enum Landing {
    Bytes(usize),
    /// Into a region of this rank: bytes of its heap.
    Own(RegionKey, Range<usize>),
}
