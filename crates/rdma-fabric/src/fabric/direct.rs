//! Execution of operations: directly if the place is mapped, otherwise by the provider.
//!
//! The kind of each atomic is known at compile time: if a future kept it as an [`Amo`], it would
//! have to be inspected again at run time.

use super::{Fabric, operation_future::OperationFuture};
use crate::{
    Amo, AtomicWord, FabricError, GetSink, PutSource, Rank, RemoteWord, Result,
    handle::ReturnedValue,
    op::{Atomic, Get, Nop, Put},
    provider::{Place, Posted, Sink, Source},
};
use bytemuck::Pod;
use core::future::Future;

/// An operation: its direct execution, and its posting.
pub(crate) trait DirectOp: Sized {
    /// The result of the operation.
    type Out: 'static;
    /// The way in which a [`Handle`](crate::Handle) completes the value that [`DirectOp::finish`]
    /// yielded when the operation was posted.
    const RETURNS: &'static ReturnedValue<Self::Out> = ReturnedValue::UNCHANGED;
    /// Executes the operation directly, or returns it.
    fn try_direct(self, fabric: &Fabric) -> Result<Self::Out, Self>;
    /// Posts the operation.
    fn post(&mut self, fabric: &Fabric) -> Posted;
    /// Returns the destination of a get.
    fn sink(&mut self) -> Sink<'_> {
        Sink::none()
    }
    /// Returns the operation's result; `word` is the value before an atomic.
    fn finish(self, word: u64) -> Self::Out;
    /// Returns the rank in whose notice queue the operation needs room.
    fn notifies(&self) -> Option<Rank> {
        None
    }
}

// ----- atomics -----------------------------------------------------------------------------------

/// Defines each atomic whose kind is known at compile time: the operation, and the method that
/// posts and awaits it.
macro_rules! atomics {
    ($($(#[$doc:meta])* $method:ident: $name:ident($($field:ident),*) = $amo:expr;)*) => {$(
        struct $name<'a, W> { word: &'a Place, $($field: W),* }

        impl<W: AtomicWord> DirectOp for $name<'_, W> {
            type Out = W;
            #[inline(always)]
            fn try_direct(self, fabric: &Fabric) -> Result<W, Self> {
                $(let $field = self.$field.to_bits();)*
                let Some(old) = self.word.modify(W::BYTES, $amo) else { return Err(self) };
                fabric.wake_if_parked(self.word);
                Ok(W::from_bits(old))
            }
            fn post(&mut self, fabric: &Fabric) -> Posted {
                $(let $field = self.$field.to_bits();)*
                fabric.provider().atomic(self.word, $amo)
            }
            #[inline]
            fn finish(self, word: u64) -> W {
                W::from_bits(word)
            }
        }

        impl Fabric {
            $(#[$doc])*
            ///
            /// # Errors
            /// As [`Fabric::post`].
            #[inline(always)]
            pub fn $method<W: AtomicWord>(&self, word: &RemoteWord<W>, $($field: W),*) -> impl Future<Output = Result<W>> {
                OperationFuture::new(self, $name { word: word.place(), $($field),* })
            }
        }
    )*};
}
atomics! {
    /// Adds, wrapping; returns the previous value.
    fetch_add: Add(add) = Amo::Add(add);
    /// Stores; returns the previous value (fetch-and-store).
    swap: Swap(new) = Amo::Swap(new);
    /// Stores `new` if the word equals `expected`; returns the previous value.
    compare_swap: CompareSwap(expected, new) = Amo::CompareSwap { expected, new };
    /// Sets bits by a bitwise or; returns the previous value.
    fetch_or: Or(bits) = Amo::Or(bits);
    /// Clears bits by a bitwise and; returns the previous value.
    fetch_and: And(bits) = Amo::And(bits);
}

impl<W: AtomicWord> DirectOp for Atomic<'_, W> {
    type Out = W;
    const RETURNS: &'static ReturnedValue<W> =
        &ReturnedValue { sink: |_| Sink::none(), patch: |value, bits| *value = W::from_bits(bits) };
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<W, Self> {
        match fabric.direct().atomic(self.word, self.amo) {
            Some(old) => Ok(old),
            None => Err(self),
        }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().atomic(self.word.place(), self.amo.to_bits())
    }
    #[inline]
    fn finish(self, word: u64) -> W {
        W::from_bits(word)
    }
}

// ----- words -------------------------------------------------------------------------------------

pub(super) struct PutWord<'a, W> {
    pub(super) to: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> DirectOp for PutWord<'_, W> {
    type Out = ();
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<(), Self> {
        if self.to.store(W::BYTES, self.value.to_bits()).is_none() {
            return Err(self);
        }
        fabric.wake_if_parked(self.to);
        Ok(())
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().put(self.to, Source::Bytes(bytemuck::bytes_of(&self.value)), None)
    }
    fn finish(self, _: u64) {}
}

