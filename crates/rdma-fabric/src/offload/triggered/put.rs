//! One put that waits for words: what it transfers, and the word that follows the data.

use super::{
    block_spans::{BlockPair, BlockSpans},
    looks,
};
use crate::{
    Amo, Blocks, Caps, Fabric, Handle, LocalSpan, LocalWord, Pod, PutOrder, Rank, Refused, RemoteSpan, RemoteWord,
    Result,
    fabric::{blocks::BlockPut, direct::put_now},
    join,
    op::{Atomic, Put},
    provider::Source,
};
use core::fmt;

/// A put that goes to another rank when words of this rank's own have reached a number, followed by
/// a word there that receives the number.
pub struct TriggeredPut {
    /// The words that must all have reached the number.
    needs: Vec<LocalWord<u64>>,
    transfer: Transfer,
    /// Transfers whose cells have another width.
    others: Vec<Transfer>,
    to: Rank,
    /// The word that receives the number, to be seen after the transferred data. `span` is the same
    /// place.
    word: RemoteWord<u64>,
    span: RemoteSpan<u64>,
    /// Whether the word can't overtake anything.
    alone: bool,
    /// Whether the network keeps the order of puts.
    in_order: bool,
    /// The last number for which the word was written.
    done: u64,
}

impl TriggeredPut {
    /// Puts `transfer` when all of `needs` have reached the number, and after it the number into
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
    /// numbers can't overtake each other, and where nothing is transferred nothing is flushed.
    #[must_use]
    pub fn answered(mut self) -> Self {
        self.alone = self.transfer.is_empty();
        self
    }

    /// Notes what the network promises.
    pub(super) fn over(&mut self, caps: &Caps) {
        self.in_order = caps.puts_in_order;
    }

    /// Returns how often its words are looked at before a wait for them.
    pub(super) fn looks(&self) -> u32 {
        self.needs.iter().map(looks).min().unwrap_or(0)
    }

    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }

    /// Returns the first word that has not reached the number.
    pub(super) fn late(&self, fabric: &Fabric, number: u64) -> Result<Option<&LocalWord<u64>>> {
        for need in &self.needs {
            if fabric.load(need)? < number {
                return Ok(Some(need));
            }
        }
        Ok(None)
    }

    /// Carries the put out where that needs no wait; returns whether it is done.
    #[inline]
    pub(super) fn go_now(&mut self, fabric: &Fabric, number: u64) -> Result<bool> {
        if !self.alone {
            if !self.transfer.put_now(fabric)? {
                return Ok(false);
            }
            for other in &mut self.others {
                if !other.put_now(fabric)? {
                    return Ok(false);
                }
            }
            if !self.in_order && join::now(fabric.flush(self.to)).transpose()?.is_none() {
                return Ok(false);
            }
        }
        match fabric.try_put_word(&self.word, number) {
            Ok(_) => {
                self.done = number;
                Ok(true)
            }
            Err(Refused::Full(_)) => Ok(false),
            Err(Refused::Failed(error, _)) => Err(error),
        }
    }

    /// Carries the put out. May be dropped and called again: what was posted isn't posted twice.
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

/// Posts `value` to a word, given as a word and as a span, to be seen after what this rank put to
/// the same target before.
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
        // On this path a later atomic is seen after the data.
        return Ok(PostedWord::Swap(fabric.post(Atomic { word, amo: Amo::Swap(value) }).await?));
    }
    fabric.flush(word.rank()).await?;
    Ok(PostedWord::Put(post_word(fabric, span, value).await?))
}

/// Writes `value` to a word, to be seen after what this rank put to the same target before.
///
/// # Errors
/// As [`Fabric::put`] and [`Fabric::flush`].
pub async fn put_behind(fabric: &Fabric, word: &RemoteWord<u64>, value: u64) -> Result<()> {
    post_behind(fabric, word, &word.as_span(), value).await?.complete().await
}

/// Spans to put, in cells of one width: where memory is accessed through atomics, all accesses to a
/// region have the same width.
#[derive(Debug)]
pub enum Transfer {
    /// Bytes.
    One(Spans<u8>),
    /// Cells of two bytes.
    Two(Spans<u16>),
    /// Cells of four bytes.
    Four(Spans<u32>),
    /// Cells of eight bytes.
    Eight(Spans<u64>),
}

/// Pairs of spans, each pair of equal length, and how far they have been put.
///
/// What was posted is remembered when a future is dropped: nothing is posted again.
pub struct Spans<W: Pod> {
    pairs: Vec<Pair<W>>,
    /// Number of pairs that have been posted.
    posted: usize,
    /// Handles of posted pairs that are not complete.
    handles: Vec<Handle<LocalSpan<W>>>,
    /// Pairs with several blocks, which are put behind the others; `None` if there are none.
    blocks: Option<Box<BlockSpans<W>>>,
}

struct Pair<W: Pod> {
    from: LocalSpan<W>,
    /// A clone of `from`, for puts that give it back at once: counting one more owner for each put
    /// would wait for the stores before.
    spare: Option<LocalSpan<W>>,
    to: RemoteSpan<W>,
}

