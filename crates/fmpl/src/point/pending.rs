//! Sends that continue while their rank waits for something else.
//!
//! A send has two stages. While it is *posting*, its message, or the offer of it, has not been
//! posted yet; the call that sends waits for that stage, which depends on no other member. From
//! then on the receiver obtains the message without this member, and only the outcome of the
//! operations is pending.

use super::{
    deliver::{Body, FlagPlace, Message, post, refuse},
    matching::Receive,
};
use crate::{
    FmplError, Result,
    area::{Channel, Ends, Kind, PostedOffer, Record},
    spool::{Announced, Room},
    state::{ChannelId, State},
};
use core::{
    fmt,
    task::{Context, Poll},
};
use rdma_fabric::{Fabric, Handle, LocalSpan, RemoteWord, provider::Boxed};

/// The word on which a receiver from any source waits, and a value that the word has never had
/// before.
pub(crate) struct Doorbell {
    pub(crate) word: RemoteWord<u64>,
    pub(crate) value: u64,
}

/// A message in this member's memory that is to be announced.
pub(crate) struct Offer {
    pub(crate) n: u64,
    pub(crate) record: Record,
    pub(crate) announced: Announced,
    pub(crate) doorbell: Option<Doorbell>,
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offer({})", self.n)
    }
}

/// A send that is not complete.
pub(crate) struct Pending {
    pub(crate) id: ChannelId,
    /// Whether the message is in the spool, so that its send is complete.
    spooled: bool,
    /// Whether it is a message of its channel; one to a receive of any index is not.
    in_channel: bool,
    /// The message's node, if it is in its channel's queue and not in the spool.
    node: Option<Room>,
    stage: Stage,
}

/// The remainder of a send after everything is posted, if any.
type Rest = Option<Boxed<'static, Result<()>>>;

enum Stage {
    Posting(Boxed<'static, Result<Rest>>),
    Posted(Boxed<'static, Result<()>>),
}

impl Pending {
    /// Sends a message from registered memory, message `n` of its channel, to this receive.
    pub(crate) fn direct(
        fabric: Fabric,
        ends: Ends,
        id: ChannelId,
        n: u64,
        span: LocalSpan<u8>,
        receive: Receive,
    ) -> Self {
        let (header, flag, n) = match receive {
            Receive::OfIndex(header) => (header, FlagPlace::Channel(id.channel), n),
            Receive::OfAny(any) => (any.record, FlagPlace::Slot { index: id.channel }, any.n),
        };
        let posting = Box::pin(async move {
            let message = Message { fabric: &fabric, ends: &ends, flag, n };
            if header.bytes < span.len() || !matches!(header.kind, Kind::Posted | Kind::Window) {
                refuse(message, span.len()).await?;
                return Err(too_long(&span, header.bytes));
            }
            let delivery = post(message, header, None, Body::Span(&span)).await?;
            let rest: Boxed<'static, Result<()>> = Box::pin(async move { delivery.left(&fabric).await.map(drop) });
            Ok(Some(rest))
        });
        let in_channel = matches!(receive, Receive::OfIndex(_));
        Pending { id, spooled: false, in_channel, node: None, stage: Stage::Posting(posting) }
    }

    /// Offers a message in registered memory, and waits until it has been fetched.
    pub(crate) fn offered(
        fabric: Fabric,
        ends: Ends,
        id: ChannelId,
        offer: Offer,
        span: LocalSpan<u8>,
        node: Option<Room>,
    ) -> Self {
        let posting = Box::pin(async move {
            let n = offer.n;
            let rest = announce(&fabric, &ends, id, offer).await?;
            let rest: Boxed<'static, Result<()>> = Box::pin(async move {
                if let Some(rest) = rest {
                    rest.await?;
                }
                let channel = Channel::new(&fabric, &ends, id.channel);
                channel.until_taken(n + 1).await?;
                if channel.taken()?.refused == Some(n) { Err(too_long(&span, 0)) } else { Ok(()) }
            });
            Ok(Some(rest))
        });
        Pending { id, spooled: false, in_channel: true, node, stage: Stage::Posting(posting) }
    }

