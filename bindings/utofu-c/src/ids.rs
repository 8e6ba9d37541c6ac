//! Identifiers and addresses in the form of the interface.
//!
//! | id | bits |
//! |---|---|
//! | VCQ | CQ 0–7, context 24–27, path 28–31, X, Y, Z 32–55, A, B, C 56–59, TNI 61–63 |
//! | STADD | offset 0–39, tag from 40; a fixed tag `t` of context `c` has number `256 c + t` |
//! | VBG | that of the fabric, with the TNI in bits 40–42 |
//!
//! Programs treat all of them as opaque, except that they add offsets to a STADD.

use crate::{
    failure::{Code, Outcome},
    torus::{self, Coords, Path},
};
use rdma_fabric::{
    Rank,
    barrier::GateId,
    control_queue::{QueueId, Stadd},
};

/// The first context of VCQs; those below are the system's.
pub(crate) const FIRST_CONTEXT: u8 = 8;
/// Contexts of a CQ.
pub(crate) const CONTEXTS: u8 = 8;
/// TNIs of a node.
pub(crate) const TNIS: u16 = 6;

/// A VCQ id, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VcqId {
    pub(crate) coords: Coords,
    pub(crate) tni: u8,
    pub(crate) cq: u8,
    /// From [`FIRST_CONTEXT`] on.
    pub(crate) context: u8,
    /// A path id.
    pub(crate) path: u8,
}

impl VcqId {
    /// Creates the id of a VCQ, with the default path: that through the target's own A, B, C.
    pub(crate) fn new(coords: Coords, tni: u8, cq: u8, context: u8) -> Self {
        let [_, _, _, a, b, c] = coords;
        VcqId { coords, tni, cq, context, path: torus::path_id([a, b, c]).unwrap_or(0) }
    }

    /// Returns the id of a queue.
    pub(crate) fn of(queue: QueueId) -> Self {
        let coords = torus::coords(queue.rank().number());
        VcqId::new(coords, queue.engine(), queue.number(), queue.context() + FIRST_CONTEXT)
    }

    pub(crate) fn to_bits(self) -> u64 {
        let VcqId { coords: [x, y, z, a, b, c], tni, cq, context, path } = self;
        let [x, y, z, a, b, c] = [x, y, z, a, b, c].map(u64::from);
        u64::from(cq)
            | u64::from(context) << 24
            | u64::from(path) << 28
            | x << 32
            | y << 40
            | z << 48
            | a << 56
            | b << 57
            | c << 59
            | u64::from(tni) << 61
    }

    /// # Errors
    /// [`Code::INVALID_VCQ_ID`] for bits that no id has.
    pub(crate) fn from_bits(bits: u64) -> Outcome<Self> {
        let byte = |at: u32, width: u32| (bits >> at) as u8 & (0xff >> (8 - width));
        let coords = [byte(32, 8), byte(40, 8), byte(48, 8), byte(56, 1), byte(57, 2), byte(59, 1)];
        let id = VcqId { coords, tni: byte(61, 3), cq: byte(0, 8), context: byte(24, 4), path: byte(28, 4) };
        let is_id = id.to_bits() == bits && id.context >= FIRST_CONTEXT && u16::from(id.tni) < TNIS && id.cq < 16;
        let is_id = is_id && torus::path(id.path).is_some();
        if is_id { Ok(id) } else { Err(Code::INVALID_VCQ_ID.because(format_args!("{bits:#x} is not a VCQ id"))) }
    }

    /// Returns the queue that it names in a job of `ranks` ranks.
    ///
    /// # Errors
    /// [`Code::INVALID_VCQ_ID`] if there is no node at its coordinates.
    pub(crate) fn queue(self, ranks: u32) -> Outcome<QueueId> {
        let Some(rank) = torus::rank(self.coords, ranks) else {
            return Err(Code::INVALID_VCQ_ID.because(format_args!("there is no node at {:?}", self.coords)));
        };
        Ok(QueueId::new(Rank::new(rank), self.tni, self.cq, self.context - FIRST_CONTEXT))
    }

    /// Returns the id with another path.
    pub(crate) fn through(self, path: Option<Path>) -> Outcome<Self> {
        let [_, _, _, a, b, c] = self.coords;
        let path = path.unwrap_or([a, b, c]);
        let id = torus::path_id(path).ok_or_else(|| Code::INVALID_PATH.because(format_args!("no path is {path:?}")))?;
        Ok(VcqId { path: id, ..self })
    }
}

/// VCQ ids and the queues that they name, as converted before: conversions would cost as much as a short
/// put.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    queues: [Option<(u64, QueueId, u8)>; Peers::PLACES],
    ids: [Option<(QueueId, u64, u8)>; Peers::PLACES],
}

impl Peers {
    const PLACES: usize = 16;

