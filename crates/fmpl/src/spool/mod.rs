//! The spool: messages that wait, in their sender's memory, to be fetched by their receivers.

use crate::{
    Communicator, FmplError, Result,
    area::{Kind, Lane, OFFERS, Record, Taken},
    point::{Bell, Pending},
    state::{LaneId, State},
};
use core::ops::Range;
use rdma_fabric::{Fabric, LocalSpan, Region, join::race_all};

/// Spooled messages, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spooled {
    /// How many have been received since the last look.
    pub received: usize,
    /// How many wait to be received.
    pub waiting: usize,
}

/// A rank's spool in one communicator.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The memory; `None` if it has no bytes.
    memory: Option<(Region, LocalSpan<u8>)>,
    /// What is free of it, in order of addresses; no two ranges touch.
    free: Vec<Range<usize>>,
    held: Vec<Held>,
    /// How many messages were received that nobody has been told of.
    received: usize,
    /// Why a message was not received: its receiver has refused it, or was lost; nobody has been told
    /// of it.
    refused: Option<FmplError>,
}

/// A message that waits.
#[derive(Debug)]
struct Held {
    id: LaneId,
    n: u64,
    bytes: usize,
    room: Room,
}

/// Where it waits.
#[derive(Debug)]
enum Room {
    Spool(Range<usize>),
    /// In memory of its own: its receiver was waiting already, but there was no room in the spool.
    Own {
        _region: Region,
    },
}

/// Messages begin at multiples of this many bytes.
const ALIGN: usize = 64;

impl Spool {
    pub(crate) fn new(fabric: &Fabric, bytes: usize) -> Result<Self> {
        let (mut memory, mut free) = (None, Vec::new());
        if bytes > 0 {
            let region = fabric.alloc(bytes)?;
            let span = region.span(fabric, 0, bytes)?;
            memory = Some((region, span));
            free.push(0..bytes);
        }
        Ok(Spool { memory, free, held: Vec::new(), received: 0, refused: None })
    }

    /// Returns how many messages wait in memory of their own for a peer.
    pub(crate) fn beside(&self, peer: usize) -> u64 {
        let beside = |held: &&Held| held.id.peer == peer && matches!(held.room, Room::Own { .. });
        self.held.iter().filter(beside).count() as u64
    }

    /// Copies a message into the spool, or into memory of its own if it `must` be kept; `None` if
    /// there is no room now.
    fn keep(&mut self, fabric: &Fabric, bytes: &[u8], must: bool) -> Result<Option<(Room, Record)>> {
        let record = |region: &Region, offset| Record {
            kind: Kind::Offered,
            bytes: bytes.len(),
            region: region.key(),
            offset: offset as u64,
        };
        if let Some((region, span)) = &self.memory
            && let Some(range) = take(&mut self.free, bytes.len().max(1).next_multiple_of(ALIGN))
        {
            let at = range.start;
            fabric.write(&*span.part(at..at + bytes.len())?, bytes)?;
            return Ok(Some((Room::Spool(range), record(region, at))));
        }
        if !must {
            return Ok(None);
        }
        let region = fabric.alloc(bytes.len().max(1))?;
        fabric.write(&region.span(fabric, 0, bytes.len())?, bytes)?;
        let record = record(&region, 0);
        Ok(Some((Room::Own { _region: region }, record)))
    }
}

/// Takes the first free range that is long enough.
fn take(free: &mut Vec<Range<usize>>, bytes: usize) -> Option<Range<usize>> {
    let at = free.iter().position(|range| range.len() >= bytes)?;
    let taken = free[at].start..free[at].start + bytes;
    free[at].start = taken.end;
    if free[at].is_empty() {
        free.remove(at);
    }
    Some(taken)
}

/// Gives a range back.
fn give(free: &mut Vec<Range<usize>>, range: Range<usize>) {
    let at = free.partition_point(|before| before.start < range.start);
    free.insert(at, range);
    if at + 1 < free.len() && free[at].end == free[at + 1].start {
        free[at].end = free.remove(at + 1).end;
    }
    if at > 0 && free[at - 1].end == free[at].start {
        free[at - 1].end = free.remove(at).end;
    }
}

impl State {
    /// Spools message `n`, whose send is then over; `None` if there is no room, for what was received
    /// at the last [sweep](State::sweep). The receiver's bell is changed when the message is offered,
    /// if there is one.
    pub(crate) fn spool(
        &mut self,
        fabric: &Fabric,
        id: LaneId,
        (n, bytes): (u64, &[u8]),
        must: bool,
        bell: Option<Bell>,
    ) -> Result<Option<()>> {
        let Some((room, record)) = self.spool.keep(fabric, bytes, must)? else { return Ok(None) };
        self.spool.held.push(Held { id, n, bytes: bytes.len(), room });
        let ends = self.peers[id.peer].ends.clone();
        let lane = self.lane(id);
        (lane.sent, lane.sending) = (n + 1, false);
        let taken = lane.taken;
        self.pending.push(Pending::offer(fabric.clone(), ends, id, (n, record, taken), bell));
        Ok(Some(()))
    }

    /// Returns whether a message of the spool was offered, or has to wait until others are received.
    pub(crate) fn is_offered(&mut self, id: LaneId, n: u64) -> bool {
        self.lane(id).taken + OFFERS <= n || !self.pending.iter().any(|pending| pending.id == id)
    }

    /// Gives up what was spooled for a lane, because it could not be offered.
    pub(crate) fn fail(&mut self, id: LaneId, error: FmplError) {
        let (given_up, held): (Vec<_>, _) = self.spool.held.drain(..).partition(|held| held.id == id);
        self.spool.held = held;
        for Held { room, .. } in given_up {
            if let Room::Spool(range) = room {
                give(&mut self.spool.free, range);
            }
        }
        self.lane(id).failed = Some(error.clone());
        self.spool.refused = Some(error);
    }

    /// Frees what was received.
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
            if let Room::Spool(range) = self.spool.held.swap_remove(at).room {
                give(&mut self.spool.free, range);
            }
            self.spool.received += 1;
        }
        Ok(())
    }
}

impl Communicator {
    /// Returns whether a message was refused that has been taken; the next look will not tell.
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

    /// Looks at the spool (`fmpl_sendbuf_check`): frees what was received, and offers what could not
    /// be offered before.
    ///
    /// # Errors
    /// [`FmplError::TooLong`] if a receiver refused a message since the last look;
    /// [`FmplError::Fabric`] if one could not be offered, as its receiver was lost.
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

    /// Waits until a message of the spool was received, whichever that is, if there is any.
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

    /// Waits until all sends are over and everything that was spooled is received.
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

#[cfg(test)]
mod tests {
    use super::{give, take};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_given_back_is_free_again(sizes in prop::collection::vec(1usize..300, 1..40), order in any::<u64>()) {
            let all = 0..2000;
            let mut free = Vec::from([all.clone()]);
            let mut taken: Vec<_> = sizes.iter().filter_map(|size| take(&mut free, *size)).collect();
            let mut sorted = taken.clone();
            sorted.sort_by_key(|range| range.start);
            prop_assert!(sorted.windows(2).all(|two| two[0].end <= two[1].start));
            prop_assert!(sorted.iter().all(|range| range.end <= all.end));
            let mut order = order;
            while !taken.is_empty() {
                let range = taken.swap_remove(order as usize % taken.len());
                order = order.rotate_right(7);
                give(&mut free, range);
                prop_assert!(free.windows(2).all(|two| two[0].end < two[1].start));
            }
            prop_assert_eq!(free, Vec::from([all]));
        }
    }
}
