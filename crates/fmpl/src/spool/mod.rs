//! The spool: messages that wait, in their sender's memory, to be fetched by their receivers.

mod idle;
mod memory;
mod queue;
mod siblings;

use crate::{
    Communicator, FmplError, Result,
    area::{Kind, Lane, OFFERS, Record, Taken},
    point::{Doorbell, Offer, Pending, Source},
    state::{LaneId, State},
};
use core::time::Duration;
pub(crate) use idle::Idle;
pub(crate) use memory::Room;
use memory::{Memory, Otherwise};
pub(crate) use queue::{Announced, Queue, Reading};
use rdma_fabric::{Fabric, FabricError, join::race_all};
pub(crate) use siblings::Siblings;

/// Spooled messages, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spooled {
    /// The number of messages received since the last check.
    pub received: usize,
    /// The number of messages that wait to be received.
    pub waiting: usize,
}

/// A rank's spool in one communicator.
#[derive(Debug)]
pub(crate) struct Spool {
    memory: Memory,
    /// The memory of the queues' nodes.
    nodes: Memory,
    /// The longest time that a send waits before the spool grows; `None` if it never grows.
    patience: Option<Duration>,
    held: Vec<Held>,
    /// The number of messages that a growing spool may hold before the next sweep, which checks all
    /// of them.
    due: usize,
    /// The number of received messages that have not been reported yet.
    received: usize,
    /// Why a message was not received: its receiver refused it, or was lost; not reported yet.
    refused: Option<FmplError>,
}

/// A message that waits.
#[derive(Debug)]
struct Held {
    id: LaneId,
    n: u64,
    bytes: usize,
    room: Room,
    /// Its node, if it is in its lane's queue.
    node: Option<Room>,
}

/// A spool grows by at least this number of bytes, and so does the memory of queues.
const GROWTH: usize = 256 << 10;
const NODES: usize = 4 << 10;

impl Spool {
    pub(crate) fn new(fabric: &Fabric, bytes: usize, patience: Option<Duration>) -> Result<Self> {
        let (memory, nodes) = (Memory::new(fabric, bytes, GROWTH)?, Memory::new(fabric, 0, NODES)?);
        Ok(Spool { memory, nodes, patience, held: Vec::new(), due: 0, received: 0, refused: None })
    }

    /// Returns whether a message of `bytes` bytes fits into the spool when nothing else is held.
    pub(crate) fn may_hold(&self, bytes: usize) -> bool {
        self.grows() || self.memory.may_hold(bytes)
    }

    /// Returns the number of waiting messages, and the number of their bytes.
    fn load(&self) -> (usize, usize) {
        (self.held.len(), self.held.iter().map(|held| held.bytes).fold(0, usize::saturating_add))
    }

    fn grows(&self) -> bool {
        self.patience.is_some()
    }
}

/// Returns the fabric error if it reports that memory or regions have run out.
pub(crate) fn no_memory(error: &FmplError) -> Option<&FabricError> {
    match error {
        FmplError::Fabric(cause) if is_no_room(cause) => Some(cause),
        _ => None,
    }
}

fn is_no_room(error: &FabricError) -> bool {
    use FabricError::{OutOfMachineMemory, OutOfMemory, TooManyRegions};
    matches!(error, OutOfMemory(_) | OutOfMachineMemory(_) | TooManyRegions { .. })
}

/// Returns whether a message is longer than a quarter of the available memory. A few other messages
/// can prevent such a message from being spooled, so its send then waits for its receive instead of
/// failing.
fn is_long(bytes: usize, no_memory: &FabricError) -> bool {
    match no_memory {
        FabricError::OutOfMemory(error) => bytes > error.segment / 4,
        FabricError::OutOfMachineMemory(error) => bytes as u64 > error.available / 4,
        _ => false,
    }
}

impl State {
    /// Returns the number of messages that wait in separate pieces of memory for receives of any
    /// index.
    pub(crate) fn beside(&self, peer: usize) -> u64 {
        let Spool { memory, held, .. } = &self.spool;
        let is_named = |id: LaneId| id.peer == peer && id.lane < self.indices;
        held.iter().filter(|held| is_named(held.id) && memory.is_single(&held.room)).count() as u64
    }

