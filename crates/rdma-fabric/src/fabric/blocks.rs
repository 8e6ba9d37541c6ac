//! Puts of several blocks: a single post if the provider supports such puts, otherwise a put of
//! each block.

use super::{DirectOp, Fabric, direct::put_now, operation_future::OperationFuture};
use crate::{
    Blocks, FabricError, Handle, LocalSpan, Pod, Refused, RemoteSpan, Result,
    error::BlocksError,
    provider::{BlockPuts, Place, Posted, Source},
};

/// A put of equal blocks at equal distances, whose layout in their spans is valid. Both spans extend
/// from the first element of the first block to the last element of the last one, with the same
/// layout: block `i` begins `i * blocks.stride` *bytes* into either.
///
/// For flushes, waits and errors it counts as a single put, and it does not change the bytes between
/// the blocks. Some networks post it as one command, which costs less than a put of each block; over
/// the others it consists of those puts, several at a time. Blocks do not overlap each other, so the
/// stride is no less than a block; if a block of the source overlaps one of the destination, the
/// bytes that arrive are unspecified.
///
/// ```
/// # use rdma_fabric::{BlockPut, Blocks, Fabric, LocalSpan, RemoteSpan, Result};
/// /// Puts the last two columns of a matrix of doubles with rows of 256.
/// async fn put_columns(fabric: &Fabric, to: &RemoteSpan<f64>, from: &LocalSpan<f64>) -> Result<()> {
///     let (rows, columns) = (from.len() / 256, 254..from.len());
///     let blocks = Blocks { count: rows as u32, stride: 256 * 8 };
///     let (to, from) = (to.slice(columns.clone())?, from.slice(columns)?);
///     BlockPut::new(&to, &from, 2, blocks)?.put(fabric).await
/// }
/// ```
#[derive(Debug)]
pub struct BlockPut<'a, T: Pod> {
    to: &'a RemoteSpan<T>,
    from: &'a LocalSpan<T>,
    /// Elements of a block.
    elements: usize,
    /// At least one; empty blocks are merged into one.
    blocks: Blocks,
}

/// The progress of a [`BlockPut`] that is [posted](BlockPut::post) in steps: the number of posted
/// blocks, and the operations in flight.
#[derive(Debug, Default)]
pub struct BlockProgress {
    /// Blocks that have been posted.
    posted: u32,
    in_flight: Vec<Handle<()>>,
}

impl<'a, T: Pod> BlockPut<'a, T> {
    /// Checks blocks of `elements` elements each against their spans.
    ///
    /// # Errors
    /// [`FabricError::Blocks`], and [`FabricError::LengthMismatch`] if the blocks extend over more
    /// elements than the spans contain, or over fewer.
    #[inline]
    pub fn new(to: &'a RemoteSpan<T>, from: &'a LocalSpan<T>, elements: usize, blocks: Blocks) -> Result<Self> {
        if from.len() != to.len() {
            return Err(FabricError::length_mismatch(from.len(), to.len()));
        }
        let (element, Blocks { count, stride }) = (size_of::<T>().max(1), blocks);
        let len = elements.saturating_mul(element);
        let wrong = match count {
            0 => Some(BlocksError::None),
            2.. if stride < len as u64 => Some(BlocksError::Overlap { len, stride }),
            2.. if !stride.is_multiple_of(element as u64) => Some(BlocksError::Elements { stride, element }),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        let extent = blocks.extent(len).map_or(usize::MAX, |bytes| bytes / element);
        if extent != from.len() {
            return Err(FabricError::length_mismatch(from.len(), extent));
        }
        Ok(BlockPut { to, from, elements, blocks: if elements == 0 { Blocks::ONE } else { blocks } })
    }

    /// Puts the blocks, and waits until the source is reusable. If the future is dropped, blocks that
    /// were posted still arrive.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn put(&self, fabric: &Fabric) -> Result<()> {
        if self.is_done_directly(fabric) {
            return Ok(());
        }
        match self.whole(fabric) {
            Some(whole) => OperationFuture::new(fabric, whole).await,
            // Large.
            None => Box::pin(self.each(fabric)).await,
        }
    }

