//! The receiving end of a channel.

use super::{
    link::{Answer, BLOCK_BYTES, HEADER_BYTES, LocalSide, Telling, Watch, stride},
    outgoing::{DISCONNECT, EAGER, TYPE_AT},
    progress::Turn,
    results::{Arrival, Done},
    table::Ask,
};
use crate::{AcpError, Result};
use core::task::Poll;
use rdma_fabric::{Fabric, FabricError, LocalSpan, Rank, RemoteAddr};
use std::collections::VecDeque;

/// A posted receive.
struct Wanted {
    request: u64,
    buffer: Vec<u8>,
    /// The number of bytes received so far.
    filled: usize,
}

pub(super) struct Incoming {
    pub(super) local: LocalSide,
    data: LocalSpan<u8>,
    slots: u64,
    slot_bytes: usize,
    /// `None` until the sender has requested the connection.
    telling: Option<Telling>,
    /// Whether the sender's memory no longer exists.
    alone: bool,
    /// Waits for connection requests until the end is connected.
    asked: Watch,
    /// The number of slots taken.
    taken: u64,
    wanted: VecDeque<Wanted>,
    /// The message in progress: how many of its bytes have arrived, and how many are missing.
    under_way: Option<(u64, u64)>,
    /// Whether the sender has disconnected.
    disconnected: bool,
    /// The request that completes at the end of the channel.
    closing: Option<u64>,
    pub(super) freed: bool,
}

impl Incoming {
    pub(super) fn new(fabric: &Fabric, [peer, place]: [Rank; 2], options: &super::ChannelOptions) -> Result<Self> {
        let (slots, slot_bytes) = (options.receive_slots, options.slot_bytes);
        let bytes = slots * stride(slot_bytes);
        let local = LocalSide::new(fabric, peer, place, BLOCK_BYTES + bytes)?;
        let data = local.region.span(fabric, BLOCK_BYTES, bytes)?;
        Ok(Incoming {
            local,
            data,
            slots: slots as u64,
            slot_bytes,
            telling: None,
            alone: false,
            asked: Watch::default(),
            taken: 0,
            wanted: VecDeque::with_capacity(options.requests),
            under_way: None,
            disconnected: false,
            closing: None,
            freed: false,
        })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.telling.is_some()
    }

    /// Connects with the sender that made the request.
    pub(super) fn connect(&mut self, fabric: &Fabric, ask: &Ask) -> Result<()> {
        let key = self.local.region.key();
        let (data_at, slots, slot_bytes) = (BLOCK_BYTES as u64, self.slots, self.slot_bytes as u64);
        let answer = Answer { tail: key, data: key, data_at, slots, slot_bytes };
        let block = RemoteAddr { rank: self.local.place, region: ask.block, offset: 0 };
        self.telling = Some(Telling::new(fabric, answer, block)?);
        Ok(())
    }

    pub(super) fn receive(&mut self, request: u64, buffer: Vec<u8>) -> Result<()> {
        if self.disconnected {
            return Err(AcpError::Disconnected { peer: self.local.peer });
        }
        self.wanted.push_back(Wanted { request, buffer, filled: 0 });
        Ok(())
    }

    /// Withdraws a request; returns whether that was possible, because nothing had arrived for it.
    pub(super) fn withdraw(&mut self, request: u64) -> bool {
        let begun = usize::from(self.under_way.is_some());
        let at = self.wanted.iter().position(|wanted| wanted.request == request).filter(|at| *at >= begun);
        at.and_then(|at| self.wanted.remove(at)).is_some()
    }

    pub(super) fn free(&mut self, request: u64) {
        self.freed = true;
        self.closing = Some(request);
    }

    pub(super) fn outstanding(&mut self) -> Vec<u64> {
        let wanted = self.wanted.drain(..).map(|wanted| wanted.request);
        wanted.chain(self.closing.take()).collect()
    }

    /// Makes progress without waiting; returns whether the end is no longer needed.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        let waits = |end: &Self| end.freed || !end.wanted.is_empty();
        loop {
            if self.telling.is_none() {
                if !waits(self) {
                    return Ok(false);
                }
                let (doorbell, rung) = (turn.doorbell, turn.rung);
                match self.asked.poll(turn, doorbell, self.local.place, rung) {
                    Poll::Pending => return Ok(false),
                    // The table is checked next, and then this end again.
                    Poll::Ready(rung) => return rung.map(|()| false),
                }
            }
            let tail = self.local.load(turn.fabric)?;
            if tail.wrapping_sub(self.taken) > self.slots {
                return Err(self.local.corrupt(&"the tail of a channel"));
            }
            while self.taken < tail && !self.disconnected && self.take_slot(turn)? {}
            let head = self.taken + 1;
            let told = self.report_head(turn, head)?;
            if self.disconnected {
                let peer = self.local.peer;
                for Wanted { request, .. } in self.wanted.drain(..) {
                    turn.results.finish(request, Err(AcpError::Disconnected { peer }));
                    turn.changed = true;
                }
                if told && let Some(request) = self.closing.take() {
                    turn.results.finish(request, Ok(Done::Freed));
                    turn.changed = true;
                }
                return Ok(told && self.freed);
            }
            if !waits(self) {
                return Ok(false);
            }
            match self.local.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    /// Reports the head of this end to the sender; returns whether the report has arrived, or the
    /// sender is gone.
    fn report_head(&mut self, turn: &mut Turn<'_, '_>, head: u64) -> Result<bool> {
        let Some(telling) = self.telling.as_mut().filter(|_| !self.alone) else { return Ok(true) };
        match telling.poll(turn, head) {
            // Slots that were put earlier are still taken; the watch on the tail reports why the
            // sender is gone.
            Err(AcpError::Fabric(FabricError::PeerLost { .. } | FabricError::StaleRegion { .. })) => {
                self.alone = true;
                Ok(true)
            }
            told => told,
        }
    }

    /// Takes the next slot, unless no receive is posted for its message; returns whether it did.
    fn take_slot(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        let at = (self.taken % self.slots) as usize * stride(self.slot_bytes);
        let mut header = [0u64];
        turn.fabric.read(&*self.data.part_as(at, 1)?, &mut header)?;
        let (kind, remaining) = (header[0] >> TYPE_AT, header[0] & ((1 << TYPE_AT) - 1));
        match (kind, self.under_way) {
            (DISCONNECT, None) => {
                self.disconnected = true;
                self.taken += 1;
                return Ok(true);
            }
            (EAGER, None) if self.wanted.is_empty() && !self.freed => return Ok(false),
            (EAGER, None) => {}
            (EAGER, Some((_, expected))) if expected == remaining => {}
            _ => return Err(self.local.corrupt(&"the header of a slot")),
        }
        let (before, _) = self.under_way.unwrap_or_default();
        let len = remaining.min(self.slot_bytes as u64);
        if let Some(Wanted { buffer, filled, .. }) = self.wanted.front_mut() {
            let room = (buffer.len() - *filled).min(len as usize);
            let from = self.data.part_as::<u8>(at + HEADER_BYTES, room)?;
            turn.fabric.read(&*from, &mut buffer[*filled..*filled + room])?;
            *filled += room;
        }
        self.taken += 1;
        self.under_way = (len < remaining).then_some((before + len, remaining - len));
        if self.under_way.is_none()
            && let Some(Wanted { request, buffer, filled }) = self.wanted.pop_front()
        {
            let arrival = Arrival { bytes: filled, dropped: before + remaining - filled as u64 };
            turn.results.finish(request, Ok(Done::Received(buffer, arrival)));
            turn.changed = true;
        }
        Ok(true)
    }
}
