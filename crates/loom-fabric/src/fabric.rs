//! The provider under the fabric of a rank under loom.

use crate::{Access, Job, memory::CELL, seat::Seat};
use loom::sync::atomic::Ordering::Acquire;
use rdma_fabric::{
    Amo, Fabric, FabricError, Notice, Rank, Region, RemoteAddr, Result, Time, bytemuck,
    provider::{
        Boxed, Ended, Goal, JobFacts, Leftover, Nodes, OneThread, Place, Posted, Provider, Sink, Slot, Source, Token,
    },
};
use std::{
    fmt,
    ops::Deref,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
};

/// One rank's access to a job under loom, whose threads are coroutines of one.
pub(crate) struct Modelled(OneThread<Seat>);

impl Modelled {
    /// What the program of `me` is run with.
    pub(crate) fn fabric(job: &Rc<Job>, me: Rank) -> Fabric {
        let ranks = job.config.ranks;
        let nodes = Nodes::Blocks(if job.config.together { ranks.max(1) } else { 1 });
        let facts = JobFacts { ranks, nodes, caps: job.config.caps };
        Modelled::among(job, me, Arc::new(facts))
    }

    pub(crate) fn among(job: &Rc<Job>, me: Rank, facts: Arc<JobFacts>) -> Fabric {
        Fabric::new(me, facts, Modelled(OneThread::new(Seat::new(job.clone(), me))))
    }
}

impl Deref for Modelled {
    type Target = Seat;

    fn deref(&self) -> &Seat {
        &self.0
    }
}

impl fmt::Debug for Modelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modelled({})", self.me())
    }
}

const NOTICES: FabricError = FabricError::Unsupported { feature: &"notices" };

impl Provider for Modelled {
    fn alloc(&self, bytes: usize) -> Result<Region> {
        let key = self.job().regions().alloc(self.me(), bytes)?;
        Ok(self.region(key, bytes))
    }

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        Box::pin(async move {
            let key = self.job().regions().alloc_symmetric(self.me(), bytes)?;
            Ok(self.region(key, bytes))
        })
    }

    fn resolve(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        self.job().regions().locate(addr, len, align, width)?;
        Ok(Place::remote(addr, len, None))
    }

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        if into.len() != CELL {
            return self.copy_out(from, into);
        }
        let (cell, addr) = (self.cell(from)?, from.addr());
        // Acquire: pairs with the release of puts, atomics and own stores.
        let bits = if waiting {
            self.job().cells.newest(self.me(), cell, self.order(Access::Wait(addr), Acquire))
        } else {
            self.job().cells.load(self.me(), cell, self.order(Access::Load(addr), Acquire))
        };
        into.copy_from_slice(&bits.to_ne_bytes());
        Ok(())
    }

    fn write(&self, to: &Place, from: &[u8], _waited: bool) -> Result<()> {
        let cell = self.cell(to)?;
        for (i, chunk) in from.chunks_exact(CELL).enumerate() {
            self.write_own(cell + i, bytemuck::pod_read_unaligned(chunk));
        }
        Ok(())
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        if notice.is_some() {
            return Posted::failed(NOTICES);
        }
        self.put_cells(to, from).unwrap_or_else(Posted::failed)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.get_cells(from, to).unwrap_or_else(Posted::failed)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.change(word, amo).unwrap_or_else(Posted::failed)
    }

    fn nop(&self) -> Posted {
        self.posted(Default::default())
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.result(*token, into, cx).map(Ok)
    }

    fn test(&self, token: &Token) -> bool {
        self.is_complete(*token)
    }

    fn forget(&self, token: Token) {
        drop(self.under_way.take(token));
    }

    fn try_notice(&self, _waiting: bool) -> Result<Option<Notice>> {
        Err(NOTICES)
    }

    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, _: &mut Context<'_>) -> Poll<Result<()>> {
        match goal {
            Goal::Word(word, _) => {
                // In one step with the look before, so that no write can fall in between.
                let cell = self.cell(word)?;
                self.job().wait_for_write(self.me(), cell);
                Poll::Pending
            }
            Goal::Flush(target) => self.flush(slot, target),
            Goal::Until(at) => self.job().poll_clock(self.me(), at.as_picos()).map(Ok),
            Goal::Notice(_) => Poll::Ready(Err(NOTICES)),
            Goal::Room(_) | Goal::Busy(_) | Goal::Charge(_) => Poll::Ready(Ok(())),
        }
    }

    /// A wait that was given up is still woken, and nothing is kept of others.
    fn end_wait(&self, _: &mut Slot, _: Goal<'_>, _: Ended) {}

    fn now(&self) -> Time {
        Time::from_picos(self.job().clock(self.me()))
    }

    fn detach(&self, rest: Leftover<'_>) {
        self.job().detached.add(self.me(), rest.boxed());
    }
}
