//! Operations that are posted, and yield a handle.

use super::{
    Fabric,
    acts::{get_now, put_now, same_length},
};
use crate::{
    Amo, AtomicWord, GetSink, Handle, Operation, Pod, PutOptions, PutSource, Refused, RemoteSpan, RemoteWord, Result,
    handle::Shape,
    provider::{Place, Posted, Sink},
};

impl Fabric {
    /// Post `op`, or give it back. Never blocks.
    ///
    /// # Errors
    /// [`Refused`], with the operation.
    #[inline(always)]
    pub fn try_post<O: Operation>(&self, op: O) -> Result<Handle<O::Output>, Refused<O>> {
        op.start(self)
    }

    /// Post `op`, waiting for room if need be.
    ///
    /// # Errors
    /// What makes the operation impossible. Its buffer is dropped then; use [`Fabric::try_post`] to keep it.
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

    /// Post a put. Callers have checked that the lengths agree; providers check again before they copy.
    ///
    /// # Errors
    /// [`Refused`], with the source.
    #[inline(always)]
    pub fn try_put<T: Pod, S: PutSource<T>>(
        &self,
        to: &RemoteSpan<T>,
        from: S,
        options: PutOptions,
    ) -> Result<Handle<S>, Refused<S>> {
        if options.notice.is_none() && put_now(self, to.place(), from.view()) {
            return Ok(Handle::over(from));
        }
        self.post_put::<T, S>(to.place(), from, options.notice)
    }

    /// Post a get.
    ///
    /// # Errors
    /// [`Refused`], with the sink.
    #[inline(always)]
    pub fn try_get<T: Pod, D: GetSink<T>>(&self, from: &RemoteSpan<T>, mut to: D) -> Result<Handle<D>, Refused<D>> {
        if get_now(from.place(), to.view()) {
            return Ok(Handle::over(to));
        }
        self.post_get::<T, D>(from.place(), to)
    }

    /// Post an atomic. It is atomic against every other rank's atomics on the same word.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline(always)]
    pub fn try_atomic<W: AtomicWord>(&self, word: &RemoteWord<W>, amo: Amo<W>) -> Result<Handle<W>, Refused<()>> {
        if let Some(old) = word.place().modify(W::BYTES, amo.to_bits()) {
            self.rung(word.place());
            return Ok(Handle::over(W::from_bits(old)));
        }
        self.post_atomic(word.place(), amo)
    }

    /// Post an operation that does nothing, in order with the others.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn try_nop(&self) -> Result<Handle<()>, Refused<()>> {
        match self.provider().nop() {
            Posted::Over(_) => Ok(Handle::over(())),
            Posted::Pending(token) => Ok(Handle::under(self, token, (), Shape::PLAIN)),
            Posted::Full => Err(Refused::Full(())),
            Posted::Failed(error) => Err(Refused::Failed(error, ())),
        }
    }
}

// What is off the short path, in functions of its own.
impl Fabric {
    #[inline(never)]
    fn post_put<T: Pod, S: PutSource<T>>(
        &self,
        to: &Place,
        from: S,
        notice: Option<u64>,
    ) -> Result<Handle<S>, Refused<S>> {
        if let Err(error) = same_length::<T>(from.elements(), to) {
            return Err(Refused::Failed(error, from));
        }
        match self.provider().put(to, from.view(), notice) {
            Posted::Over(_) => Ok(Handle::over(from)),
            Posted::Pending(token) => Ok(Handle::under(self, token, from, Shape::PLAIN)),
            Posted::Full => Err(Refused::Full(from)),
            Posted::Failed(error) => Err(Refused::Failed(error, from)),
        }
    }

    #[inline(never)]
    fn post_get<T: Pod, D: GetSink<T>>(&self, from: &Place, mut to: D) -> Result<Handle<D>, Refused<D>> {
        if let Err(error) = same_length::<T>(to.elements(), from) {
            return Err(Refused::Failed(error, to));
        }
        match self.provider().get(from, to.view()) {
            Posted::Over(_) => Ok(Handle::over(to)),
            Posted::Pending(token) => {
                let shape = &const { Shape { sink: |to: &mut D| to.view(), patch: |_, _| () } };
                Ok(Handle::under(self, token, to, shape))
            }
            Posted::Full => Err(Refused::Full(to)),
            Posted::Failed(error) => Err(Refused::Failed(error, to)),
        }
    }

    #[inline(never)]
    fn post_atomic<W: AtomicWord>(&self, word: &Place, amo: Amo<W>) -> Result<Handle<W>, Refused<()>> {
        match self.provider().atomic(word, amo.to_bits()) {
            Posted::Over(bits) => Ok(Handle::over(W::from_bits(bits))),
            Posted::Pending(token) => {
                let shape = &const {
                    Shape { sink: |_: &mut W| Sink::none(), patch: |value, bits| *value = W::from_bits(bits) }
                };
                Ok(Handle::under(self, token, W::from_bits(0), shape))
            }
            Posted::Full => Err(Refused::Full(())),
            Posted::Failed(error) => Err(Refused::Failed(error, ())),
        }
    }
}
