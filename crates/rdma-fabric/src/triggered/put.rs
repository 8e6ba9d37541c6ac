//! One put that waits for words.

use super::Transfer;
use crate::Handle;
use crate::{
    Amo, Fabric, LocalWord, PutOptions, PutOrder, Rank, Refused, RemoteSpan, RemoteWord, Result, join,
    op::{Atomic, Put},
};
use core::fmt;

/// What goes to another rank when own words have come to a number, and the word there that is told so.
pub struct TriggeredPut {
    /// Each is to have come to the number.
    needs: Vec<LocalWord<u64>>,
    transfer: Transfer,
    to: Rank,
    /// The word gets the number, to be seen after what is transferred. Both are the same place.
    word: RemoteWord<u64>,
    span: RemoteSpan<u64>,
    /// Whether there is nothing that the word must not overtake.
    alone: bool,
    /// The last number for which the word was written.
    done: u64,
}

impl TriggeredPut {
    /// When all of `needs` have come to the number: `transfer`, and behind it the number into `word` of the same rank.
    pub fn new(needs: Vec<LocalWord<u64>>, transfer: Transfer, word: RemoteWord<u64>) -> Self {
        TriggeredPut { needs, transfer, to: word.rank(), span: word.as_span(), word, alone: false, done: 0 }
    }

    /// Say that one of the needs comes from who has seen the word's last number: then numbers can't overtake each other, and where nothing is
    /// transferred nothing is flushed.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.alone = self.transfer.is_empty();
        self
    }

    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// The first word that has not come to the number.
    pub(super) fn late(&self, fabric: &Fabric, number: u64) -> Result<Option<&LocalWord<u64>>> {
        for need in &self.needs {
            if fabric.load(need)? < number {
                return Ok(Some(need));
            }
        }
        Ok(None)
    }

    /// Carry it out where that takes no waiting; whether it is done.
    #[inline]
    pub(super) fn go_now(&mut self, fabric: &Fabric, number: u64) -> Result<bool> {
        if !self.alone && (!self.transfer.put_now(fabric)? || join::now(fabric.flush(self.to)).transpose()?.is_none()) {
            return Ok(false);
        }
        match fabric.try_post(Put { to: &self.span, from: [number], options: PutOptions::default() }) {
            Ok(_) => {
                self.done = number;
                Ok(true)
            }
            Err(Refused::Full(_)) => Ok(false),
            Err(Refused::Failed(error, _)) => Err(error),
        }
    }

    /// Carry it out. May be dropped and called again: what was posted isn't posted twice.
    pub(super) async fn go(&mut self, fabric: &Fabric, number: u64) -> Result<()> {
        let posted = if self.alone {
            Posted::Put(post_word(fabric, &self.span, number).await?)
        } else {
            self.transfer.put(fabric).await?;
            post_behind(fabric, &self.word, &self.span, number).await?
        };
        // From here on the word is the network's: who drops this must not write it again, for the target may go on.
        self.done = number;
        posted.complete().await
    }
}

impl fmt::Debug for TriggeredPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TriggeredPut(to {}, {} words, done for {})", self.to, self.needs.len(), self.done)
    }
}

/// A word that is posted.
enum Posted {
    Swap(Handle<u64>),
    Put(Handle<[u64; 1]>),
}

impl Posted {
    async fn complete(self) -> Result<()> {
        match self {
            Posted::Swap(handle) => handle.await.map(drop),
            Posted::Put(handle) => handle.await.map(drop),
        }
    }
}

async fn post_word(fabric: &Fabric, span: &RemoteSpan<u64>, value: u64) -> Result<Handle<[u64; 1]>> {
    fabric.post(Put { to: span, from: [value], options: PutOptions::default() }).await
}

/// Post `value` to a word, given in both ways, to be seen after what this rank put to the same target before.
async fn post_behind(fabric: &Fabric, word: &RemoteWord<u64>, span: &RemoteSpan<u64>, value: u64) -> Result<Posted> {
    if fabric.caps().put_order >= PutOrder::SameTarget {
        // On this path a later atomic is seen after the data.
        return Ok(Posted::Swap(fabric.post(Atomic { word, amo: Amo::Swap(value) }).await?));
    }
    fabric.flush(word.rank()).await?;
    Ok(Posted::Put(post_word(fabric, span, value).await?))
}

/// Write `value` to a word, to be seen after what this rank put to the same target before.
///
/// # Errors
/// As [`Fabric::put`] and [`Fabric::flush`].
pub async fn put_behind(fabric: &Fabric, word: &RemoteWord<u64>, value: u64) -> Result<()> {
    post_behind(fabric, word, &word.as_span(), value).await?.complete().await
}
