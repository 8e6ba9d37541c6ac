//! Operations: those that are posted and yield a handle, those that are posted and awaited in one
//! step, and those that complete immediately.

use super::{
    DirectOp, Fabric,
    direct::{GetSlice, GetWord, PutSlice, PutWord},
    operation_future::OperationFuture,
};
use crate::{
    Amo, AtomicWord, GetSink, Handle, Operation, Pod, PutSource, Refused, RemoteSpan, RemoteWord, Result,
    op::{Atomic, Copy, Get, Put},
    provider::Posted,
};
use core::future::Future;

/// Operations that are posted, and yield a handle.
impl Fabric {
    /// Posts `op`, or returns it. Never blocks.
    ///
    /// # Errors
    /// [`Refused`], with the operation.
    #[inline(always)]
    pub fn try_post<O: Operation>(&self, op: O) -> Result<Handle<O::Output>, Refused<O>> {
        op.start(self)
    }

    /// Posts `op`, waiting for room if need be.
    ///
    /// # Errors
    /// Any error that makes the operation impossible. Its buffer is then dropped; use
    /// [`Fabric::try_post`] to keep it.
    #[inline(always)]
    pub async fn post<O: Operation>(&self, op: O) -> Result<Handle<O::Output>> {
        match op.start(self) {
            Ok(handle) => Ok(handle),
            Err(Refused::Failed(error, _)) => Err(error),
            // Rare, and large.
            Err(Refused::Full(op)) => Box::pin(self.post_later(op)).await,
        }
    }

    async fn post_later<O: Operation>(&self, mut op: O) -> Result<Handle<O::Output>> {
        loop {
            self.room(op.notifies()).await?;
            op = match op.start(self) {
                Ok(handle) => return Ok(handle),
                Err(Refused::Failed(error, _)) => return Err(error),
                Err(Refused::Full(op)) => op,
            };
        }
    }

    /// Posts a put, with a notice if there is data for one. The lengths are compared before
    /// anything is copied.
    ///
    /// # Errors
    /// [`Refused`], with the source.
    #[inline(always)]
    pub fn try_put<T: Pod, S: PutSource<T>>(
        &self,
        to: &RemoteSpan<T>,
        from: S,
        notice: Option<u64>,
    ) -> Result<Handle<S>, Refused<S>> {
        self.begin(Put { to, from, notice }, |put| put.from)
    }

    /// Posts a put from a slice, which may be reused when this returns: the bytes are taken as they
    /// are now, and the handle reports the completion of the put. A provider that does not transmit
    /// them immediately copies them, so [`Fabric::try_put`] is cheaper for long transfers that this
    /// CPU does not execute.
    ///
    /// ```
    /// # use rdma_fabric::{Fabric, Refused, RemoteSpan, Result};
    /// /// Puts the same buffer to each of `rows`, filled anew each time; waits for all at the end.
    /// async fn fill(fabric: &Fabric, rows: &[RemoteSpan<u64>]) -> Result<()> {
    ///     let (mut buffer, mut under_way) = ([0; 8], Vec::new());
    ///     for (row, to) in rows.iter().enumerate() {
    ///         buffer.fill(row as u64);
    ///         match fabric.try_put_slice(to, &buffer, None) {
    ///             Ok(put) => under_way.push(put),
    ///             Err(Refused::Full(())) => fabric.put_slice(to, &buffer).await?,
    ///             Err(Refused::Failed(error, ())) => return Err(error),
    ///         }
    ///     }
    ///     for put in under_way {
    ///         put.await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Refused`], in which case nothing was put; [`crate::FabricError::LengthMismatch`].
    #[inline(always)]
    pub fn try_put_slice<T: Pod>(
        &self,
        to: &RemoteSpan<T>,
        from: &[T],
        notice: Option<u64>,
    ) -> Result<Handle<()>, Refused<()>> {
        self.begin(PutSlice { to: to.place(), from, notice }, drop)
    }

    /// Posts a get. The lengths are compared before anything is copied.
    ///
    /// # Errors
    /// [`Refused`], with the sink.
    #[inline(always)]
    pub fn try_get<T: Pod, D: GetSink<T>>(&self, from: &RemoteSpan<T>, to: D) -> Result<Handle<D>, Refused<D>> {
        self.begin(Get { from, to }, |get| get.to)
    }

    /// Posts an atomic. It is atomic with respect to every other rank's atomics on the same word.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline(always)]
    pub fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<W>, amo: Amo<W>) -> Result<Handle<W>, Refused<()>> {
        self.begin(Atomic { word, amo }, drop)
    }

    /// Executes an operation directly, or posts it. A refused operation is returned, converted by
    /// `back`.
    #[inline(always)]
    pub(crate) fn begin<O: DirectOp, B>(&self, op: O, back: impl FnOnce(O) -> B) -> Result<Handle<O::Out>, Refused<B>> {
        match op.try_direct(self) {
            Ok(out) => Ok(Handle::complete(out)),
            Err(op) => self.begin_by_provider(op, back),
        }
    }

    /// Posts an operation through the provider; a separate function, off the fast path.
    #[inline(never)]
    fn begin_by_provider<O: DirectOp, B>(
        &self,
        mut op: O,
        back: impl FnOnce(O) -> B,
    ) -> Result<Handle<O::Out>, Refused<B>> {
        match op.post(self) {
            Posted::Complete(word) => Ok(Handle::complete(op.finish(word))),
            Posted::Pending(token) => Ok(Handle::in_flight(self, token, op.finish(0), O::RETURNS)),
            Posted::Full => Err(Refused::Full(back(op))),
            Posted::Failed(error) => Err(Refused::Failed(error, back(op))),
        }
    }
}