impl<W: Pod> fmt::Debug for Spans<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spans({} of {} posted, {:?})", self.posted, self.pairs.len(), self.blocks)
    }
}

impl<W: Pod> Spans<W> {
    /// Creates a transfer of these pairs.
    pub fn new(pairs: Vec<(LocalSpan<W>, RemoteSpan<W>)>) -> Self {
        let pairs = pairs.into_iter().map(|(from, to)| Pair { from, spare: None, to }).collect();
        Spans { pairs, posted: 0, handles: Vec::new(), blocks: None }
    }

    /// Adds a pair of spans of which only some blocks are put: see [`Fabric::put_blocks`].
    ///
    /// # Errors
    /// [`FabricError::Blocks`](crate::FabricError::Blocks),
    /// [`FabricError::LengthMismatch`](crate::FabricError::LengthMismatch).
    pub fn add_blocks(&mut self, from: LocalSpan<W>, to: RemoteSpan<W>, elements: usize, blocks: Blocks) -> Result<()> {
        BlockPut::new(&to, &from, elements, blocks)?;
        self.blocks.get_or_insert_default().pairs.push(BlockPair { from, to, elements, blocks });
        Ok(())
    }

    fn append(&mut self, other: Spans<W>) {
        self.pairs.extend(other.pairs);
        if let Some(other) = other.blocks {
            self.blocks.get_or_insert_default().pairs.extend(other.pairs);
        }
    }

    /// Puts without waiting; returns whether all pairs are complete.
    #[inline]
    fn put_now(&mut self, fabric: &Fabric) -> Result<bool> {
        for Pair { from, spare, to } in &mut self.pairs[self.posted..] {
            if put_now(fabric, to.place(), Source::Place(from.place())) {
                self.posted += 1;
                continue;
            }
            let from = spare.take().unwrap_or_else(|| from.clone());
            match fabric.try_post(Put { to, from, notice: None }) {
                Ok(mut handle) => {
                    self.posted += 1;
                    match handle.test() {
                        true => *spare = Some(handle.wait()?),
                        false => self.handles.push(handle),
                    }
                }
                Err(Refused::Full(put)) => {
                    *spare = Some(put.from);
                    return Ok(false);
                }
                Err(Refused::Failed(error, _)) => return Err(error),
            }
        }
        if let Some(blocks) = &mut self.blocks
            && !blocks.put_now(fabric)?
        {
            return Ok(false);
        }
        if !self.handles.is_empty() {
            return Ok(false);
        }
        self.restart();
        Ok(true)
    }

    async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        while let Some(Pair { from, to, .. }) = self.pairs.get(self.posted) {
            let handle = fabric.post(Put { to, from: from.clone(), notice: None }).await?;
            self.posted += 1;
            self.handles.push(handle);
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.put(fabric).await?;
        }
        while let Some(handle) = self.handles.last_mut() {
            let complete = handle.await;
            self.handles.pop();
            complete?;
        }
        self.restart();
        Ok(())
    }

    /// Begins anew, with the first pair.
    #[inline]
    fn restart(&mut self) {
        self.posted = 0;
        if let Some(blocks) = &mut self.blocks {
            blocks.posted = 0;
        }
    }
}

macro_rules! each {
    ($transfer:expr, $spans:ident => $body:expr) => {
        match $transfer {
            Transfer::One($spans) => $body,
            Transfer::Two($spans) => $body,
            Transfer::Four($spans) => $body,
            Transfer::Eight($spans) => $body,
        }
    };
}

impl Transfer {
    /// Creates a transfer with nothing to put.
    pub fn empty() -> Self {
        Transfer::Eight(Spans::new(Vec::new()))
    }

    /// Adds what `other` puts, or returns it if its cells have another width. Neither is under way.
    pub fn append(&mut self, other: Transfer) -> Option<Transfer> {
        match (self, other) {
            (Transfer::One(all), Transfer::One(other)) => all.append(other),
            (Transfer::Two(all), Transfer::Two(other)) => all.append(other),
            (Transfer::Four(all), Transfer::Four(other)) => all.append(other),
            (Transfer::Eight(all), Transfer::Eight(other)) => all.append(other),
            (_, other) => return Some(other),
        }
        None
    }

    /// Returns whether there is nothing to put.
    pub fn is_empty(&self) -> bool {
        each!(self, spans => spans.pairs.is_empty() && spans.blocks.is_none())
    }

    /// Puts as much as needs no wait; returns whether all of it is complete. Call this or
    /// [`Transfer::put`] again until it is.
    ///
    /// # Errors
    /// As [`Fabric::try_put`].
    #[inline]
    pub fn put_now(&mut self, fabric: &Fabric) -> Result<bool> {
        each!(self, spans => spans.put_now(fabric))
    }

    /// Puts the rest, and waits until all of it is complete. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        each!(self, spans => spans.put(fabric).await)
    }
}