    /// Announces a message that is in the spool.
    pub(crate) fn of_spool(fabric: Fabric, ends: Ends, id: ChannelId, offer: Offer) -> Self {
        let posting = Box::pin(async move { announce(&fabric, &ends, id, offer).await });
        Pending { id, spooled: true, in_channel: true, node: None, stage: Stage::Posting(posting) }
    }

    /// Returns whether the receiver still depends on this member.
    pub(crate) fn is_posting(&self) -> bool {
        matches!(self.stage, Stage::Posting(_))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            match &mut self.stage {
                Stage::Posted(rest) => return rest.as_mut().poll(cx),
                Stage::Posting(posting) => match core::task::ready!(posting.as_mut().poll(cx)) {
                    Ok(Some(rest)) => self.stage = Stage::Posted(rest),
                    other => return Poll::Ready(other.map(drop)),
                },
            }
        }
    }

    /// Records the outcome.
    pub(crate) fn ended(self, state: &mut State, outcome: Result<()>) {
        if self.spooled {
            if let Err(error) = outcome {
                state.fail(self.id, error);
            }
            return;
        }
        state.free_node(self.node);
        let peer = state.peers[self.id.peer].member;
        let outcome = outcome.map_err(|error| match error {
            FmplError::TooLong { bytes, room, .. } => {
                FmplError::TooLong { from: state.me, to: peer, index: state.index_of(self.id.channel), bytes, room }
            }
            other => other,
        });
        let channel = state.channel(self.id);
        if self.in_channel {
            channel.count_direct();
        }
        match channel.isend.as_mut() {
            Some(result) => *result = Some(outcome.map_err(Box::new)),
            None => channel.sending = false,
        }
    }
}

/// An error whose other fields [`Pending::ended`] fills in.
fn too_long(span: &LocalSpan<u8>, room: usize) -> FmplError {
    FmplError::TooLong { from: 0, to: 0, index: 0, bytes: span.len(), room }
}

/// Posts the words through which the receiver finds a message in this member's memory.
async fn announce(fabric: &Fabric, ends: &Ends, id: ChannelId, offer: Offer) -> Result<Rest> {
    let Offer { n, record, announced, doorbell } = offer;
    let channel = Channel::new(fabric, ends, id.channel);
    let in_order = fabric.caps().puts_in_order;
    let mut posted = Posted::default();
    match announced {
        Announced::AtReceiver => {
            posted.offer = Some(channel.post_offer(n, record).await?).filter(|put| !put.is_complete())
        }
        Announced::InQueue { queued, start } => {
            if let Some(start) = start {
                posted.start = channel.post_queue_start(start).await?;
            }
            if !in_order {
                // The previous number must not overtake this one, nor may this one overtake the
                // start address.
                fabric.flush(channel.peer()).await?;
            }
            posted.queued = channel.post_queued(queued).await?;
        }
    }
    if let Some(Doorbell { word, value }) = doorbell {
        if !in_order {
            // A check after the doorbell must see the offer.
            fabric.flush(channel.peer()).await?;
        }
        fabric.put_word(&word, value).await?;
    }
    Ok(posted.rest())
}

/// The puts of an announcement that are not complete.
#[derive(Default)]
struct Posted {
    offer: Option<PostedOffer>,
    start: Option<Handle<[u64; 2]>>,
    queued: Option<Handle<[u64; 1]>>,
}

impl Posted {
    fn rest(self) -> Rest {
        let Posted { offer, start, queued } = self;
        if offer.is_none() && start.is_none() && queued.is_none() {
            return None;
        }
        Some(Box::pin(async move {
            if let Some(offer) = offer {
                offer.left().await?;
            }
            if let Some(start) = start {
                start.await?;
            }
            if let Some(queued) = queued {
                queued.await?;
            }
            Ok(())
        }))
    }
}
