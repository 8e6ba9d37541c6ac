//! Puts of a block, resolved.

use crate::{
    Result,
    buffer::{Memory, Width},
    init::Outgoing,
};
use rdma_fabric::{
    Fabric, Pod, RemoteAddr,
    triggered::{Spans, Transfer},
};

/// The puts of `out`, from `from` to what lies at `at`.
///
/// # Errors
/// As [`Fabric::locate`].
pub(crate) fn transfer(fabric: &Fabric, out: &Outgoing, from: &Memory, at: RemoteAddr) -> Result<Transfer> {
    Ok(match out.width {
        Width::One => Transfer::One(spans(fabric, out, from, at)?),
        Width::Two => Transfer::Two(spans(fabric, out, from, at)?),
        Width::Four => Transfer::Four(spans(fabric, out, from, at)?),
        Width::Eight => Transfer::Eight(spans(fabric, out, from, at)?),
    })
}

fn spans<W: Pod>(fabric: &Fabric, out: &Outgoing, from: &Memory, at: RemoteAddr) -> Result<Spans<W>> {
    let mut pairs = Vec::new();
    for piece in out.pieces.iter().filter(|piece| piece.len > 0) {
        for block in 0..u64::from(piece.count) {
            let skip = block * piece.stride;
            let cells = piece.len as usize / size_of::<W>();
            let here = from.region().span::<W>(fabric, (piece.from + skip) as usize, cells)?;
            let there = RemoteAddr { offset: at.offset + piece.at + skip, ..at };
            pairs.push((here, fabric.remote_span::<W>(there, cells)?));
        }
    }
    Ok(Spans::new(pairs))
}