    /// Spools message `n`, whose send then completes; `None` if there is no room, counting as free
    /// the messages received at the last [sweep](State::sweep). If the receiver has a doorbell, it
    /// is changed when the message is offered.
    pub(crate) fn spool(
        &mut self,
        fabric: &Fabric,
        id: LaneId,
        (n, source): (u64, &mut dyn Source),
        must: bool,
        doorbell: Option<Doorbell>,
    ) -> Result<Option<()>> {
        let grows = self.spool.grows();
        let otherwise = if must && !grows { Otherwise::Alone } else { Otherwise::Nowhere };
        let mut kept = self.spool.memory.keep(fabric, source, otherwise)?;
        if kept.is_none() && grows {
            self.sweep(fabric)?;
            kept = self.spool.memory.keep(fabric, source, Otherwise::Grow)?;
        }
        let Some((room, span)) = kept else { return Ok(None) };
        let record = Record::of_span(Kind::Offered, &span);
        let (announced, node) = match self.place(fabric, id, n, record) {
            Ok(place) => place,
            Err(error) => {
                self.spool.memory.give_back(room);
                return Err(error);
            }
        };
        self.spool.held.push(Held { id, n, bytes: span.len(), room, node });
        let lane = self.lane(id);
        (lane.sent, lane.sending) = (n + 1, false);
        let ends = self.peers[id.peer].ends.clone();
        self.pending.push(Pending::of_spool(fabric.clone(), ends, id, Offer { n, record, announced, doorbell }));
        Ok(Some(()))
    }

    /// Discards the spooled messages of a lane because one of them could not be announced, and
    /// reports the error.
    pub(crate) fn fail(&mut self, id: LaneId, error: FmplError) {
        if !self.lost.contains(self.peers[id.peer].member) {
            self.spool.refused = Some(error.clone());
        }
        self.give_up(id, error);
    }

    /// Discards the spooled messages of a lane; no message can be sent after it.
    pub(crate) fn give_up(&mut self, id: LaneId, error: FmplError) {
        let (given_up, held): (Vec<_>, _) = self.spool.held.drain(..).partition(|held| held.id == id);
        self.spool.held = held;
        for Held { room, node, .. } in given_up {
            self.spool.memory.give_back(room);
            self.free_node(node);
        }
        self.lane(id).failed = Some(error);
    }

    /// Returns the number of messages of a lane that the peer is known to have taken.
    fn taken(&self, fabric: &Fabric, peer: usize, lane: usize) -> Result<u64> {
        let peer = &self.peers[peer];
        let Taken { messages, .. } = Lane::new(fabric, &peer.ends, lane).taken()?;
        Ok(messages.max(peer.lanes[lane].taken))
    }

    /// Returns how long the send of message `n` should wait for its peer; `None` if the peer can
    /// fetch the message by itself, or has stalled.
    fn patience(&self, fabric: &Fabric, id: LaneId, n: u64) -> Result<Option<Duration>> {
        let Some(patience) = self.spool.patience else { return Ok(None) };
        let is_far_ahead = self.taken(fabric, id.peer, id.lane)? + OFFERS <= n;
        let stands_still = match self.peers[id.peer].stalled {
            Some((lane, then)) => self.taken(fabric, id.peer, lane)? == then,
            None => false,
        };
        Ok((is_far_ahead && !stands_still).then_some(patience))
    }

    /// Frees the space of received messages, if a sweep is due: sends do not wait for room in a
    /// spool that grows, so it is swept when it holds twice as much as after the last sweep, and
    /// before it grows.
    pub(crate) fn sweep_if_due(&mut self, fabric: &Fabric) -> Result<()> {
        let is_due = !self.spool.grows() || self.spool.held.len() >= self.spool.due;
        if is_due { self.sweep(fabric) } else { Ok(()) }
    }

    /// Frees the space of received messages.
    pub(crate) fn sweep(&mut self, fabric: &Fabric) -> Result<()> {
        let mut at = 0;
        while at < self.spool.held.len() {
            let Held { id, n, bytes, .. } = self.spool.held[at];
            let peer = &mut self.peers[id.peer];
            let Taken { messages, refused } = Lane::new(fabric, &peer.ends, id.lane).taken()?;
            let lane = &mut peer.lanes[id.lane];
            if lane.taken.max(messages) <= n {
                at += 1;
                continue;
            }
            lane.taken = lane.taken.max(messages);
            if refused == Some(n) {
                let (from, to, index) = (self.me, peer.member, id.lane.checked_sub(self.indices).unwrap_or(id.lane));
                self.spool.refused = Some(FmplError::TooLong { from, to, index, bytes, room: 0 });
            }
            let Held { room, node, .. } = self.spool.held.swap_remove(at);
            self.spool.memory.give_back(room);
            self.free_node(node);
            self.spool.received += 1;
        }
        self.spool.due = 2 * self.spool.held.len() + 8;
        Ok(())
    }
}

