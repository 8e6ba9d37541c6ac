//! Fetching of messages that wait in their sender's memory.

use super::Sink;
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Record, Taken},
    state::ChannelId,
};
use rdma_fabric::{LocalSpan, op::Get};

impl Communicator {
    /// Fetches a message that waits in its sender's memory.
    pub(super) async fn fetch(
        &self,
        id: ChannelId,
        channel: &Channel<'_>,
        n: u64,
        offer: Record,
        into: &LocalSpan<u8>,
    ) -> Result<bool> {
        let fits = offer.bytes <= into.len();
        if fits && let Some(body) = offer.body() {
            self.fabric.write(&*into.part(0..offer.bytes)?, &body[..offer.bytes])?;
        } else if fits && offer.bytes > 0 {
            let from = self.fabric.remote_span::<u8>(offer.at(channel.peer()), offer.bytes)?;
            let to = into.slice(0..offer.bytes)?;
            let get = self.fabric.post(Get { from: &from, to }).await?;
            self.progressing(get).await?;
        }
        self.take_offer(id, channel, n, fits).await?;
        Ok(fits)
    }

    /// Reports that message `n`, which waited in its sender's memory, was received (if it `fits`)
    /// or refused.
    pub(super) async fn take_offer(&self, id: ChannelId, channel: &Channel<'_>, n: u64, fits: bool) -> Result<()> {
        let refused = self.with(|state| {
            state.note_offers(&self.fabric, id)?;
            let known = state.channel(id);
            known.reading.take(n);
            known.offers.add(n);
            let refused = &mut known.refused;
            if !fits {
                *refused = Some(n);
            }
            Ok::<_, FmplError>(*refused)
        })??;
        channel.put_taken(Taken { messages: n + 1, refused }).await?;
        if !self.puts_in_order {
            // The next such word must not be overtaken by this one.
            self.fabric.flush(channel.peer()).await?;
        }
        Ok(())
    }

    /// Gets a message that waits in its sender's memory.
    pub(super) async fn fetch_into(&self, channel: &Channel<'_>, offer: Record, sink: &mut dyn Sink) -> Result<()> {
        if offer.bytes == 0 {
            return Ok(());
        }
        let body = offer.body();
        let from = match body {
            Some(_) => None,
            None => Some(self.fabric.remote_span::<u8>(offer.at(channel.peer()), offer.bytes)?),
        };
        let mut at = 0;
        while at < offer.bytes {
            let chunk = sink.chunk(at, offer.bytes - at);
            let bytes = chunk.len();
            match (&body, &from) {
                (Some(body), _) => chunk.copy_from_slice(&body[at..at + bytes]),
                (None, Some(from)) => self.fabric.get_slice(&*from.part(at..at + bytes)?, chunk).await?,
                (None, None) => unreachable!("a message in its offer or at an address"),
            }
            sink.filled(at, bytes);
            at += bytes;
        }
        Ok(())
    }
}
