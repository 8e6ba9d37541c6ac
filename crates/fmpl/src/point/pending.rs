//! Sends that go on while their rank waits for something else.

use super::deliver::{Body, Message, deliver};
use crate::{
    FmplError, Result,
    area::{Ends, Kind, Lane, OFFERS, Record},
    state::{LaneId, State},
};
use core::fmt;
use rdma_fabric::{Fabric, LocalSpan, RemoteWord, provider::Boxed};

/// The word of a receiver that does not name its senders, and a value that it never had before.
pub(crate) struct Bell {
    pub(crate) word: RemoteWord<u64>,
    pub(crate) value: u64,
}

/// A message in the spool that is to be offered.
pub(crate) struct Offer {
    pub(crate) n: u64,
    pub(crate) record: Record,
    pub(crate) bell: Option<Bell>,
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offer({})", self.n)
    }
}

impl State {
    /// Offers a message as soon as that may be.
    pub(crate) fn offer(&mut self, fabric: &Fabric, id: LaneId, offer: Offer) {
        let offered = self.pending.iter().filter(|pending| pending.id == id && pending.spooled).count();
        let peer = &mut self.peers[id.peer];
        let lane = &mut peer.lanes[id.lane];
        if offered < OFFERS as usize {
            self.pending.push(Pending::offer(fabric.clone(), peer.ends.clone(), id, offer, lane.taken));
        } else {
            lane.later.push_back(offer);
        }
    }
}

/// A send that is not over.
pub(crate) struct Pending {
    pub(crate) id: LaneId,
    /// Whether the message is in the spool, so that its send is over.
    spooled: bool,
    pub(crate) task: Boxed<'static, Result<()>>,
}

impl Pending {
    /// Sends a message out of registered memory.
    pub(crate) fn send(fabric: Fabric, ends: Ends, id: LaneId, n: u64, span: LocalSpan<u8>, taken: u64) -> Self {
        let task = Box::pin(async move {
            let lane = Lane::new(&fabric, &ends, id.lane);
            match lane.until_header_or_wanted(n, 0).await? {
                Some(header) if header.bytes < span.len() => {
                    lane.put_flag(n, Record::first_word(Kind::TooLong, span.len(), n)).await?;
                    Err(too_long(&span, header.bytes))
                }
                Some(header) => {
                    let message = Message { fabric: &fabric, ends: &ends, lane: id.lane, n };
                    deliver(message, header, None, Body::Span(&span)).await?;
                    Ok(())
                }
                None => {
                    offer_record(&lane, n, taken, Record::of_span(Kind::Offered, &span)).await?;
                    lane.until_taken(n + 1).await?;
                    if lane.taken()?.refused == Some(n) { Err(too_long(&span, 0)) } else { Ok(()) }
                }
            }
        });
        Pending { id, spooled: false, task }
    }

    /// Offers a message that is in the spool.
    fn offer(fabric: Fabric, ends: Ends, id: LaneId, offer: Offer, taken: u64) -> Self {
        let task = Box::pin(async move {
            let Offer { n, record, bell } = offer;
            let lane = Lane::new(&fabric, &ends, id.lane);
            offer_record(&lane, n, taken, record).await?;
            if let Some(Bell { word, value }) = bell {
                if !fabric.caps().puts_in_order {
                    // Who looks because of the bell must see the offer.
                    fabric.flush(lane.peer()).await?;
                }
                fabric.put_word(&word, value).await?;
            }
            Ok(())
        });
        Pending { id, spooled: true, task }
    }

    /// Notes what became of it.
    pub(crate) fn ended(self, state: &mut State, fabric: &Fabric, outcome: Result<()>) {
        if self.spooled {
            match outcome {
                Ok(()) => {
                    if let Some(offer) = state.lane(self.id).later.pop_front() {
                        state.offer(fabric, self.id, offer);
                    }
                }
                Err(error) => state.fail(self.id, error),
            }
            return;
        }
        let peer = state.peers[self.id.peer].member;
        let outcome = outcome.map_err(|error| match error {
            FmplError::TooLong { bytes, room, .. } => {
                FmplError::TooLong { from: state.me, to: peer, index: state.index_of(self.id.lane), bytes, room }
            }
            other => other,
        });
        let lane = state.lane(self.id);
        lane.count_direct();
        match lane.isend.as_mut() {
            Some(result) => *result = Some(outcome),
            None => lane.sending = false,
        }
    }
}

/// An error that [`Pending::ended`] completes with what it knows.
fn too_long(span: &LocalSpan<u8>, room: usize) -> FmplError {
    FmplError::TooLong { from: 0, to: 0, index: 0, bytes: span.len(), room }
}

/// Offers message `n`, when the peer has taken the message that was offered in the same place.
async fn offer_record(lane: &Lane<'_>, n: u64, taken: u64, record: Record) -> Result<()> {
    if taken + OFFERS <= n {
        lane.until_taken(n + 1 - OFFERS).await?;
    }
    lane.put_offer(n, record).await
}