impl Communicator {
    /// Returns whether a message that has been taken was refused; the next check of the spool does
    /// not report it.
    pub(crate) fn was_refused(&self, id: LaneId, n: u64) -> Result<bool> {
        self.with(|state| {
            let refused = Lane::new(&self.fabric, &state.peers[id.peer].ends, id.lane).taken()?.refused == Some(n);
            state.sweep(&self.fabric)?;
            if refused {
                state.spool.refused = None;
            }
            Ok(refused)
        })?
    }

    /// Waits for a limited time if message `n` is too far ahead of those that its receiver has
    /// fetched.
    pub(crate) async fn not_too_far(&self, lane: Lane<'_>, id: LaneId, n: u64) -> Result<()> {
        if let Some(patience) = self.with(|state| state.patience(&self.fabric, id, n))?? {
            let fetched = self.progressing(lane.until_taken(n + 1 - OFFERS));
            if self.fabric.before(self.fabric.now() + patience, fetched).await.transpose()?.is_none() {
                self.with(|state| {
                    let taken = state.taken(&self.fabric, id.peer, id.lane)?;
                    state.peers[id.peer].stalled = Some((id.lane, taken));
                    Ok::<_, FmplError>(())
                })??;
            }
        }
        Ok(())
    }

    /// Checks the spool (`fmpl_sendbuf_check`): frees the space of received messages. No message
    /// depends on this call.
    ///
    /// # Errors
    /// [`FmplError::TooLong`] if a receiver has refused a message since the last check;
    /// [`FmplError::Fabric`] if one could not be announced, as its receiver was lost.
    pub async fn check_spool(&self) -> Result<Spooled> {
        self.once().await;
        self.with(|state| {
            state.sweep(&self.fabric)?;
            match state.spool.refused.take() {
                Some(error) => Err(error),
                None => Ok(Spooled {
                    received: core::mem::take(&mut state.spool.received),
                    waiting: state.spool.held.len(),
                }),
            }
        })?
    }

    /// Returns the memory by which the spool [has grown](crate::Options::growing) and that is now
    /// empty.
    ///
    /// # Errors
    /// [`FmplError::OtherThread`]; [`FmplError::Fabric`].
    pub fn trim_spool(&self) -> Result<()> {
        self.with(|state| {
            state.sweep(&self.fabric)?;
            drop((state.spool.memory.take_idle(), state.spool.nodes.take_idle()));
            Ok(())
        })?
    }

    /// Spools a message as [`State::spool`] does. If memory runs out, the idle memory of all
    /// communicators of the rank is given back first. Then a message that is [long](is_long), and
    /// whose receive may still be posted, waits: `None`.
    pub(crate) fn spool(
        &self,
        bytes: usize,
        may_wait: bool,
        mut spool: impl FnMut(&mut State) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        let kept = self.with(|state| (state.keeps_buffers || !state.spool.grows()).then(|| spool(state)))?;
        let mut spooled = match kept {
            Some(spooled) => spooled,
            None => {
                self.keep_buffers()?;
                self.with(&mut spool)?
            }
        };
        if spooled.as_ref().is_err_and(|error| no_memory(error).is_some()) {
            self.siblings.trim(&self.fabric);
            spooled = self.with(&mut spool)?;
        }
        let Err(error) = spooled else { return spooled };
        let Some(cause) = no_memory(&error) else { return Err(error) };
        if may_wait && is_long(bytes, cause) {
            return Ok(None);
        }
        let (waiting, held) = self.with(|state| state.spool.load())?;
        Err(FmplError::SpoolFull { bytes, waiting, held, cause: cause.clone() })
    }

    /// Waits until any message of the spool has been received, if there is one.
    pub(crate) async fn one_fetched(&self) -> Result<()> {
        let firsts = self.with(|state| {
            let mut firsts: Vec<(LaneId, u64)> = state.spool.held.iter().map(|held| (held.id, held.n)).collect();
            firsts.sort_unstable_by_key(|(id, n)| (id.peer, id.lane, *n));
            firsts.dedup_by_key(|(id, _)| *id);
            let of_peer = |(id, n): (LaneId, u64)| (state.peers[id.peer].ends.clone(), id.lane, n);
            firsts.into_iter().map(of_peer).collect::<Vec<_>>()
        })?;
        race_all(firsts.iter().map(|(ends, lane, n)| Lane::new(&self.fabric, ends, *lane).until_taken(n + 1))).await
    }

    /// Waits until all sends have completed and all spooled messages have been received.
    ///
    /// # Errors
    /// As [`Communicator::check_spool`].
    pub async fn all_fetched(&self) -> Result<()> {
        self.until(|state| state.pending.is_empty().then_some(())).await?;
        while self.check_spool().await?.waiting > 0 {
            self.progressing(self.one_fetched()).await?;
        }
        Ok(())
    }
}
