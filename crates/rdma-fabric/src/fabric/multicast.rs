//! Multicasts: one put to the same location on several ranks.

use super::{DirectOp, Fabric, operation_future::OperationFuture};
use crate::{
    FabricError, Handle, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, Result,
    error::MulticastError,
    provider::{Multicast, Place, Posted},
};
use bytemuck::Pod;
use core::{fmt, future::Future, marker::PhantomData, ops::Range};

/// The same elements of several ranks' memory: the destination of a [multicast](Fabric::multicast).
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
}

impl Fabric {
    fn multicasts(&self) -> Result<&dyn Multicast> {
        self.provider().multicast().ok_or(FabricError::Unsupported { feature: &"multicast" })
    }

    /// Checks that one [multicast](Fabric::multicast) can reach these ranks, so that a protocol can
    /// choose another algorithm in advance. The answer is always the same, on every rank.
    ///
    /// Hardware broadcasts reach ranks on separate nodes, and only such nodes as fill a box (a
    /// line, a rectangle, …) of the network. [`crate::Multicasts::Software`] reaches any ranks.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] if there are no multicasts ([`crate::Caps::multicasts`]),
    /// [`FabricError::Multicast`] with the reason, and [`FabricError::NoSuchRank`].
    pub fn multicast_for(&self, members: &[Rank]) -> Result<()> {
        let multicasts = self.multicasts()?;
        members.iter().try_for_each(|rank| self.node(*rank).map(drop))?;
        multicasts.reaches(members)
    }

    /// Resolves `len` elements at each of several addresses: the same offset in the same region
    /// (such as a [symmetric](Fabric::alloc_symmetric) one) of different ranks, the members.
    ///
    /// # Errors
    /// As [`Fabric::multicast_for`] and [`Fabric::locate`]; [`FabricError::Multicast`] if regions or
    /// offsets differ.
    pub fn multicast_span<T: Pod>(&self, at: &[RemoteAddr], len: usize) -> Result<MulticastSpan<T>> {
        let members: Vec<Rank> = at.iter().map(|addr| addr.rank).collect();
        self.multicast_for(&members)?;
        if let Some((first, others)) = at.split_first()
            && let Some(other) = others.iter().find(|other| RemoteAddr { rank: first.rank, ..**other } != *first)
        {
            return Err(MulticastError::Elsewhere { one: *first, other: *other }.into());
        }
        let place = |addr: &RemoteAddr| self.remote_span::<T>(*addr, len).map(|span| span.place().clone());
        let places = at.iter().map(place).collect::<Result<_>>()?;
        Ok(MulticastSpan { places, elements: len, element: PhantomData })
    }

    /// Posts a [multicast](Fabric::multicast), or returns the source. Never blocks.
    ///
    /// # Errors
    /// [`Refused`], with the source.
    pub fn try_multicast<T: Pod, S: PutSource<T>>(
        &self,
        to: &MulticastSpan<T>,
        from: S,
    ) -> Result<Handle<S>, Refused<S>> {
        self.begin(MulticastPut { to, from }, |put| put.from)
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
    /// # use rdma_fabric::{Deps, Fabric, FabricError, ProgramResult, Rank, Region};
    /// /// Broadcasts from rank 0: by one multicast, or else by a put to each rank.
    /// async fn announce(fabric: &Fabric, region: &Region, values: [u64; 4]) -> ProgramResult<()> {
    ///     let all: Vec<_> = (0..fabric.ranks() as u32).map(|rank| region.at(Rank::new(rank), 0)).collect();
    ///     match fabric.multicast_span::<u64>(&all, 4) {
    ///         Ok(everywhere) => drop(fabric.multicast(&everywhere, values).await?),
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
    pub fn multicast<'a, T: Pod, S: PutSource<T>>(
        &'a self,
        to: &'a MulticastSpan<T>,
        from: S,
    ) -> impl Future<Output = Result<S>> + use<'a, T, S> {
        OperationFuture::new(self, MulticastPut { to, from })
    }
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
        match fabric.multicasts() {
            Ok(_) if places.is_empty() => Posted::Complete(0),
            Ok(multicasts) => multicasts.multicast(places, self.from.view()),
            Err(error) => Posted::failed(error),
        }
    }

    fn finish(self, _: u64) -> S {
        self.from
    }
}
