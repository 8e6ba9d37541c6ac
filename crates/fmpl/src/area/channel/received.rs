//! What the peer has written into this member's area.

use super::{Channel, HEADER, QUEUE, QUEUED, Queued, TAKEN, Taken, Words, flag};
use crate::{
    Result,
    area::{Layout, Record, record::is_about},
};
use core::future::Future;
use rdma_fabric::{
    LocalWord, RegionKey, RemoteAddr,
    join::{Either, race},
};

/// A peer's record of its next message, as far as it has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfferNow {
    InFlag(Record),
    /// Not in its flag; it may be among the messages that the peer has queued.
    NotInFlag(Queued),
}

impl<'a> Channel<'a> {
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

    /// Returns what direct loads show of the peer's record of its message `n`.
    #[inline(always)]
    pub(crate) fn offer_now(&self, n: u64) -> Option<OfferNow> {
        let load = |at| self.fabric.direct().load_words_at(&self.ends.here, self.at + at);
        let words = flag(n);
        let [first] = load(words.first)?;
        if !is_about(first, n) {
            let [queued] = load(QUEUED)?;
            return Some(OfferNow::NotInFlag(Queued::of_word(queued)));
        }
        let [second, third, fourth] = self.fabric.direct().load_words_at(&self.ends.here, self.at + words.rest)?;
        Record::of_words([first, second, third, fourth], n).map(OfferNow::InFlag)
    }

    /// Returns the peer's progress in taking messages, if it can be loaded directly.
    #[inline(always)]
    pub(crate) fn taken_now(&self) -> Option<Taken> {
        let [word] = self.fabric.direct().load_words_at(&self.ends.here, self.at + TAKEN)?;
        Some(Taken::of_word(word))
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

    /// Returns the number of messages of this channel that the peer has queued so far.
    pub(crate) fn queued(&self) -> Result<Queued> {
        Ok(Queued::of_word(self.load(QUEUED)?))
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
    pub(in crate::area) fn load(&self, at: usize) -> Result<u64> {
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
        match race(self.until_flag(n), self.until_queued(known)).await {
            Either::First(flag) => flag.map(drop),
            Either::Second(queued) => queued,
        }
    }

    /// Waits until the peer has queued more than `known` messages.
    pub(crate) async fn until_queued(self, known: u64) -> Result<()> {
        self.until(QUEUED, |word| Queued::of_word(word).after(known) > 0).await
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

    pub(in crate::area) async fn until(&self, at: usize, mut done: impl FnMut(u64) -> bool) -> Result<()> {
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
}
