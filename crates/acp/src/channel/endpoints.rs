//! The two ends of a channel.

use super::{channels::Channels, endpoint::Endpoint, request::Request, results::Arrival};
use crate::{Acp, AcpError, Result};
use core::{fmt, future::Future, mem::ManuallyDrop};
use rdma_fabric::{Pod, Rank};

macro_rules! end {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $from_raw:ident) => {
        $(#[$doc])*
        ///
        /// Dropping the end frees it without waiting: queued requests are still executed while this
        /// rank awaits any of its channels, or a collective call. A rank should wait for
        /// [`free`](Self::free) before it ends. A rank that fails also drops its ends, so its peers
        /// may see it disconnect before they see it lost.
        pub struct $name {
            acp: Acp,
            number: u64,
            peer: Rank,
        }

        impl $name {
            /// Returns the rank at the other end.
            pub fn peer(&self) -> Rank {
                self.peer
            }

            /// Returns whether the two ends are connected, as far as this rank knows. No other call
            /// requires that.
            ///
            /// # Errors
            /// The error with which the channel failed; [`AcpError::NoSuchChannel`] after a reset.
            pub fn is_connected(&self) -> Result<bool> {
                self.acp.channels(|channels| {
                    channels.step()?;
                    let ended = channels.end(self.number)?;
                    ended.check()?;
                    Ok(ended.end.is_connected())
                })?
            }

            /// Closes this end of the channel, after all earlier requests. The other end has to be
            /// freed as well.
            ///
            /// # Errors
            /// Of the request: the error with which the channel failed; [`AcpError::Disconnected`]
            /// if the peer has left; [`AcpError::NoSuchChannel`] after a reset. The end is freed
            /// nevertheless.
            pub fn free(self) -> Request<()> {
                let end = ManuallyDrop::new(self);
                let request = Request::new(&end.acp, end.number, |channels| channels.free(end.number));
                ManuallyDrop::into_inner(end).into_raw();
                request
            }

            /// Returns the end as a number, never 0. It is not freed.
            pub fn into_raw(self) -> u64 {
                let mut end = self;
                // 0 is not the number of a channel, so dropping `end` frees nothing.
                core::mem::take(&mut end.number)
            }
        }

        impl Acp {
            #[doc = concat!("Restores an end from [`", stringify!($name), "::into_raw`].")]
            ///
            /// # Errors
            /// [`AcpError::NoSuchChannel`] if it was freed; [`AcpError::WrongEnd`] if it is an end
            /// of another kind.
            pub fn $from_raw(&self, number: u64) -> Result<$name> {
                let peer = self.channels(|channels| match &channels.end(number)?.end {
                    Endpoint::$kind(end) if !end.freed => Ok(end.local.peer),
                    Endpoint::$kind(_) => Err(AcpError::NoSuchChannel { number }),
                    _ => Err(AcpError::WrongEnd { number }),
                })??;
                Ok($name { acp: self.clone(), number, peer })
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if self.number != 0 {
                    drop(Request::<()>::new(&self.acp, self.number, |channels| channels.free(self.number)));
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} with {})"), self.number, self.peer)
            }
        }
    };
}

end! {
    /// The sending end of a channel.
    Sender, Outgoing, sender_from_raw
}
end! {
    /// The receiving end of a channel.
    Receiver, Incoming, receiver_from_raw
}

impl Sender {
    /// Sends a message, which may be empty, and waits until it has been sent to the receiver. The
    /// call itself copies and queues the message.
    ///
    /// # Errors
    /// [`AcpError::Disconnected`] if the peer has ended without receiving it; [`AcpError::Fabric`]
    /// with [`PeerLost`](rdma_fabric::FabricError::PeerLost).
    pub fn send<T: Pod>(&self, message: &[T]) -> impl Future<Output = Result<()>> {
        let request = self.post(bytemuck::cast_slice(message).to_vec());
        async move { request.await.map(drop) }
    }

    /// Queues a message. The request yields the buffer once the message has been sent to the
    /// receiver.
    ///
    /// # Errors
    /// Of the request: as [`Sender::send`].
    pub fn post(&self, message: Vec<u8>) -> Request<Vec<u8>> {
        Request::new(&self.acp, self.number, |channels| {
            channels.request(self.number, |end, request| match end {
                Endpoint::Outgoing(end) => {
                    end.send(request, message);
                    Ok(())
                }
                _ => Err(AcpError::WrongEnd { number: self.number }),
            })
        })
    }
}

impl Receiver {
    /// Receives the next message, and returns its size. Bytes that do not fit are dropped; the rest
    /// of the buffer, after the message, is unchanged.
    ///
    /// If the future is dropped, the receive is withdrawn if nothing of its message has arrived;
    /// otherwise the message is lost.
    ///
    /// # Errors
    /// [`AcpError::Disconnected`] if the sender has been freed, or its rank has ended;
    /// [`AcpError::Fabric`] with [`PeerLost`](rdma_fabric::FabricError::PeerLost).
    pub fn recv<T: Pod>(&self, into: &mut [T]) -> impl Future<Output = Result<Arrival>> {
        let into: &mut [u8] = bytemuck::cast_slice_mut(into);
        let request = self.post(vec![0; into.len()]);
        async move {
            let (buffer, arrival) = request.await?;
            into[..arrival.bytes].copy_from_slice(&buffer[..arrival.bytes]);
            Ok(arrival)
        }
    }

    /// Posts a receive for the next message that has none yet. The request yields the buffer, with
    /// its length unchanged, and the number of message bytes in it.
    ///
    /// # Errors
    /// Of the request: as [`Receiver::recv`].
    pub fn post(&self, buffer: Vec<u8>) -> Request<(Vec<u8>, Arrival)> {
        Request::new(&self.acp, self.number, |channels| {
            channels.request(self.number, |end, request| match end {
                Endpoint::Incoming(end) => end.receive(request, buffer),
                _ => Err(AcpError::WrongEnd { number: self.number }),
            })
        })
    }
}

impl Acp {
    /// Creates the sending end of a channel to a rank. Local: the k-th sender to that rank is
    /// connected with the k-th [`Acp::receiver`] that rank `to` creates for this rank, regardless
    /// of which is created first, and messages may be sent immediately.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`], [`AcpError::SelfChannel`]; [`AcpError::Fabric`] if memory runs out.
    pub fn sender(&self, to: Rank) -> Result<Sender> {
        let number = self.create(to, Channels::create_sender)?;
        Ok(Sender { acp: self.clone(), number, peer: to })
    }

    /// Creates the receiving end of a channel from a rank. Local.
    ///
    /// # Errors
    /// As [`Acp::sender`].
    pub fn receiver(&self, from: Rank) -> Result<Receiver> {
        let number = self.create(from, Channels::create_receiver)?;
        Ok(Receiver { acp: self.clone(), number, peer: from })
    }

    /// Creates an end for a peer.
    pub(in crate::channel) fn create(
        &self,
        peer: Rank,
        create: impl FnOnce(&mut Channels, [Rank; 2]) -> Result<u64>,
    ) -> Result<u64> {
        let place = self.try_with(|state| state.memory.place_of(peer))?;
        self.channels(|channels| {
            let number = create(channels, [peer, place])?;
            channels.step()?;
            Ok(number)
        })?
    }
}
