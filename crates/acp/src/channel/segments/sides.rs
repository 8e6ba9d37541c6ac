//! The two sides of a segmented buffer.

use super::{Destination, Source};
use crate::{
    Acp, AcpError, GlobalAddress, Result,
    channel::{
        channels::Channels,
        endpoint::{Ended, Endpoint},
        request::{Request, Until},
    },
};
use core::fmt;
use rdma_fabric::Rank;

macro_rules! side {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        ///
        /// Dropping it disconnects it without waiting.
        pub struct $name {
            pub(super) acp: Acp,
            pub(super) number: u64,
            pub(super) peer: Rank,
            /// The memory, and the bytes of one segment.
            pub(super) buffer: GlobalAddress,
            pub(super) segment_bytes: usize,
        }

        impl $name {
            /// Returns the rank at the other side.
            pub fn peer(&self) -> Rank {
                self.peer
            }

            /// Makes progress without waiting, and then checks the counters. Reports the error with
            /// which this side has failed only if `needed`.
            fn look<Out>(&self, needed: bool, look: impl FnOnce(&mut $kind) -> Result<Out>) -> Result<Out> {
                self.acp.channels(|channels| {
                    channels.step()?;
                    let ended = channels.end(self.number)?;
                    if needed {
                        ended.check()?;
                    }
                    let out = $kind::of(ended, self.number).and_then(look);
                    channels.step()?;
                    out
                })?
            }

            /// Waits until a check yields a result.
            async fn until<Out>(&self, mut look: impl FnMut(&mut $kind) -> Option<Out>) -> Result<Out> {
                let number = self.number;
                Until::new(&self.acp, move |channels: &mut Channels| {
                    let found = channels.end(number).and_then(|ended| match look($kind::of(ended, number)?) {
                        Some(found) => Ok(Some(found)),
                        None => ended.check().map(|()| None),
                    });
                    found.transpose()
                })
                .await
            }

            /// Requests the connection, as [`connect`](Self::connect) does, without waiting.
            ///
            /// # Errors
            /// The error with which this side has failed; [`AcpError::NoSuchChannel`] after a reset.
            pub fn start_connect(&mut self) -> Result<()> {
                self.look(true, |side| Ok(side.connect()))
            }

            /// Connects with the other side, and waits until its program has also requested the
            /// connection.
            ///
            /// # Errors
            /// [`AcpError::SegmentsDiffer`]; [`AcpError::Disconnected`] if the peer has left;
            /// [`AcpError::NotConnected`] if this side has disconnected before;
            /// [`AcpError::Fabric`] with [`PeerLost`](rdma_fabric::FabricError::PeerLost).
            pub async fn connect(&mut self) -> Result<()> {
                self.start_connect()?;
                let peer = self.peer;
                Box::pin(self.until(move |side| match side.was_connected() {
                    true => Some(Ok(())),
                    false => side.is_closing().then_some(Err(AcpError::NotConnected { peer })),
                }))
                .await?
            }

            /// Returns whether it is connected; false after either side has disconnected.
            ///
            /// # Errors
            /// The error with which this side has failed.
            pub fn is_connected(&self) -> Result<bool> {
                self.look(true, |side| Ok(side.is_connected()))
            }

            /// Returns whether it is connected, or was connected before either side disconnected.
            ///
            /// # Errors
            /// As [`is_connected`](Self::is_connected).
            pub fn was_connected(&self) -> Result<bool> {
                self.look(true, |side| Ok(side.was_connected()))
            }

            /// Returns the number of segments given back, as far as this side knows.
            ///
            /// # Errors
            /// [`AcpError::NoSuchChannel`] after a reset.
            pub fn head(&self) -> Result<u64> {
                self.look(false, |side| Ok(side.head))
            }

            /// Returns the number of segments handed over, as far as this side knows.
            ///
            /// # Errors
            /// [`AcpError::NoSuchChannel`] after a reset.
            pub fn tail(&self) -> Result<u64> {
                self.look(false, |side| Ok(side.tail))
            }

            /// Disconnects, as [`disconnect`](Self::disconnect) does, without waiting for the other
            /// side.
            ///
            /// # Errors
            /// As [`start_connect`](Self::start_connect).
            pub fn start_disconnect(&mut self) -> Result<()> {
                self.look(true, |side| Ok(side.disconnect()))
            }

            /// Disconnects, and waits until both sides have done so. Segments handed over earlier
            /// have then arrived at the destination. On a side that never requested a connection,
            /// it completes immediately.
            ///
            /// # Errors
            /// As [`connect`](Self::connect).
            pub async fn disconnect(&mut self) -> Result<()> {
                self.start_disconnect()?;
                Box::pin(self.until(|side| side.is_complete().then_some(()))).await
            }

            /// Frees it, whether or not it has failed.
            ///
            /// # Errors
            /// [`AcpError::StillConnected`], with the side unchanged, unless it has disconnected or
            /// never requested a connection.
            pub fn free(self) -> Result<(), (AcpError, Self)> {
                let over = self.acp.channels(|channels| {
                    let ended = channels.end(self.number)?;
                    if ended.check().is_err() {
                        return Ok(true);
                    }
                    $kind::of(ended, self.number).map(|side| side.is_complete())
                });
                match over.and_then(|over| over) {
                    Ok(true) | Err(AcpError::NoSuchChannel { .. }) => Ok(()),
                    Ok(false) => Err((AcpError::StillConnected { peer: self.peer }, self)),
                    Err(error) => Err((error, self)),
                }
            }

            fn segment(&self, counter: u64) -> Result<GlobalAddress> {
                let segments = self.look(false, |side| Ok(side.buffer.segments))?;
                self.buffer.offset_by(counter % segments * self.segment_bytes as u64)
            }
        }

        impl $kind {
            fn of(ended: &mut Ended, number: u64) -> Result<&mut Self> {
                match &mut ended.end {
                    Endpoint::$kind(side) => Ok(side),
                    _ => Err(AcpError::WrongEnd { number }),
                }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                drop(Request::<()>::new(&self.acp, self.number, |channels| channels.free(self.number)));
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} with {})"), self.number, self.peer)
            }
        }
    };
}

