//! The two sides of a segmented buffer.

use super::{Destination, Source};
use crate::{
    Acp, AcpError, GlobalAddress, Result,
    channel::{
        channels::Channels,
        end::{End, Ended},
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

            /// Looks at the counters after making what progress can be made. What this side has
            /// failed of is an error only if `needed`.
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

            /// Waits until a look finds something.
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

            /// Connects with the other side, and waits until that has been asked for there, too.
            ///
            /// # Errors
            /// [`AcpError::SegmentsDiffer`]; [`AcpError::Disconnected`] if the peer has left;
            /// [`AcpError::Fabric`] with [`PeerLost`](rdma_fabric::FabricError::PeerLost).
            pub async fn connect(&mut self) -> Result<()> {
                self.look(true, |side| Ok(side.connect()))?;
                Box::pin(self.until(|side| side.is_connected().then_some(()))).await
            }

            /// Returns whether it is connected; after either side has disconnected it is not.
            ///
            /// # Errors
            /// What this side has failed of.
            pub fn is_connected(&self) -> Result<bool> {
                self.look(true, |side| Ok(side.is_connected()))
            }

            /// Returns how many segments were given back, as far as this side knows.
            ///
            /// # Errors
            /// [`AcpError::NoSuchChannel`] after a reset.
            pub fn head(&self) -> Result<u64> {
                self.look(false, |side| Ok(side.head))
            }

            /// Returns how many segments were handed over, as far as this side knows.
            ///
            /// # Errors
            /// [`AcpError::NoSuchChannel`] after a reset.
            pub fn tail(&self) -> Result<u64> {
                self.look(false, |side| Ok(side.tail))
            }

            /// Disconnects, and waits until both sides have. What was handed over before is at the
            /// destination then. A side that never asked to connect is over at once.
            ///
            /// # Errors
            /// As [`connect`](Self::connect).
            pub async fn disconnect(&mut self) -> Result<()> {
                self.look(true, |side| Ok(side.disconnect()))?;
                Box::pin(self.until(|side| side.is_over().then_some(()))).await
            }

            /// Frees it. What it failed of no longer matters.
            ///
            /// # Errors
            /// [`AcpError::StillConnected`], with the side unchanged, unless it has disconnected or
            /// never asked to connect.
            pub fn free(self) -> Result<(), (AcpError, Self)> {
                let over = self.acp.channels(|channels| {
                    let ended = channels.end(self.number)?;
                    if ended.check().is_err() {
                        return Ok(true);
                    }
                    $kind::of(ended, self.number).map(|side| side.is_over())
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
                    End::$kind(side) => Ok(side),
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
    /// The side of a segmented buffer that fills segments: [`SegmentSource::next`] says which,
    /// [`SegmentSource::ack`] hands it over.
    SegmentSource, Source
}
side! {
    /// The side of a segmented buffer that takes segments: [`SegmentDestination::next`] says which,
    /// [`SegmentDestination::ready`] gives it back.
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
    /// What this side has failed of.
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

    /// Hands the next segment over: puts it, and adds it to the tail. What can't be done at once is
    /// done by later calls to this rank's channels and segmented buffers. The segment must not be
    /// changed before it is [sent](SegmentSource::sent).
    ///
    /// # Errors
    /// [`AcpError::NoSegment`] if none is free; [`AcpError::NotConnected`]; what this side has
    /// failed of. Nothing has changed then.
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

    /// Returns how many segments have been sent: they are visible at the destination.
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

    /// Returns whether there is a segment to take.
    ///
    /// # Errors
    /// What this side has failed of, if there is none.
    pub fn is_acked(&self) -> Result<bool> {
        let acked = self.look(false, |side| Ok(side.head < side.tail))?;
        if acked { Ok(true) } else { self.look(true, |side| Ok(side.head < side.tail)) }
    }

    /// Waits until there is a segment to take, and returns its address.
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
    /// [`AcpError::NoSegment`] if there is none; [`AcpError::NotConnected`]; what this side has
    /// failed of. Nothing has changed then.
    pub fn ready(&self) -> Result<()> {
        self.look(true, Destination::ready)
    }
}
