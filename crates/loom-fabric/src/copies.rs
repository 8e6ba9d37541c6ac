//! Cells that are put, got and written.

use crate::{
    Access,
    delivery::{self, Content},
    memory::CELL,
    operation::Operation,
    seat::Seat,
};
use loom::sync::atomic::Ordering::Release;
use rdma_fabric::{
    RemoteAddr, Result, bytemuck,
    provider::{Place, Posted, Source},
};

impl Seat {
    pub(crate) fn put_cells(&self, to: &Place, from: Source<'_>) -> Result<Posted> {
        let (target, cell) = (to.rank(), self.cell(to)?);
        let own = if let Source::Place(own) = from { self.cell(own)? } else { 0 };
        let mut delivered = None;
        for i in 0..to.len() / CELL {
            let from = match &from {
                Source::Bytes(bytes) => Content::Bits(bytemuck::pod_read_unaligned(&bytes[i * CELL..][..CELL])),
                Source::Place(_) if self.job().has_nics() && self.job().cells.is_data(self.me(), own + i) => {
                    Content::Cell(self.me(), own + i)
                }
                Source::Place(_) => Content::Bits(self.job().newest(self.me(), own + i)),
            };
            let addr = RemoteAddr { offset: to.addr().offset + (i * CELL) as u64, ..to.addr() };
            let release = self.order(Access::Put(addr), Release) == Release;
            let put = delivery::Posted { target, cell: cell + i, from, release };
            delivered = self.job().post(self.me(), put).or(delivered);
        }
        Ok(self.posted(Operation::after(delivered)))
    }

    /// The newest that is there.
    pub(crate) fn copy_out(&self, from: &Place, into: &mut [u8]) -> Result<()> {
        let cell = self.cell(from)?;
        for (i, chunk) in into.chunks_exact_mut(CELL).enumerate() {
            chunk.copy_from_slice(&self.job().newest(from.rank(), cell + i).to_ne_bytes());
        }
        Ok(())
    }

    pub(crate) fn write_own(&self, cell: usize, bits: u64) {
        self.job().cells.set(self.me(), cell, bits, Release);
        self.job().ring(self.me(), cell);
    }
}
