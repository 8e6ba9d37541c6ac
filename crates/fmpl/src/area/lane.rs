//! One index between this member and a peer, in both directions.

use super::{Layout, Record, layout::OFFERS, record::is_about, staged::Staged};
use crate::Result;
use core::future::Future;
use rdma_fabric::{
    Deps, Fabric, Handle, LocalSpan, LocalWord, Rank, RegionKey, RemoteAddr, RemoteSpan,
    join::{Either, race},
};
use std::sync::Arc;

/// The two areas through which two members exchange messages.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// The peer's area at this member; only the peer writes to it.
    pub(crate) here: LocalSpan<u64>,
    /// This member's area at the peer; only this member writes to it.
    pub(crate) there: RemoteSpan<u64>,
    /// The descriptors for records that cannot be put directly.
    pub(super) staged: Arc<Staged>,
}

impl Ends {
    pub(crate) fn new(here: LocalSpan<u64>, there: RemoteSpan<u64>) -> Self {
        Ends { here, there, staged: Arc::default() }
    }
}

/// A lane in two areas. Methods about messages take the number of a message, counted from 0 for
/// this lane and direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) ends: &'a Ends,
    /// The offset of the lane in both areas.
    pub(super) at: usize,
    /// The dependencies of its waits.
    deps: Deps<'a>,
}

/// The progress of a receiver in taking the messages offered to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The number of messages taken, including earlier ones that were put directly.
    pub(crate) messages: u64,
    /// The last of them that was too long for its receive, unless that is too far back to be
    /// recorded.
    pub(crate) refused: Option<u64>,
}

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

const AGO: u32 = 20;

impl Taken {
    fn to_word(self) -> u64 {
        let ago = self.refused.map_or(0, |refused| self.messages - refused);
        self.messages << AGO | if ago < 1 << AGO { ago } else { 0 }
    }

    fn of_word(word: u64) -> Self {
        let (messages, ago) = (word >> AGO, word & ((1 << AGO) - 1));
        Taken { messages, refused: (ago > 0).then(|| messages.saturating_sub(ago)) }
    }
}

/// The offsets of a record's words in a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) first: usize,
    rest: usize,
}

const HEADER: Words = Words { first: 0, rest: 8 };
const FLAGS: usize = 32;
const TAKEN: usize = 48;
/// The offsets of the number of messages in the peer's queue so far, and of the address at which
/// the queue begins in the peer's memory.
const QUEUED: usize = 56;
const QUEUE: usize = 112;
const OFFER: usize = 64;

/// The first word of a flag shares a cache line with the header; only offers have further words.
pub(super) fn flag(n: u64) -> Words {
    let place = (n % OFFERS) as usize;
    Words { first: FLAGS + 8 * place, rest: OFFER + 24 * place }
}

impl<'a> Lane<'a> {
    #[inline(always)]
    pub(crate) fn new(fabric: &'a Fabric, ends: &'a Ends, lane: usize) -> Self {
        Lane { fabric, ends, at: Layout::lane(lane), deps: Deps::One(ends.there.rank()) }
    }

    /// Returns the lane for a step of a collective, in which the peer waits for others of these
    /// ranks; `None` means all ranks.
    pub(crate) fn within(self, group: Option<&'a [Rank]>) -> Self {
        Lane { deps: Deps::Step { writer: self.peer(), group }, ..self }
    }

    /// Returns the offset of a lane's first flag in an area.
    pub(crate) fn first_flag(lane: usize) -> usize {
        Layout::lane(lane) + FLAGS
    }

    pub(crate) fn peer(&self) -> Rank {
        self.ends.there.rank()
    }

    // ----- records written by the peer ------------------------------------------------------------

    /// Returns the header of the receive that waits for this member's message `n`.
    #[inline(always)]
    pub(crate) fn header(&self, n: u64) -> Result<Option<Record>> {
        self.record(HEADER, n)
    }

    /// Returns the peer's record of its message `n`.
    #[inline(always)]
    pub(crate) fn flag(&self, n: u64) -> Result<Option<Record>> {
        self.record(flag(n), n)
    }

    /// Returns the header, if it can be loaded directly and is present.
    #[inline(always)]
    pub(crate) fn header_now(&self, n: u64) -> Option<Record> {
        Record::of_words(self.fabric.direct().load_words_at(&self.ends.here, self.at + HEADER.first)?, n)
    }

    /// Returns the length of message `n`, if a direct load shows that it has arrived.
    #[inline(always)]
    pub(crate) fn arrived_now(&self, n: u64) -> Option<usize> {
        let [word] = self.fabric.direct().load_words_at(&self.ends.here, self.at + flag(n).first)?;
        Record::arrived(word, n)
    }

    /// Returns whether a direct load shows that the peer has not yet put a flag for its message
    /// `n`.
    #[inline(always)]
    pub(crate) fn is_silent_now(&self, n: u64) -> bool {
        let word = self.fabric.direct().load_words_at(&self.ends.here, self.at + flag(n).first);
        word.is_some_and(|[word]| !is_about(word, n))
    }

    /// Returns the peer's progress in taking the messages offered to it.
    pub(crate) fn taken(&self) -> Result<Taken> {
        Ok(Taken::of_word(self.load(TAKEN)?))
    }

    /// Returns the number of messages of this lane that the peer has queued so far.
    pub(crate) fn queued(&self) -> Result<u64> {
        self.load(QUEUED)
    }