/// Operations that are posted and awaited in one step. Where memory is mapped, they complete when
/// their future is first polled.
impl Fabric {
    /// Puts, waits until the source is reusable, and returns it.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`crate::FabricError::LengthMismatch`].
    #[inline(always)]
    pub fn put<T: Pod, S: PutSource<T>>(&self, to: &RemoteSpan<T>, from: S) -> impl Future<Output = Result<S>> {
        OperationFuture::new(self, Put { to, from, notice: None })
    }

    /// Puts from a slice and waits until the put is complete: [`Fabric::try_put_slice`], after
    /// waiting for room. For long transfers that this CPU does not execute, [`Fabric::put`] of a
    /// `Vec` or of registered memory avoids a copy.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    #[inline(always)]
    pub fn put_slice<'a, T: Pod>(
        &'a self,
        to: &'a RemoteSpan<T>,
        from: &'a [T],
    ) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(self, PutSlice { to: to.place(), from, notice: None })
    }

    /// Puts with a notice at the target, and waits until the source is reusable.
    ///
    /// # Errors
    /// As [`Fabric::put`], [`crate::FabricError::NoticeTooWide`].
    #[inline(always)]
    pub fn put_notify<T: Pod, S: PutSource<T>>(
        &self,
        to: &RemoteSpan<T>,
        from: S,
        data: u64,
    ) -> impl Future<Output = Result<S>> {
        OperationFuture::new(self, Put { to, from, notice: Some(data) })
    }

    /// Puts from a slice with a notice at the target, and waits until the put is complete.
    ///
    /// # Errors
    /// As [`Fabric::put_notify`].
    #[inline(always)]
    pub fn put_slice_notify<'a, T: Pod>(
        &'a self,
        to: &'a RemoteSpan<T>,
        from: &'a [T],
        data: u64,
    ) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(self, PutSlice { to: to.place(), from, notice: Some(data) })
    }

    /// Puts one word and waits until the put is complete. The word is written atomically, never
    /// torn.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    #[inline(always)]
    pub fn put_word<W: AtomicWord>(&self, to: &RemoteWord<W>, value: W) -> impl Future<Output = Result<()>> {
        OperationFuture::new(self, PutWord { to: to.place(), value })
    }

    /// Gets into `to` and returns it filled.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`crate::FabricError::LengthMismatch`].
    #[inline(always)]
    pub fn get<T: Pod, D: GetSink<T>>(&self, from: &RemoteSpan<T>, to: D) -> impl Future<Output = Result<D>> {
        OperationFuture::new(self, Get { from, to })
    }

    /// Gets into a slice. If the future is dropped, or fails, the slice's content is unspecified.
    ///
    /// # Errors
    /// As [`Fabric::get`].
    #[inline(always)]
    pub fn get_slice<'a, T: Pod>(
        &'a self,
        from: &'a RemoteSpan<T>,
        to: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(self, GetSlice { from: from.place(), to })
    }

    /// Gets one word. The word is read atomically, never torn.
    ///
    /// # Errors
    /// As [`Fabric::get`].
    #[inline(always)]
    pub fn get_word<W: AtomicWord>(&self, from: &RemoteWord<W>) -> impl Future<Output = Result<W>> {
        OperationFuture::new(self, GetWord { from: from.place(), value: W::from_bits(0) })
    }

    /// Copies between the memory of any two ranks, with equal lengths, and waits until the source
    /// is reusable.
    ///
    /// If the destination is local memory, it is a get: once it completes, the bytes have arrived.
    /// If only the source is local, it is a put, visible after a [`Fabric::flush`] of the
    /// destination's rank. If neither is local, it is a *third-party copy*, which becomes visible,
    /// and reports errors of the destination, like a put to the destination's rank;
    /// [`crate::Caps::third_party_copy`] states whether such copies are supported.
    ///
    /// Source and destination may overlap: the destination then receives the previous bytes of the
    /// source.
    ///
    /// # Errors
    /// As [`Fabric::post`], of either rank or region; [`crate::FabricError::LengthMismatch`]; for a
    /// third-party copy, [`crate::FabricError::Unsupported`].
    #[inline(always)]
    pub fn copy<'a, T: Pod>(
        &'a self,
        to: &'a RemoteSpan<T>,
        from: &'a RemoteSpan<T>,
    ) -> impl Future<Output = Result<()>> + 'a {
        OperationFuture::new(self, Copy { to, from })
    }

    /// Executes any atomic; returns the previous value. In contrast, the kind of
    /// [`Fabric::fetch_add`], [`Fabric::swap`], [`Fabric::compare_swap`], [`Fabric::fetch_or`] and
    /// [`Fabric::fetch_and`] is known at compile time.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn atomic<W: AtomicWord>(&self, word: &RemoteWord<W>, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        OperationFuture::new(self, Atomic { word, amo })
    }
}