    /// Posts the remaining blocks as long as there is room; returns whether all have been posted.
    /// Never blocks. For protocols that put several layouts one after the other, with one progress.
    ///
    /// # Errors
    /// As [`Fabric::try_put`].
    pub fn post(&self, fabric: &Fabric, progress: &mut BlockProgress) -> Result<bool> {
        let Blocks { count, stride } = self.blocks;
        if progress.posted == 0 {
            if self.is_done_directly(fabric) {
                progress.posted = count;
            } else if let Some(whole) = self.whole(fabric) {
                if !progress.add(fabric.begin(whole, drop))? {
                    return Ok(false);
                }
                progress.posted = count;
            }
        }
        let step = stride as usize / size_of::<T>().max(1);
        while progress.posted < count {
            let first = progress.posted as usize * step;
            let elements = first..first + self.elements;
            let (to, from) = (self.to.part(elements.clone())?, self.from.part(elements)?);
            if !progress.add(fabric.begin(One { to: to.place(), from: from.place() }, drop))? {
                return Ok(false);
            }
            progress.posted += 1;
        }
        Ok(true)
    }

    /// Copies short blocks directly; returns whether that was possible.
    #[inline]
    fn is_done_directly(&self, fabric: &Fabric) -> bool {
        let (to, len) = (self.to.place(), self.elements * size_of::<T>());
        let done = to.copy_blocks_from(self.from.place(), len, self.blocks).is_some();
        if done {
            fabric.wake_if_parked(to);
        }
        done
    }

    /// Returns all blocks as one operation, if the provider supports such operations.
    #[inline]
    fn whole<'b>(&'b self, fabric: &'b Fabric) -> Option<Whole<'b>> {
        let several = self.blocks.count > 1;
        let puts = several.then(|| fabric.provider().block_puts()).flatten()?;
        let len = self.elements * size_of::<T>();
        Some(Whole { puts, to: self.to.place(), from: self.from.place(), len, blocks: self.blocks })
    }

    /// Puts each block, and waits until all are complete.
    async fn each(&self, fabric: &Fabric) -> Result<()> {
        let mut progress = BlockProgress::default();
        while !self.post(fabric, &mut progress)? {
            fabric.room(None).await?;
        }
        progress.complete().await
    }
}

impl BlockProgress {
    /// Takes the outcome of a post; returns whether there was room.
    #[inline]
    fn add(&mut self, posted: Result<Handle<()>, Refused<()>>) -> Result<bool> {
        match posted {
            Ok(mut handle) => {
                match handle.test() {
                    true => handle.wait()?,
                    false => self.in_flight.push(handle),
                }
                Ok(true)
            }
            Err(Refused::Full(())) => Ok(false),
            Err(Refused::Failed(error, ())) => Err(error),
        }
    }

    /// Returns whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Waits until the operations in flight are complete. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn complete(&mut self) -> Result<()> {
        while let Some(handle) = self.in_flight.last_mut() {
            let complete = handle.await;
            self.in_flight.pop();
            complete?;
        }
        Ok(())
    }

    /// Restarts with the first block of a put; operations in flight remain.
    pub fn restart(&mut self) {
        self.posted = 0;
    }
}

/// All blocks, as one operation of the provider.
struct Whole<'a> {
    puts: &'a dyn BlockPuts,
    to: &'a Place,
    from: &'a Place,
    /// Bytes of a block.
    len: usize,
    blocks: Blocks,
}

impl DirectOp for Whole<'_> {
    type Out = ();
    #[inline]
    fn try_direct(self, _: &Fabric) -> Result<(), Self> {
        Err(self)
    }
    fn post(&mut self, _: &Fabric) -> Posted {
        self.puts.put_blocks(self.to, self.from, self.len, self.blocks)
    }
    fn finish(self, _: u64) {}
}

/// One block.
struct One<'a> {
    to: &'a Place,
    from: &'a Place,
}

impl DirectOp for One<'_> {
    type Out = ();
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<(), Self> {
        if put_now(fabric, self.to, Source::Place(self.from)) { Ok(()) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().put(self.to, Source::Place(self.from), None)
    }
    fn finish(self, _: u64) {}
}