    /// Returns the address at which the peer's queue begins; defined once a message is queued.
    pub(crate) fn queue_start(&self) -> Result<RemoteAddr> {
        let region = RegionKey::from_bits(self.load(QUEUE)?);
        Ok(RemoteAddr { rank: self.peer(), region, offset: self.load(QUEUE + 8)? })
    }

    #[inline(always)]
    fn record(&self, words: Words, n: u64) -> Result<Option<Record>> {
        let first = self.load(words.first)?;
        if !is_about(first, n) {
            return Ok(None);
        }
        if let Some(record) = Record::of_first_word(first) {
            return Ok(Some(record));
        }
        let rest = [self.load(words.rest)?, self.load(words.rest + 8)?, self.load(words.rest + 16)?];
        Ok(Record::of_words([first, rest[0], rest[1], rest[2]], n))
    }

    #[inline(always)]
    fn load(&self, at: usize) -> Result<u64> {
        Ok(self.fabric.load(&*self.ends.here.word_at::<u64>(self.at + at)?)?)
    }

    /// Waits for a header.
    pub(crate) fn until_header(&self, n: u64) -> impl Future<Output = Result<Record>> + use<'a> {
        self.until_record(HEADER, n)
    }

    /// Waits for a flag.
    pub(crate) fn until_flag(&self, n: u64) -> impl Future<Output = Result<Record>> + use<'a> {
        self.until_record(flag(n), n)
    }

    /// Waits for a flag, or until the peer has queued more than `known` messages, if that is given.
    pub(crate) async fn until_flag_or_queued(self, n: u64, known: Option<u64>) -> Result<()> {
        let Some(known) = known else { return self.until_flag(n).await.map(drop) };
        match race(self.until_flag(n), self.until(QUEUED, |queued| queued > known)).await {
            Either::First(flag) => flag.map(drop),
            Either::Second(queued) => queued,
        }
    }

    async fn until_record(self, words: Words, n: u64) -> Result<Record> {
        loop {
            if let Some(record) = self.record(words, n)? {
                return Ok(record);
            }
            // If all of a record is in its first word, it is complete once that word has arrived.
            for at in [words.first, words.rest, words.rest + 8, words.rest + 16] {
                self.until(at, |value| is_about(value, n)).await?;
                if self.record(words, n)?.is_some() {
                    break;
                }
            }
        }
    }

    /// Waits until the peer has taken at least `at_least` messages.
    pub(crate) async fn until_taken(self, at_least: u64) -> Result<()> {
        self.until(TAKEN, |word| Taken::of_word(word).messages >= at_least).await
    }

    async fn until(&self, at: usize, mut done: impl FnMut(u64) -> bool) -> Result<()> {
        let word = self.ends.here.word_at::<u64>(self.at + at)?;
        self.until_word(&word, &mut done).await
    }

    async fn until_word(&self, word: &LocalWord<u64>, done: &mut impl FnMut(u64) -> bool) -> Result<()> {
        self.fabric.wait_until(word, self.deps, done).await?;
        Ok(())
    }

    /// Returns the number of messages of any index for which the peer waits.
    pub(crate) fn wanted(&self) -> Result<u64> {
        Ok(self.fabric.load(&*self.ends.here.word_at::<u64>(Layout::WANTED)?)?)
    }

    /// Waits for a header, or until the peer waits for more than `more_than` messages of any index.
    pub(crate) async fn until_header_or_wanted(self, n: u64, more_than: u64) -> Result<Option<Record>> {
        let wanted = async {
            let word = self.ends.here.word_at::<u64>(Layout::WANTED)?;
            self.until_word(&word, &mut |value| value > more_than).await
        };
        match race(self.until_header(n), wanted).await {
            Either::First(header) => header.map(Some),
            Either::Second(wanted) => wanted.and_then(|()| self.header(n)),
        }
    }

    /// Waits until the peer has left the collectives; returns the member that caused it to leave.
    pub(crate) async fn until_departed(self) -> Result<usize> {
        let word = self.ends.here.word_at::<u64>(Layout::LEFT)?;
        self.until_word(&word, &mut |value| value != 0).await?;
        Ok(self.fabric.load(&word)? as usize - 1)
    }

    /// Hints that this member will soon put a header or a flag.
    #[inline(always)]
    pub(crate) fn expect_put(&self) {
        self.fabric.direct().expect_put_at(&self.ends.there, self.at);
    }

    // ----- records written to the peer ------------------------------------------------------------

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
    pub(crate) async fn post_queued(&self, queued: u64) -> Result<Option<Handle<[u64; 1]>>> {
        self.post_unprepared(QUEUED, [queued]).await
    }

    /// Reports that message `n` has arrived, or why it will not; returns whether the put completed
    /// immediately.
    #[inline(always)]
    pub(crate) fn put_flag_now(&self, n: u64, word: u64) -> bool {
        self.fabric.direct().put_word_at(&self.ends.there, self.at + flag(n).first, word).is_some()
    }

    pub(crate) async fn put_flag(&self, n: u64, word: u64) -> Result<()> {
        self.put(flag(n).first, [word]).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_remembered_for_a_million_messages() {
        for (messages, refused) in [(0, None), (7, None), (8, Some(7)), (1 << 20, Some(1)), (1 << 43, None)] {
            assert_eq!(Taken::of_word(Taken { messages, refused }.to_word()), Taken { messages, refused });
        }
        let long_ago = Taken { messages: (1 << 20) + 1, refused: Some(1) };
        assert_eq!(Taken::of_word(long_ago.to_word()), Taken { refused: None, ..long_ago });
    }
}