    #[inline]
    fn place(bits: u64) -> usize {
        // Fibonacci hashing.
        (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % Self::PLACES
    }

    /// Returns the queue that `bits` names in a job of `ranks` ranks, and its context.
    ///
    /// # Errors
    /// As [`VcqId::from_bits`] and [`VcqId::queue`].
    #[inline]
    pub(crate) fn queue(&mut self, bits: u64, ranks: u32) -> Outcome<(QueueId, u8)> {
        let place = &mut self.queues[Self::place(bits)];
        match *place {
            Some((known, queue, context)) if known == bits => Ok((queue, context)),
            _ => {
                let id = VcqId::from_bits(bits)?;
                let queue = id.queue(ranks)?;
                *place = Some((bits, queue, id.context));
                Ok((queue, id.context))
            }
        }
    }

    /// Returns the id of a queue, with the default path, and its context.
    #[inline]
    pub(crate) fn id(&mut self, queue: QueueId) -> (u64, u8) {
        let place = &mut self.ids[Self::place(queue.to_bits())];
        match *place {
            Some((known, bits, context)) if known == queue => (bits, context),
            _ => {
                let id = VcqId::of(queue);
                *place = Some((queue, id.to_bits(), id.context));
                (id.to_bits(), id.context)
            }
        }
    }
}

/// A tag that no queue ever has.
const NO_TAG: u32 = Stadd::FIRST_AUTOMATIC - 1;

/// Returns the address in the form of the interface, of memory of a VCQ with this `context`.
pub(crate) fn stadd_to_bits(stadd: Stadd, context: u8) -> u64 {
    let tag = stadd.tag();
    let number = if tag < 256 { u32::from(context) << 8 | tag } else { tag };
    Stadd::new(number, stadd.offset()).to_bits()
}

/// Inverts [`stadd_to_bits`]. Every number is an address, though not necessarily one of memory.
#[inline]
pub(crate) fn stadd_from_bits(bits: u64, context: u8) -> Stadd {
    let stadd = Stadd::from_bits(bits);
    let tag = stadd.tag();
    if tag >= Stadd::FIRST_AUTOMATIC {
        return stadd;
    }
    let tag = if tag >> 8 == u32::from(context) { tag & 0xff } else { NO_TAG };
    Stadd::new(tag, stadd.offset())
}

/// The position of a VBG's TNI.
const VBG_TNI: u32 = 40;

/// Returns the id of a gate of a TNI.
pub(crate) fn vbg_to_bits(gate: GateId, tni: u16) -> u64 {
    gate.to_bits() | u64::from(tni) << VBG_TNI
}

/// Returns the gate and the TNI; `None` for the null id.
///
/// # Errors
/// [`Code::INVALID_VBG_ID`] for bits that no id has.
pub(crate) fn vbg_from_bits(bits: u64) -> Outcome<Option<(GateId, u16)>> {
    if bits == u64::MAX {
        return Ok(None);
    }
    let tni = (bits >> VBG_TNI) as u16 & 7;
    let gate = GateId::from_bits(bits & !(7 << VBG_TNI));
    if tni >= TNIS || gate.index() >= 256 {
        return Err(Code::INVALID_VBG_ID.because(format_args!("{bits:#x} is not a VBG id")));
    }
    Ok(Some((gate, tni)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vcq_id_keeps_its_parts() {
        let queue = QueueId::new(Rank::new(4321), 5, 10, 7);
        let id = VcqId::of(queue);
        assert_eq!(VcqId::from_bits(id.to_bits()), Ok(id));
        assert_eq!(id.queue(5000), Ok(queue));
        assert_eq!(id.queue(4321), Err(Code::INVALID_VCQ_ID));
        let other = id.through(Some([1, 2, 1])).unwrap();
        assert_eq!((other.queue(5000), other.through(None)), (Ok(queue), Ok(id)));
        assert_eq!(id.through(Some([0, 3, 0])), Err(Code::INVALID_PATH));
        for bits in [0, u64::MAX, id.to_bits() ^ 1 << 9, id.to_bits() | 7 << 61] {
            assert_eq!(VcqId::from_bits(bits), Err(Code::INVALID_VCQ_ID), "{bits:#x}");
        }
    }

    #[test]
    fn a_fixed_tag_belongs_to_its_context() {
        let bits = stadd_to_bits(Stadd::fixed(5) + 9, 8);
        assert_eq!(bits, 0x805 << 40 | 9);
        assert_eq!(stadd_from_bits(bits, 8), Stadd::fixed(5) + 9);
        assert_eq!(stadd_from_bits(bits, 9).tag(), NO_TAG);
        let automatic = Stadd::new(0x1234, 77);
        assert_eq!(stadd_from_bits(stadd_to_bits(automatic, 8), 9), automatic);
    }

    #[test]
    fn a_vbg_id_keeps_its_tni() {
        let gate = GateId::new(Rank::new(3), 63, 9);
        assert_eq!(vbg_from_bits(vbg_to_bits(gate, 5)), Ok(Some((gate, 5))));
        assert_eq!((vbg_from_bits(u64::MAX), vbg_from_bits(6 << 40)), (Ok(None), Err(Code::INVALID_VBG_ID)));
    }
}
