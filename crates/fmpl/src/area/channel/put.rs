//! What this member writes into its area at the peer.

use super::{Channel, HEADER, QUEUE, QUEUED, Queued, TAKEN, Taken, flag};
use crate::{
    Result,
    area::{Layout, Record},
};
use rdma_fabric::{Handle, RemoteAddr};

/// A posted offer.
#[derive(Debug)]
pub(crate) struct PostedOffer {
    rest: Option<Handle<[u64; 3]>>,
    first: Option<Handle<[u64; 1]>>,
}

impl PostedOffer {
    /// Returns whether its puts completed immediately when they were posted.
    pub(crate) fn is_complete(&self) -> bool {
        self.rest.is_none() && self.first.is_none()
    }

    /// Waits until its puts are complete.
    pub(crate) async fn left(self) -> Result<()> {
        if let Some(rest) = self.rest {
            rest.await?;
        }
        if let Some(first) = self.first {
            first.await?;
        }
        Ok(())
    }
}

impl Channel<'_> {
    /// Hints that this member will soon put a header or a flag.
    #[inline(always)]
    pub(crate) fn expect_put(&self) {
        self.fabric.direct().expect_put_at(&self.ends.there, self.at);
    }

    /// Puts the header of a receive for the peer's message `n`; returns whether the put completed
    /// immediately.
    #[inline(always)]
    pub(crate) fn put_header_now(&self, n: u64, record: Record) -> bool {
        self.fabric.direct().put_words_at(&self.ends.there, self.at + HEADER.first, record.to_words(n)).is_some()
    }

    /// Puts the header of a receive for the peer's message `n`, and charges for it.
    pub(crate) async fn put_header(&self, n: u64, record: Record) -> Result<()> {
        self.put_charged(HEADER.first, record.to_words(n)).await
    }

    /// Offers message `n`, or reports why a message of a collective will not arrive.
    pub(crate) async fn put_offer(&self, n: u64, record: Record) -> Result<()> {
        self.post_offer(n, record).await?.left().await
    }

    /// Posts the offer of message `n`.
    pub(crate) async fn post_offer(&self, n: u64, record: Record) -> Result<PostedOffer> {
        let [first, rest @ ..] = record.to_words(n);
        let rest = self.post_unprepared(flag(n).rest, rest).await?;
        Ok(PostedOffer { rest, first: self.post_unprepared(flag(n).first, [first]).await? })
    }

    /// Posts the address at which this member's queue begins.
    pub(crate) async fn post_queue_start(&self, at: RemoteAddr) -> Result<Option<Handle<[u64; 2]>>> {
        self.post_unprepared(QUEUE, [at.region.to_bits(), at.offset]).await
    }

    /// Posts the number of messages that this member has queued. If puts are not ordered, the
    /// previous number must be visible already.
    pub(crate) async fn post_queued(&self, queued: Queued) -> Result<Option<Handle<[u64; 1]>>> {
        self.post_unprepared(QUEUED, [queued.to_word()]).await
    }

    /// Reports that message `n` has arrived, or why it will not; returns whether the put completed
    /// immediately.
    #[inline(always)]
    pub(crate) fn put_flag_now(&self, n: u64, word: u64) -> bool {
        self.fabric.direct().put_word_at(&self.ends.there, self.at + flag(n).first, word).is_some()
    }

    /// Offers message `n`; returns whether the puts completed immediately. If not, the offer may be
    /// posted again.
    #[inline(always)]
    pub(crate) fn put_offer_now(&self, n: u64, record: Record) -> bool {
        let [first, rest @ ..] = record.to_words(n);
        let put = self.fabric.direct().put_words_at(&self.ends.there, self.at + flag(n).rest, rest);
        put.is_some() && self.put_flag_now(n, first)
    }

    /// Reports this member's progress as [`Channel::put_taken`] does; returns whether the put
    /// completed immediately.
    #[inline(always)]
    pub(crate) fn put_taken_now(&self, taken: Taken) -> bool {
        self.fabric.direct().put_word_at(&self.ends.there, self.at + TAKEN, taken.to_word()).is_some()
    }

    /// Reports that this member has left the collectives because `member` did.
    pub(crate) async fn put_left(&self, member: usize) -> Result<()> {
        let word = self.ends.there.word_at::<u64>(Layout::LEFT)?;
        Ok(self.fabric.put_word(&word, member as u64 + 1).await?)
    }

    /// Reports this member's progress in taking the messages offered to it.
    pub(crate) async fn put_taken(&self, taken: Taken) -> Result<()> {
        self.put(TAKEN, [taken.to_word()]).await
    }

    /// Publishes the number of messages of any index for which this member waits.
    pub(crate) async fn put_wanted(&self, wanted: u64) -> Result<()> {
        let word = self.ends.there.word_at::<u64>(Layout::WANTED)?;
        Ok(self.fabric.put_word(&word, wanted).await?)
    }
}
