//! Operations that are posted and awaited in one step, and those that are over at once.
//!
//! Where memory is mapped they are over when their future is first polled. The kind of an atomic is known where it is called; kept in a future it would
//! have to be looked at again.

use super::{
    Fabric,
    acting::Running,
    acts::{Add, And, Any, CompareSwap, Get, GetSlice, GetWord, Or, Put, PutSlice, PutWord, Swap},
};
use crate::{Amo, AtomicWord, GetSink, Pod, PutSource, RemoteSpan, RemoteWord, Result};
use core::{future::Future, marker::PhantomData};

impl Fabric {
    /// Put and wait until the source is reusable; it comes back.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`crate::FabricError::LengthMismatch`].
    #[inline(always)]
    pub fn put<T: Pod, S: PutSource<T>>(&self, to: &RemoteSpan<T>, from: S) -> impl Future<Output = Result<S>> {
        Running::new(self, Put { to: to.place(), from, notice: None, of: PhantomData::<fn() -> T> })
    }

    /// Put from a slice and wait until it is reusable. A provider that is not done with it at once copies it: where
    /// transfers are long and not made by this CPU, [`Fabric::put`] of a `Vec` or of registered memory spares that.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    #[inline(always)]
    pub fn put_slice<'a, T: Pod>(
        &'a self,
        to: &'a RemoteSpan<T>,
        from: &'a [T],
    ) -> impl Future<Output = Result<()>> + 'a {
        Running::new(self, PutSlice { to: to.place(), from })
    }

    /// Put with a notice at the target, and wait until the source is reusable.
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
        Running::new(self, Put { to: to.place(), from, notice: Some(data), of: PhantomData::<fn() -> T> })
    }

    /// Put one word and wait until it has left. Written whole, never torn.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    #[inline(always)]
    pub fn put_word<W: AtomicWord>(&self, to: &RemoteWord<W>, value: W) -> impl Future<Output = Result<()>> {
        Running::new(self, PutWord { to: to.place(), value })
    }

    /// Get into `to` and give it back filled.
    ///
    /// # Errors
    /// As [`Fabric::post`], [`crate::FabricError::LengthMismatch`].
    #[inline(always)]
    pub fn get<T: Pod, D: GetSink<T>>(&self, from: &RemoteSpan<T>, to: D) -> impl Future<Output = Result<D>> {
        Running::new(self, Get { from: from.place(), to, of: PhantomData::<fn() -> T> })
    }

    /// Get into a slice. If the future is dropped, or fails, what is in it is not said.
    ///
    /// # Errors
    /// As [`Fabric::get`].
    #[inline(always)]
    pub fn get_slice<'a, T: Pod>(
        &'a self,
        from: &'a RemoteSpan<T>,
        to: &'a mut [T],
    ) -> impl Future<Output = Result<()>> + 'a {
        Running::new(self, GetSlice { from: from.place(), to })
    }

    /// Get one word. Read whole, never torn.
    ///
    /// # Errors
    /// As [`Fabric::get`].
    #[inline(always)]
    pub fn get_word<W: AtomicWord>(&self, from: &RemoteWord<W>) -> impl Future<Output = Result<W>> {
        Running::new(self, GetWord { from: from.place(), value: W::from_bits(0) })
    }

    /// Any atomic; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn atomic<W: AtomicWord>(&self, word: &RemoteWord<W>, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        Running::new(self, Any { word: word.place(), amo })
    }

    /// Add, wrapping; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn fetch_add<W: AtomicWord>(&self, word: &RemoteWord<W>, add: W) -> impl Future<Output = Result<W>> {
        Running::new(self, Add { word: word.place(), add })
    }

    /// Store; returns the value before (fetch-and-store).
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn swap<W: AtomicWord>(&self, word: &RemoteWord<W>, new: W) -> impl Future<Output = Result<W>> {
        Running::new(self, Swap { word: word.place(), new })
    }

    /// Store `new` if the word equals `expected`; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn compare_swap<W: AtomicWord>(
        &self,
        word: &RemoteWord<W>,
        expected: W,
        new: W,
    ) -> impl Future<Output = Result<W>> {
        Running::new(self, CompareSwap { word: word.place(), expected, new })
    }

    /// Or; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn fetch_or<W: AtomicWord>(&self, word: &RemoteWord<W>, bits: W) -> impl Future<Output = Result<W>> {
        Running::new(self, Or { word: word.place(), bits })
    }

    /// And; returns the value before.
    ///
    /// # Errors
    /// As [`Fabric::post`].
    #[inline(always)]
    pub fn fetch_and<W: AtomicWord>(&self, word: &RemoteWord<W>, bits: W) -> impl Future<Output = Result<W>> {
        Running::new(self, And { word: word.place(), bits })
    }

    /// [`Fabric::atomic`] where that is over at once; `None`, and nothing done, elsewhere.
    #[inline(always)]
    pub fn atomic_now<W: AtomicWord>(&self, word: &RemoteWord<W>, amo: Amo<W>) -> Option<W> {
        let old = word.place().modify(W::BYTES, amo.to_bits())?;
        self.rung(word.place());
        Some(W::from_bits(old))
    }

    /// [`Fabric::put_word`] where that is over at once; `None`, and nothing done, elsewhere.
    #[inline(always)]
    pub fn put_word_now<W: AtomicWord>(&self, to: &RemoteWord<W>, value: W) -> Option<()> {
        to.place().store(W::BYTES, value.to_bits())?;
        self.rung(to.place());
        Some(())
    }

    /// [`Fabric::get_word`] where that is over at once; `None` elsewhere.
    #[inline(always)]
    pub fn get_word_now<W: AtomicWord>(&self, from: &RemoteWord<W>) -> Option<W> {
        from.place().load(W::BYTES).map(W::from_bits)
    }
}
