//! The data of a triggered put: spans, and the progress of putting them.

use super::{
    Now,
    block_spans::{BlockPair, BlockSpans},
};
use core::{fmt, task::Poll};
use rdma_fabric::{BlockPut, Blocks, Fabric, Handle, LocalSpan, Pod, Refused, RemoteSpan, Result, op::Put};

/// Spans to put, in cells of one width: where memory is accessed through atomics, all accesses to a
/// region have the same width.
#[derive(Debug)]
pub enum Transfer {
    /// Bytes.
    One(Spans<u8>),
    /// Cells of two bytes.
    Two(Spans<u16>),
    /// Cells of four bytes.
    Four(Spans<u32>),
    /// Cells of eight bytes.
    Eight(Spans<u64>),
}

/// Pairs of spans, each pair of equal length, and the progress of putting them.
///
/// Posted pairs are recorded when a future is dropped, so that no pair is posted again.
pub struct Spans<W: Pod> {
    pairs: Vec<Pair<W>>,
    /// Number of pairs that have been posted.
    posted: usize,
    /// Handles of posted pairs that are not complete.
    handles: Vec<Handle<LocalSpan<W>>>,
    /// Pairs with several blocks, which are put behind the others; `None` if there are none.
    blocks: Option<Box<BlockSpans<W>>>,
}

struct Pair<W: Pod> {
    from: LocalSpan<W>,
    /// A clone of `from`, for puts that return it immediately: incrementing the reference count for
    /// each put would wait for earlier stores.
    spare: Option<LocalSpan<W>>,
    to: RemoteSpan<W>,
}

impl<W: Pod> fmt::Debug for Spans<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spans({} of {} posted, {:?})", self.posted, self.pairs.len(), self.blocks)
    }
}

impl<W: Pod> Spans<W> {
    /// Creates a transfer of these pairs.
    pub fn new(pairs: Vec<(LocalSpan<W>, RemoteSpan<W>)>) -> Self {
        let pairs = pairs.into_iter().map(|(from, to)| Pair { from, spare: None, to }).collect();
        Spans { pairs, posted: 0, handles: Vec::new(), blocks: None }
    }

    /// Adds a pair of spans of which only some blocks are put: see [`BlockPut`].
    ///
    /// # Errors
    /// [`FabricError::Blocks`](rdma_fabric::FabricError::Blocks),
    /// [`FabricError::LengthMismatch`](rdma_fabric::FabricError::LengthMismatch).
    pub fn add_blocks(&mut self, from: LocalSpan<W>, to: RemoteSpan<W>, elements: usize, blocks: Blocks) -> Result<()> {
        BlockPut::new(&to, &from, elements, blocks)?;
        self.blocks.get_or_insert_default().pairs.push(BlockPair { from, to, elements, blocks });
        Ok(())
    }

    fn append(&mut self, other: Spans<W>) {
        self.pairs.extend(other.pairs);
        if let Some(other) = other.blocks {
            self.blocks.get_or_insert_default().pairs.extend(other.pairs);
        }
    }

    /// Puts without waiting; returns whether all pairs are complete.
    #[inline]
    fn put_now(&mut self, fabric: &Fabric) -> Now {
        for Pair { from, spare, to } in &mut self.pairs[self.posted..] {
            if fabric.direct().put(to, from).is_some() {
                self.posted += 1;
                continue;
            }
            let from = spare.take().unwrap_or_else(|| from.clone());
            match fabric.try_post(Put { to, from, notice: None }) {
                Ok(mut handle) => {
                    self.posted += 1;
                    match handle.test() {
                        true => *spare = Some(handle.wait()?),
                        false => self.handles.push(handle),
                    }
                }
                Err(Refused::Full(put)) => {
                    *spare = Some(put.from);
                    return Poll::Pending;
                }
                Err(Refused::Failed(error, _)) => return Poll::Ready(Err(error.into())),
            }
        }
        if let Some(blocks) = &mut self.blocks
            && !blocks.put_now(fabric)?
        {
            return Poll::Pending;
        }
        if !self.handles.is_empty() {
            return Poll::Pending;
        }
        self.restart();
        Poll::Ready(Ok(()))
    }

    async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        while let Some(Pair { from, to, .. }) = self.pairs.get(self.posted) {
            let handle = fabric.post(Put { to, from: from.clone(), notice: None }).await?;
            self.posted += 1;
            self.handles.push(handle);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.put(fabric).await?;
        }
        while let Some(handle) = self.handles.last_mut() {
            let complete = handle.await;
            self.handles.pop();
            complete?;
        }
        self.restart();
        Ok(())
    }

    /// Restarts with the first pair.
    #[inline]
    fn restart(&mut self) {
        self.posted = 0;
        if let Some(blocks) = &mut self.blocks {
            blocks.posted = 0;
        }
    }
}

macro_rules! each {
    ($transfer:expr, $spans:ident => $body:expr) => {
        match $transfer {
            Transfer::One($spans) => $body,
            Transfer::Two($spans) => $body,
            Transfer::Four($spans) => $body,
            Transfer::Eight($spans) => $body,
        }
    };
}

impl Transfer {
    /// Creates an empty transfer.
    pub fn empty() -> Self {
        Transfer::Eight(Spans::new(Vec::new()))
    }

    /// Adds the spans of `other`, or returns it if its cells have a different width. Neither is in
    /// progress.
    pub fn append(&mut self, other: Transfer) -> Option<Transfer> {
        match (self, other) {
            (Transfer::One(all), Transfer::One(other)) => all.append(other),
            (Transfer::Two(all), Transfer::Two(other)) => all.append(other),
            (Transfer::Four(all), Transfer::Four(other)) => all.append(other),
            (Transfer::Eight(all), Transfer::Eight(other)) => all.append(other),
            (_, other) => return Some(other),
        }
        None
    }

    /// Returns whether there is nothing to put.
    pub fn is_empty(&self) -> bool {
        each!(self, spans => spans.pairs.is_empty() && spans.blocks.is_none())
    }

    /// Puts the spans as far as possible without waiting; ready if all are complete. Call this or
    /// [`Transfer::put`] again until then.
    ///
    /// # Errors
    /// As [`Fabric::try_put`].
    #[inline]
    pub fn put_now(&mut self, fabric: &Fabric) -> Now {
        each!(self, spans => spans.put_now(fabric))
    }

    /// Puts the rest, and waits until all of it is complete. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        each!(self, spans => spans.put(fabric).await)
    }
}
