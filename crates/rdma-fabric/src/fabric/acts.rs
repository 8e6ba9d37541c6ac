//! The operations that [`Running`](super::acting::Running) posts. The kind of each atomic is known where it is compiled.

use super::{Fabric, acting::Act};
use crate::{
    Amo, AtomicWord, FabricError, GetSink, PutSource, Rank, Result,
    provider::{Place, Posted, Sink, Source},
};
use bytemuck::Pod;
use core::marker::PhantomData;

macro_rules! atomics {
    ($($name:ident($($field:ident),*) = $amo:expr;)*) => {$(
        pub(super) struct $name<'a, W> { pub(super) word: &'a Place, $(pub(super) $field: W),* }

        impl<W: AtomicWord> Act for $name<'_, W> {
            type Out = W;
            #[inline(always)]
            fn now(self, fabric: &Fabric) -> Result<W, Self> {
                $(let $field = self.$field.to_bits();)*
                let Some(old) = self.word.modify(W::BYTES, $amo) else { return Err(self) };
                fabric.rung(self.word);
                Ok(W::from_bits(old))
            }
            fn post(&mut self, fabric: &Fabric) -> Posted {
                $(let $field = self.$field.to_bits();)*
                fabric.provider().atomic(self.word, $amo)
            }
            #[inline]
            fn over(self, word: u64) -> W {
                W::from_bits(word)
            }
        }
    )*};
}
atomics! {
    Add(add) = Amo::Add(add);
    Swap(new) = Amo::Swap(new);
    CompareSwap(expected, new) = Amo::CompareSwap { expected, new };
    Or(bits) = Amo::Or(bits);
    And(bits) = Amo::And(bits);
}

/// Any atomic.
pub(super) struct Any<'a, W> {
    pub(super) word: &'a Place,
    pub(super) amo: Amo<W>,
}

impl<W: AtomicWord> Act for Any<'_, W> {
    type Out = W;
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<W, Self> {
        let Some(old) = self.word.modify(W::BYTES, self.amo.to_bits()) else { return Err(self) };
        fabric.rung(self.word);
        Ok(W::from_bits(old))
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().atomic(self.word, self.amo.to_bits())
    }
    #[inline]
    fn over(self, word: u64) -> W {
        W::from_bits(word)
    }
}

// ----- words -------------------------------------------------------------------------------------

pub(super) struct PutWord<'a, W> {
    pub(super) to: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> Act for PutWord<'_, W> {
    type Out = ();
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<(), Self> {
        if self.to.store(W::BYTES, self.value.to_bits()).is_none() {
            return Err(self);
        }
        fabric.rung(self.to);
        Ok(())
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        fabric.provider().put(self.to, Source::Bytes(bytemuck::bytes_of(&self.value)), None)
    }
    fn over(self, _: u64) {}
}

pub(super) struct GetWord<'a, W> {
    pub(super) from: &'a Place,
    pub(super) value: W,
}

impl<W: AtomicWord> Act for GetWord<'_, W> {
    type Out = W;
    #[inline(always)]
    fn now(self, _: &Fabric) -> Result<W, Self> {
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
    fn over(self, _: u64) -> W {
        self.value
    }
}

// ----- spans -------------------------------------------------------------------------------------

/// Put a short source where it is to go, if that can be done directly.
#[inline(always)]
pub(super) fn put_now(fabric: &Fabric, to: &Place, from: Source<'_>) -> bool {
    let put = match from {
        Source::Bytes(bytes) => to.copy_in(bytes),
        Source::Place(own) => to.copy_from(own),
    };
    if put.is_some() {
        fabric.rung(to);
    }
    put.is_some()
}

/// Fill a short buffer, if that can be done directly.
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

pub(super) struct Put<'a, T, S> {
    pub(super) to: &'a Place,
    pub(super) from: S,
    pub(super) notice: Option<u64>,
    pub(super) of: PhantomData<fn() -> T>,
}

impl<T: Pod, S: PutSource<T>> Act for Put<'_, T, S> {
    type Out = S;
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<S, Self> {
        if self.notice.is_none() && put_now(fabric, self.to, self.from.view()) { Ok(self.from) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.from.elements(), self.to) {
            return Posted::failed(error);
        }
        fabric.provider().put(self.to, self.from.view(), self.notice)
    }
    fn over(self, _: u64) -> S {
        self.from
    }
    fn notifies(&self) -> Option<Rank> {
        self.notice.map(|_| self.to.rank())
    }
}

pub(super) struct Get<'a, T, D> {
    pub(super) from: &'a Place,
    pub(super) to: D,
    pub(super) of: PhantomData<fn() -> T>,
}

impl<T: Pod, D: GetSink<T>> Act for Get<'_, T, D> {
    type Out = D;
    #[inline(always)]
    fn now(mut self, _: &Fabric) -> Result<D, Self> {
        if get_now(self.from, self.to.view()) { Ok(self.to) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.to.elements(), self.from) {
            return Posted::failed(error);
        }
        fabric.provider().get(self.from, self.to.view())
    }
    fn sink(&mut self) -> Sink<'_> {
        self.to.view()
    }
    fn over(self, _: u64) -> D {
        self.to
    }
}

/// A put from memory that is only lent: providers are done with bytes, or have copied them, when they have posted.
pub(super) struct PutSlice<'a, T> {
    pub(super) to: &'a Place,
    pub(super) from: &'a [T],
}

impl<T: Pod> Act for PutSlice<'_, T> {
    type Out = ();
    #[inline(always)]
    fn now(self, fabric: &Fabric) -> Result<(), Self> {
        if put_now(fabric, self.to, Source::Bytes(bytemuck::cast_slice(self.from))) { Ok(()) } else { Err(self) }
    }
    fn post(&mut self, fabric: &Fabric) -> Posted {
        if let Err(error) = same_length::<T>(self.from.len(), self.to) {
            return Posted::failed(error);
        }
        fabric.provider().put(self.to, Source::Bytes(bytemuck::cast_slice(self.from)), None)
    }
    fn over(self, _: u64) {}
}

/// A get into memory that is only lent: providers see it while they are polled, and fill it then.
pub(super) struct GetSlice<'a, T> {
    pub(super) from: &'a Place,
    pub(super) to: &'a mut [T],
}

impl<T: Pod> Act for GetSlice<'_, T> {
    type Out = ();
    #[inline(always)]
    fn now(mut self, _: &Fabric) -> Result<(), Self> {
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
    fn over(self, _: u64) {}
}
