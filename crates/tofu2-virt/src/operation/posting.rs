//! Posting of operations.

use super::{
    super::{
        core::Core,
        memory::{Loc, SPARSE, is_zero},
        provider::Me,
    },
    Attachment, Op, Opcode, token,
};
use rdma_fabric::{
    Amo, Atomics, FabricError, Result,
    provider::{Place, Posted},
};

/// The source of a put's bytes.
pub(crate) enum Payload<'a> {
    Bytes(&'a [u8]),
    Registered(Loc),
}

impl Payload<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Payload::Bytes(bytes) => bytes.len() as u64,
            Payload::Registered(loc) => loc.len,
        }
    }
}

impl Me {
    /// Posts a put, copying its bytes now.
    pub(crate) fn put(&self, target: (Loc, bool), payload: Payload<'_>, notice: Option<u64>) -> Posted {
        posted(self.try_put(target, payload, notice))
    }

    fn try_put(&self, (target, prepared): (Loc, bool), payload: Payload<'_>, notice: Option<u64>) -> Result<Posted> {
        same_length(payload.len(), target.len)?;
        let lane = self.lane();
        let mut core = self.world.core();
        if let Payload::Registered(loc) = &payload {
            core.check(loc)?;
        }
        if let Some(data) = notice
            && core.machine.timing.notice_bits < 64
            && data >> core.machine.timing.notice_bits != 0
        {
            return Err(FabricError::NoticeTooWide { data, bits: core.machine.timing.notice_bits });
        }
        core.check(&target)?;
        let (transmit, receive) = (core.machine.timing.transmit_queue, core.machine.timing.receive_queue);
        if core.ranks.is_full(lane, transmit)
            || notice.is_some() && !core.ranks.reserve_notice(lane, target.rank, receive)
        {
            return Ok(Posted::Full);
        }
        let mut op = Op::new(Opcode::Put, lane, target);
        op.prepared = prepared;
        let mut attachment = notice.map(|data| Attachment { notice: Some(data), ..Attachment::default() });
        let len = target.len as usize;
        if len <= 8 {
            match payload {
                Payload::Bytes(from) => bytemuck::bytes_of_mut(&mut op.a)[..len].copy_from_slice(from),
                Payload::Registered(loc) => op.a = core.memory.short(&loc),
            }
        } else {
            let bytes = match payload {
                Payload::Bytes(from) if len > SPARSE && is_zero(from) => vec![0; len],
                Payload::Bytes(from) => owned(from)?,
                Payload::Registered(loc) => core.memory.copied(&loc),
            };
            attachment.get_or_insert_default().bytes = bytes;
        }
        op.attachment = attachment.map(Box::new);
        let now = core.clock.now();
        core.ranks.put_posted(lane, target.rank, now);
        let (_, reusable_at) = core.post(op);
        Ok(Posted::Pending(token::at(&mut core, lane, reusable_at)))
    }

    /// Posts a get of `len` bytes, into the rank's own memory if there is a `sink`.
    pub(crate) fn get(&self, target: (Loc, bool), len: usize, sink: Option<Loc>) -> Posted {
        posted(self.try_get(target, len, sink))
    }

    fn try_get(&self, (target, prepared): (Loc, bool), len: usize, sink: Option<Loc>) -> Result<Posted> {
        same_length(len as u64, target.len)?;
        let lane = self.lane();
        let mut core = self.world.core();
        if let Some(sink) = &sink {
            core.check(sink)?;
        }
        core.check(&target)?;
        let mut op = Op::new(Opcode::Get, lane, target);
        op.prepared = prepared;
        if sink.is_some() {
            op.attachment = Some(Box::new(Attachment { sink, ..Attachment::default() }));
        }
        Ok(core.post_in_slot(op))
    }

    /// Posts a third-party copy. It counts among the puts to its destination.
    pub(crate) fn copy(&self, to: Loc, from: Loc) -> Posted {
        posted(self.try_copy(to, from))
    }

    fn try_copy(&self, to: Loc, from: Loc) -> Result<Posted> {
        same_length(from.len, to.len)?;
        let lane = self.lane();
        let mut core = self.world.core();
        if !core.machine.timing.third_party_copy {
            return Err(FabricError::Unsupported { feature: &"third-party copy" });
        }
        core.check(&from)?;
        core.check(&to)?;
        if core.ranks.is_full(lane, core.machine.timing.transmit_queue) {
            return Ok(Posted::Full);
        }
        let now = core.clock.now();
        core.ranks.put_posted(lane, to.rank, now);
        let mut op = Op::new(Opcode::Copy, lane, from);
        op.attachment = Some(Box::new(Attachment { sink: Some(to), ..Attachment::default() }));
        Ok(core.post_in_slot(op))
    }

    /// Posts an atomic.
    #[inline]
    pub(crate) fn atomic(&self, place: &Place, amo: Amo<u64>) -> Posted {
        posted(self.try_atomic(place, amo))
    }

    #[inline]
    fn try_atomic(&self, place: &Place, amo: Amo<u64>) -> Result<Posted> {
        let lane = self.lane();
        let (target, mut core) = (self.loc(place)?, self.world.core());
        if !matches!(target.len, 4 | 8) || !target.offset.is_multiple_of(target.len) {
            return Err(FabricError::misaligned(place.addr(), if target.len == 4 { 4 } else { 8 }));
        }
        let near = [core.nearby.note(self), core.nearby.note(place)];
        core.ranks.note_near(lane, near);
        core.check(&target)?;
        if core.machine.timing.atomics == Atomics::None {
            return Err(FabricError::no_atomics_at_all(place.addr()));
        }
        let (opcode, a, b) = Opcode::of(amo);
        let mut op = Op::new(opcode, lane, target);
        (op.a, op.b, op.prepared) = (a, b, place.is_prepared());
        Ok(core.post_in_slot(op))
    }

    /// Posts a nop, which never leaves the node.
    pub(crate) fn nop(&self) -> Posted {
        let mut nowhere = Loc::default();
        nowhere.rank = self.rank;
        let op = Op::new(Opcode::Nop, self.lane(), nowhere);
        self.world.core().post_in_slot(op)
    }
}

pub(crate) fn posted(outcome: Result<Posted>) -> Posted {
    outcome.unwrap_or_else(Posted::failed)
}

impl Core {
    /// Posts an operation whose slot records its completion, if there is room for it.
    #[inline]
    fn post_in_slot(&mut self, op: Op) -> Posted {
        if self.ranks.is_full(op.poster, self.machine.timing.transmit_queue) {
            return Posted::Full;
        }
        let (slot, _) = self.post(op);
        Posted::Pending(token::of(slot, self.operations.get(slot).generation))
    }
}

/// Returns a copy, if there is memory for it.
pub(super) fn owned(bytes: &[u8]) -> Result<Vec<u8>> {
    const OUT_OF_MEMORY: i32 = 12;
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| FabricError::System { call: &"alloc", errno: OUT_OF_MEMORY })?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

pub(crate) fn same_length(have: u64, want: u64) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::length_mismatch(have as usize, want as usize)) }
}
