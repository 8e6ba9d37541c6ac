//! Cells that are put, got and written.

use crate::{
    Access, LoomFabric, Place,
    delivery::{Posted, Source},
    memory::CELL,
};
use loom::sync::atomic::Ordering::Release;
use rdma_fabric::{
    FabricError, RemoteAddr, Result, bytemuck,
    op::{SinkView, SourceView},
};

impl LoomFabric {
    /// As many puts must be delivered for it to be complete, where that takes waiting.
    pub(crate) fn put_cells(&self, to: &Place, from: SourceView<'_, Place>) -> Result<Option<u64>> {
        self.live(to)?;
        let have = match &from {
            SourceView::Bytes(bytes) => bytes.len(),
            SourceView::Registered(place) => place.len,
        };
        if have != to.len {
            return Err(FabricError::LengthMismatch { have, want: to.len });
        }
        if let SourceView::Registered(place) = &from {
            self.live(place)?;
        }
        let target = to.addr.rank;
        let mut complete = None;
        for i in 0..to.len / CELL {
            let from = match &from {
                SourceView::Bytes(bytes) => Source::Bits(bytemuck::pod_read_unaligned(&bytes[i * CELL..][..CELL])),
                SourceView::Registered(own)
                    if self.job().has_nics() && self.job().cells.is_data(self.me(), own.cell + i) =>
                {
                    Source::Cell(self.me(), own.cell + i)
                }
                SourceView::Registered(own) => Source::Bits(self.job().newest(own.addr.rank, own.cell + i)),
            };
            let addr = RemoteAddr { offset: to.addr.offset + (i * CELL) as u64, ..to.addr };
            let release = self.order(Access::Put(addr), Release) == Release;
            complete = self.job().post(self.me(), Posted { target, cell: to.cell + i, from, release }).or(complete);
        }
        Ok(complete)
    }

    pub(crate) fn get_cells(&self, from: &Place, to: SinkView<'_, Place>) -> Result<()> {
        self.live(from)?;
        let want = match &to {
            SinkView::Bytes(bytes) => bytes.len(),
            SinkView::Registered(place) => place.len,
        };
        if want != from.len {
            return Err(FabricError::LengthMismatch { have: from.len, want });
        }
        let value = |i| self.job().newest(from.addr.rank, from.cell + i);
        match to {
            SinkView::Bytes(bytes) => {
                for (i, chunk) in bytes.chunks_exact_mut(CELL).enumerate() {
                    chunk.copy_from_slice(&value(i).to_ne_bytes());
                }
            }
            SinkView::Registered(place) => {
                self.live(place)?;
                for i in 0..from.len / CELL {
                    self.write_own(place, i, value(i));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn write_own(&self, place: &Place, i: usize, bits: u64) {
        self.job().cells.set(self.me(), place.cell + i, bits, Release);
        self.job().ring(self.me(), place.cell + i);
    }
}