pub(super) struct GetWord<'a, W> {
    pub(super) from: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> DirectOp for GetWord<'_, W> {
    type Out = W;
    #[inline(always)]
    fn try_direct(self, _: &Fabric) -> Result<W, Self> {
        match self.from.load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            None => Err(self),
        }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().get(self.from, Sink::Bytes(bytemuck::bytes_of_mut(&mut self.value)))
    }
    fn sink(&mut self) -> Sink<'_> {
        Sink::Bytes(bytemuck::bytes_of_mut(&mut self.value))
    }
    fn finish(self, _: u64) -> W {
        self.value
    }
}

// ----- spans -------------------------------------------------------------------------------------

/// Puts a short source directly; returns whether that was possible.
#[inline(always)]
pub(super) fn put_now(fabric: &Fabric, to: &Place, from: Source<'_>) -> bool {
    let put = match from {
        Source::Bytes(bytes) => to.copy_in(bytes),
        Source::Place(own) => to.copy_from(own),
    };
    if put.is_some() {
        fabric.wake_if_parked(to);
    }
    put.is_some()
}

/// Fills a short buffer directly; returns whether that was possible.
#[inline(always)]
pub(super) fn get_now(from: &Place, to: Sink<'_>) -> bool {
    match to {
        Sink::Bytes(bytes) => from.copy_out(bytes).is_some(),
        Sink::Place(_) => false,
    }
}

pub(super) fn same_length<T>(elements: usize, place: &Place) -> Result<()> {
    let want = place.len() / size_of::<T>().max(1);
    if elements == want || size_of::<T>() == 0 { Ok(()) } else { Err(FabricError::length_mismatch(elements, want)) }
}

impl<T: Pod, S: PutSource<T>> DirectOp for Put<'_, T, S> {
    type Out = S;
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<S, Self> {
        let direct = self.notice.is_none() && put_now(fabric, self.to.place(), self.from.view());
        if direct { Ok(self.from) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.from.elements(), self.to.place()) {
            return Posted::failed(error);
        }
        fabric.provider().put(self.to.place(), self.from.view(), self.notice)
    }
    fn finish(self, _: u64) -> S {
        self.from
    }
    #[inline]
    fn notifies(&self) -> Option<Rank> {
        self.notice.map(|_| self.to.rank())
    }
}

impl<T: Pod, D: GetSink<T>> DirectOp for Get<'_, T, D> {
    type Out = D;
    const RETURNS: &'static ReturnedValue<D> = &ReturnedValue { sink: |to| to.view(), patch: |_, _| () };
    #[inline(always)]
    fn try_direct(mut self, _: &Fabric) -> Result<D, Self> {
        if get_now(self.from.place(), self.to.view()) { Ok(self.to) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.to.elements(), self.from.place()) {
            return Posted::failed(error);
        }
        fabric.provider().get(self.from.place(), self.to.view())
    }
    fn sink(&mut self) -> Sink<'_> {
        self.to.view()
    }
    fn finish(self, _: u64) -> D {
        self.to
    }
}

/// A put from borrowed memory: providers are done with the bytes, or have copied them, when the
/// post returns.
pub(super) struct PutSlice<'a, T> {
    pub(super) to: &'a Place,
    pub(super) from: &'a [T],
    pub(super) notice: Option<u64>,
}

impl<T: Pod> DirectOp for PutSlice<'_, T> {
    type Out = ();
    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<(), Self> {
        let direct = self.notice.is_none() && put_now(fabric, self.to, Source::Bytes(bytemuck::cast_slice(self.from)));
        if direct { Ok(()) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.from.len(), self.to) {
            return Posted::failed(error);
        }
        fabric.provider().put(self.to, Source::Bytes(bytemuck::cast_slice(self.from)), self.notice)
    }
    fn finish(self, _: u64) {}
    #[inline]
    fn notifies(&self) -> Option<Rank> {
        self.notice.map(|_| self.to.rank())
    }
}

/// A get into borrowed memory, which providers can access, and fill, only while being polled.
pub(super) struct GetSlice<'a, T> {
    pub(super) from: &'a Place,
    pub(super) to: &'a mut [T],
}

impl<T: Pod> DirectOp for GetSlice<'_, T> {
    type Out = ();
    #[inline(always)]
    fn try_direct(mut self, _: &Fabric) -> Result<(), Self> {
        if get_now(self.from, self.sink()) { Ok(()) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.to.len(), self.from) {
            return Posted::failed(error);
        }
        fabric.provider().get(self.from, self.sink())
    }
    fn sink(&mut self) -> Sink<'_> {
        Sink::Bytes(bytemuck::cast_slice_mut(self.to))
    }
    fn finish(self, _: u64) {}
}

impl DirectOp for Nop {
    type Out = ();
    #[inline]
    fn try_direct(self, _: &Fabric) -> Result<(), Self> {
        Err(self)
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().nop()
    }
    fn finish(self, _: u64) {}
}
