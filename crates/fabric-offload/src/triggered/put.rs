//! One put that waits for words: its transfer, and the word that follows the data.

use super::{Now, Transfer, looks};
use core::{
    fmt,
    task::{Poll, ready},
};
use rdma_fabric::{
    Amo, Caps, Fabric, FabricError, Handle, LocalWord, PutOrder, Rank, Refused, RemoteSpan, RemoteWord, Result, join,
    op::{Atomic, Put},
};

/// A put to another rank that is issued when words of this rank have reached a number, followed by
/// a put of the number to a word at the target.
pub struct TriggeredPut {
    /// The words that must all have reached the number.
    needs: Vec<LocalWord<u64>>,
    transfer: Transfer,
    /// Transfers whose cells have another width.
    others: Vec<Transfer>,
    to: Rank,
    /// The word that receives the number, visible after the transferred data. `span` is the same
    /// location.
    word: RemoteWord<u64>,
    span: RemoteSpan<u64>,
    /// Whether the word can't overtake anything.
    alone: bool,
    /// Whether the network preserves the order of puts.
    in_order: bool,
    /// The last number for which the word was written.
    done: u64,
}

impl TriggeredPut {
    /// Puts `transfer` when all of `needs` have reached the number, and then puts the number into
    /// `word` of the same rank.
    pub fn new(needs: Vec<LocalWord<u64>>, transfer: Transfer, word: RemoteWord<u64>) -> Self {
        let (to, span, others) = (word.rank(), word.as_span(), Vec::new());
        TriggeredPut { needs, transfer, others, to, span, word, alone: false, in_order: false, done: 0 }
    }

    /// Adds a transfer to the same rank.
    pub fn add(&mut self, transfer: Transfer) {
        self.alone &= transfer.is_empty();
        self.others.extend(self.transfer.append(transfer));
    }

    /// Declares that one of the needs comes from a rank that has seen the word's last number: then
    /// numbers can't overtake each other, and no flush is needed if nothing is transferred.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.alone = self.transfer.is_empty();
        self
    }

    /// Records the guarantees of the network.
    pub(super) fn over(&mut self, caps: &Caps) {
        self.in_order = caps.puts_in_order;
    }

    /// Returns the number of polls of its words before a wait for them.
    pub(super) fn looks(&self) -> u32 {
        self.needs.iter().map(looks).min().unwrap_or(0)
    }

    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// Returns the first word that has not reached the number.
    #[inline]
    pub(super) fn late(&self, fabric: &Fabric, number: u64) -> Result<Option<&LocalWord<u64>>, Box<FabricError>> {
        for need in &self.needs {
            if fabric.load(need)? < number {
                return Ok(Some(need));
            }
        }
        Ok(None)
    }

    /// Executes the put if that needs no wait.
    #[inline]
    pub(super) fn go_now(&mut self, fabric: &Fabric, number: u64) -> Now {
        if !self.alone {
            ready!(self.transfer.put_now(fabric))?;
            for other in &mut self.others {
                ready!(other.put_now(fabric))?;
            }
            if !self.in_order && join::now(fabric.flush(self.to)).transpose()?.is_none() {
                return Poll::Pending;
            }
        }
        if fabric.direct().put_word(&self.word, number).is_none() {
            match fabric.try_post(Put { to: &self.span, from: [number], notice: None }) {
                Ok(_) => {}
                Err(Refused::Full(_)) => return Poll::Pending,
                Err(Refused::Failed(error, _)) => return Poll::Ready(Err(error.into())),
            }
        }
        self.done = number;
        Poll::Ready(Ok(()))
    }

    /// Executes the put. May be dropped and called again: posted transfers are not posted twice.
    pub(super) async fn go(&mut self, fabric: &Fabric, number: u64) -> Result<()> {
        let posted = if self.alone {
            PostedWord::Put(post_word(fabric, &self.span, number).await?)
        } else {
            self.transfer.put(fabric).await?;
            for other in &mut self.others {
                other.put(fabric).await?;
            }
            post_behind(fabric, &self.word, &self.span, number).await?
        };
        // From here on the word belongs to the network: if this future is dropped, the word must
        // not be written again, because the target may proceed.
        self.done = number;
        posted.complete().await
    }
}

impl fmt::Debug for TriggeredPut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TriggeredPut(to {}, {} words, done for {})", self.to, self.needs.len(), self.done)
    }
}

/// A word that has been posted.
enum PostedWord {
    Swap(Handle<u64>),
    Put(Handle<[u64; 1]>),
}

impl PostedWord {
    async fn complete(self) -> Result<()> {
        match self {
            PostedWord::Swap(handle) => handle.await.map(drop),
            PostedWord::Put(handle) => handle.await.map(drop),
        }
    }
}

async fn post_word(fabric: &Fabric, span: &RemoteSpan<u64>, value: u64) -> Result<Handle<[u64; 1]>> {
    fabric.post(Put { to: span, from: [value], notice: None }).await
}

/// Posts `value` to a word, given as a word and as a span, visible after this rank's earlier puts
/// to the same target.
async fn post_behind(
    fabric: &Fabric,
    word: &RemoteWord<u64>,
    span: &RemoteSpan<u64>,
    value: u64,
) -> Result<PostedWord> {
    let caps = fabric.caps();
    if caps.puts_in_order {
        return Ok(PostedWord::Put(post_word(fabric, span, value).await?));
    }
    if caps.put_order >= PutOrder::SameTarget {
        // With this put order a later atomic is visible after the data.
        return Ok(PostedWord::Swap(fabric.post(Atomic { word, amo: Amo::Swap(value) }).await?));
    }
    fabric.flush(word.rank()).await?;
    Ok(PostedWord::Put(post_word(fabric, span, value).await?))
}

/// Writes `value` to a word, visible after this rank's earlier puts to the same target.
///
/// # Errors
/// As [`Fabric::put`] and [`Fabric::flush`].
pub async fn put_behind(fabric: &Fabric, word: &RemoteWord<u64>, value: u64) -> Result<()> {
    post_behind(fabric, word, &word.as_span(), value).await?.complete().await
}