side! {
    /// The side of a segmented buffer that fills segments: [`SegmentSource::next`] returns the next
    /// one, [`SegmentSource::ack`] hands it over.
    SegmentSource, Source
}
side! {
    /// The side of a segmented buffer that takes segments: [`SegmentDestination::next`] returns the
    /// next one, [`SegmentDestination::ready`] gives it back.
    SegmentDestination, Destination
}

impl SegmentSource {
    /// Returns the address of the segment to fill next, in this rank's buffer.
    ///
    /// # Errors
    /// [`AcpError::NoSuchChannel`] after a reset.
    pub fn next(&self) -> Result<GlobalAddress> {
        self.segment(self.tail()?)
    }

    /// Returns whether a segment is free.
    ///
    /// # Errors
    /// The error with which this side has failed.
    pub fn is_ready(&self) -> Result<bool> {
        self.look(true, |side| Ok(side.is_connected() && side.tail - side.head < side.buffer.segments))
    }

    /// Waits until a segment is free, and returns its address.
    ///
    /// # Errors
    /// [`AcpError::NotConnected`]; as [`SegmentSource::connect`].
    pub async fn wait_ready(&self) -> Result<GlobalAddress> {
        let peer = self.peer;
        let tail = self.until(move |side| match side.is_connected() {
            true => (side.tail - side.head < side.buffer.segments).then_some(Ok(side.tail)),
            false => Some(Err(AcpError::NotConnected { peer })),
        });
        self.segment(Box::pin(tail).await??)
    }

    /// Hands the next segment over: puts it, and adds it to the tail. What cannot be done
    /// immediately is done by later calls to this rank's channels and segmented buffers. The
    /// segment must not be changed before it is [sent](SegmentSource::sent).
    ///
    /// # Errors
    /// [`AcpError::NoSegment`] if none is free; [`AcpError::NotConnected`]; the error with which
    /// this side has failed. Nothing has changed then.
    pub fn ack(&self) -> Result<()> {
        self.look(true, Source::ack)
    }

    /// Waits until all segments that were handed over are visible at the destination.
    ///
    /// # Errors
    /// As [`SegmentSource::connect`].
    pub async fn wait_sent(&self) -> Result<()> {
        Box::pin(self.until(|side| (side.sent == side.tail).then_some(()))).await
    }

    /// Returns the number of segments sent, which are visible at the destination.
    ///
    /// # Errors
    /// [`AcpError::NoSuchChannel`] after a reset.
    pub fn sent(&self) -> Result<u64> {
        self.look(false, |side| Ok(side.sent))
    }
}

impl SegmentDestination {
    /// Returns the address of the segment to take next, in this rank's buffer.
    ///
    /// # Errors
    /// [`AcpError::NoSuchChannel`] after a reset.
    pub fn next(&self) -> Result<GlobalAddress> {
        self.segment(self.head()?)
    }

    /// Returns whether a segment is available.
    ///
    /// # Errors
    /// The error with which this side has failed, if no segment is available.
    pub fn is_acked(&self) -> Result<bool> {
        let acked = self.look(false, |side| Ok(side.head < side.tail))?;
        if acked { Ok(true) } else { self.look(true, |side| Ok(side.head < side.tail)) }
    }

    /// Waits until a segment is available, and returns its address.
    ///
    /// # Errors
    /// [`AcpError::NotConnected`] if there is none, and either side has disconnected; as
    /// [`SegmentDestination::connect`].
    pub async fn wait_acked(&self) -> Result<GlobalAddress> {
        let peer = self.peer;
        let head = self.until(move |side| match side.head < side.tail {
            true => Some(Ok(side.head)),
            false => (!side.is_connected()).then_some(Err(AcpError::NotConnected { peer })),
        });
        self.segment(Box::pin(head).await??)
    }

    /// Gives the oldest segment back.
    ///
    /// # Errors
    /// [`AcpError::NoSegment`] if there is none; [`AcpError::NotConnected`]; the error with which
    /// this side has failed. Nothing has changed then.
    pub fn ready(&self) -> Result<()> {
        self.look(true, Destination::ready)
    }
}
