//! Transfers in pieces: at most one cell each, on both sides.

use crate::{
    cell::{Agent, CELL, Part},
    fabric::Seat,
    slots::Parts,
};
use rdma_fabric::{RemoteAddr, provider::Place};
use std::ops::Range;

/// Bytes `start..start + len` of a region by cells: where they are, and which of the `len` they are.
fn split(start: u64, len: usize) -> impl Iterator<Item = (Range<u64>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = start + done as u64;
        let count = (CELL - (at % CELL as u64) as usize).min(len - done);
        done += count;
        (count > 0).then_some((at..at + count as u64, done - count..done))
    })
}

/// The bits of a cell that holds `bytes` where `part` says.
pub(crate) fn bits_of(part: Part, bytes: &[u8]) -> u64 {
    let mut cell = [0u8; CELL];
    let first = part.mask.to_ne_bytes().iter().position(|byte| *byte != 0).unwrap_or(0);
    cell[first..][..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(cell)
}

pub(crate) fn bytes_of(part: Part, bits: u64, into: &mut [u8]) {
    let first = part.mask.to_ne_bytes().iter().position(|byte| *byte != 0).unwrap_or(0);
    into.copy_from_slice(&bits.to_ne_bytes()[first..][..into.len()]);
}

impl Seat {
    fn part(&self, agent: Agent, addr: RemoteAddr, at: Range<u64>) -> Part {
        self.session.cells.borrow_mut().part(agent, addr, at)
    }

    /// The cell that a word is, or is a part of.
    pub(crate) fn word(&self, agent: Agent, place: &Place) -> Part {
        let start = place.addr().offset;
        self.part(agent, place.addr(), start..start + place.len() as u64)
    }

    /// The cells that `place` is made of, with their place in the transfer.
    pub(crate) fn pieces(&self, agent: Agent, place: &Place) -> Parts {
        let addr = place.addr();
        let all = split(addr.offset, place.len()).map(|(cell, at)| (self.part(agent, addr, cell), at));
        all.collect()
    }

    /// Pieces of a transfer between registered places: each is within one cell on both sides.
    pub(crate) fn across(&self, there: &Place, here: &Place) -> Box<[(Part, Part)]> {
        let (there, len, here) = (there.addr(), there.len(), here.addr());
        let mut pieces = Vec::new();
        for (far, at) in split(there.offset, len) {
            for (near, inside) in split(here.offset + at.start as u64, at.len()) {
                let start = far.start + inside.start as u64;
                let far = self.part(Agent::Network, there, start..start + inside.len() as u64);
                pieces.push((far, self.part(Agent::Network, here, near)));
            }
        }
        pieces.into()
    }
}
