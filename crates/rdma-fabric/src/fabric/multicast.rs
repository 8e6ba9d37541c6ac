//! Multicasts: one put to the same location on several ranks.

use super::{DirectOp, Fabric, operation_future::OperationFuture};
use crate::{
    FabricError, Handle, Multicasts, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, Result,
    error::MulticastError,
    provider::{Multicast, Place, Posted},
};
use bytemuck::Pod;
use core::{fmt, future::Future, marker::PhantomData, ops::Range};

/// The same elements of several ranks' memory: the destination of a [multicast](MulticastSpan::put).
pub struct MulticastSpan<T: Pod> {
    /// One for each member.
    places: Box<[Place]>,
    elements: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> fmt::Debug for MulticastSpan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks = self.places.len();
        match self.places.first().map(Place::addr) {
            Some(at) => write!(f, "MulticastSpan({:?}+{} of {ranks} ranks)", at.region, at.offset),
            None => f.write_str("MulticastSpan(of no rank)"),
        }
    }
}

impl<T: Pod> MulticastSpan<T> {
    /// Resolves `len` elements at each of several addresses: the same offset in the same region
    /// (such as a [symmetric](Fabric::alloc_symmetric) one) of different ranks, the members.
    ///
    /// # Errors
    /// As [`Multicasts::reach`] and [`Fabric::remote_span`]; [`FabricError::Multicast`] if regions or
    /// offsets differ.
    pub fn new(fabric: &Fabric, at: &[RemoteAddr], len: usize) -> Result<Self> {
        let members: Vec<Rank> = at.iter().map(|addr| addr.rank).collect();
        Multicasts::reach(fabric, &members)?;
        if let Some((first, others)) = at.split_first()
            && let Some(other) = others.iter().find(|other| RemoteAddr { rank: first.rank, ..**other } != *first)
        {
            return Err(MulticastError::Elsewhere { one: *first, other: *other }.into());
        }
        let place = |addr: &RemoteAddr| fabric.remote_span::<T>(*addr, len).map(|span| span.place().clone());
        let places = at.iter().map(place).collect::<Result<_>>()?;
        Ok(MulticastSpan { places, elements: len, element: PhantomData })
    }

    /// Returns the number of elements at each member.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.elements
    }

    /// Returns the ranks to which a multicast writes.
    pub fn members(&self) -> impl ExactSizeIterator<Item = Rank> {
        self.places.iter().map(Place::rank)
    }

    /// Returns the elements in `range` of this span, at each member.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`] if `range` is not inside.
    pub fn slice(&self, range: Range<usize>) -> Result<Self> {
        let cut = |place: &Place| {
            let part = RemoteSpan::<T>::new(place.clone(), self.elements).slice(range.clone())?;
            Ok(part.place().clone())
        };
        let places = self.places.iter().map(cut).collect::<Result<_>>()?;
        Ok(MulticastSpan { places, elements: range.len(), element: PhantomData })
    }

    /// Posts a multicast, or returns the source. Never blocks.
    ///
    /// # Errors
    /// [`Refused`], with the source.
    pub fn try_put<S: PutSource<T>>(&self, fabric: &Fabric, from: S) -> Result<Handle<S>, Refused<S>> {
        fabric.begin(MulticastPut { to: self, from }, |put| put.from)
    }

    /// Puts the same elements to all members at once, including this rank if it is one; waits until
    /// the source is reusable, and returns it.
    ///
    /// For visibility, order and errors it is one put to each member: arrival at a member is known
    /// after a [`Fabric::flush`] of it, or after [`Fabric::flush_all`]. A source in registered
    /// memory is disjoint from this rank's own part of the destination, or is exactly that part;
    /// for any other overlap, the elements that arrive are unspecified.
    ///
    /// ```
    /// # use rdma_fabric::{Fabric, FabricError, MulticastSpan, ProgramResult, Rank, Region};
    /// /// Broadcasts from rank 0: by one multicast, or else by a put to each rank.
    /// async fn announce(fabric: &Fabric, region: &Region, values: [u64; 4]) -> ProgramResult<()> {
    ///     let all: Vec<_> = (0..fabric.ranks() as u32).map(|rank| region.at(Rank::new(rank), 0)).collect();
    ///     match MulticastSpan::<u64>::new(fabric, &all, 4) {
    ///         Ok(everywhere) => drop(everywhere.put(fabric, values).await?),
    ///         Err(FabricError::Unsupported { .. } | FabricError::Multicast(_)) => {
    ///             for to in all {
    ///                 fabric.put(&fabric.remote_span(to, 4)?, values).await?;
    ///             }
    ///         }
    ///         Err(error) => return Err(error.into()),
    ///     }
    ///     Ok(fabric.flush_all().await?)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Fabric::put`], of any member; the other members may have received the elements.
    pub fn put<'a, S: PutSource<T>>(
        &'a self,
        fabric: &'a Fabric,
        from: S,
    ) -> impl Future<Output = Result<S>> + use<'a, T, S> {
        OperationFuture::new(fabric, MulticastPut { to: self, from })
    }
}

impl Multicasts {
    /// Checks that one [multicast](MulticastSpan::put) can reach these ranks, so that a protocol can
    /// choose another algorithm in advance. The answer is always the same, on every rank.
    ///
    /// Hardware broadcasts reach ranks on separate nodes, and only such nodes as fill a box (a
    /// line, a rectangle, …) of the network. [`Multicasts::Software`] reaches any ranks.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] if there are no multicasts ([`crate::Caps::multicasts`]),
    /// [`FabricError::Multicast`] with the reason, and [`FabricError::NoSuchRank`].
    pub fn reach(fabric: &Fabric, members: &[Rank]) -> Result<()> {
        let multicasts = interface(fabric)?;
        members.iter().try_for_each(|rank| fabric.node(*rank).map(drop))?;
        multicasts.reaches(members)
    }
}

fn interface(fabric: &Fabric) -> Result<&dyn Multicast> {
    fabric.provider().multicast().ok_or(FabricError::Unsupported { feature: &"multicast" })
}

struct MulticastPut<'a, T: Pod, S> {
    to: &'a MulticastSpan<T>,
    from: S,
}

impl<T: Pod, S: PutSource<T>> DirectOp for MulticastPut<'_, T, S> {
    type Out = S;

    fn try_direct(self, _: &Fabric) -> Result<S, Self> {
        Err(self)
    }

    fn post(&mut self, fabric: &Fabric) -> Posted {
        let MulticastSpan { places, elements, .. } = self.to;
        if self.from.elements() != *elements {
            return Posted::failed(FabricError::length_mismatch(self.from.elements(), *elements));
        }
        match interface(fabric) {
            Ok(_) if places.is_empty() => Posted::Complete(0),
            Ok(multicasts) => multicasts.multicast(places, self.from.view()),
            Err(error) => Posted::failed(error),
        }
    }

    fn finish(self, _: u64) -> S {
        self.from
    }
}
