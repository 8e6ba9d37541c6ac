//! Puts of several spans, in cells of one width.

use crate::Handle;
use crate::{Fabric, LocalSpan, Pod, PutOptions, Refused, RemoteSpan, Result, op::Put};
use core::fmt;

/// From where to where, in cells of one width: where memory is accessed through atomics, all accesses to a region have the same.
#[derive(Debug)]
pub enum Transfer {
    /// Bytes.
    One(Spans<u8>),
    /// Cells of two bytes.
    Two(Spans<u16>),
    /// Of four.
    Four(Spans<u32>),
    /// Of eight.
    Eight(Spans<u64>),
}

/// Pairs of spans, of the same length each, and how far they are put.
///
/// What was posted stays known when a future is dropped: nothing is posted again.
pub struct Spans<W: Pod> {
    pairs: Vec<Pair<W>>,
    /// As many are posted.
    posted: usize,
    /// Of those that are not complete.
    handles: Vec<Handle<LocalSpan<W>>>,
}

struct Pair<W: Pod> {
    from: LocalSpan<W>,
    /// The same, for puts that give it back at once: to count one more owner for each would wait for the stores before.
    spare: Option<LocalSpan<W>>,
    to: RemoteSpan<W>,
}

impl<W: Pod> fmt::Debug for Spans<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spans({} of {} posted)", self.posted, self.pairs.len())
    }
}

impl<W: Pod> Spans<W> {
    /// Of these pairs.
    pub fn new(pairs: Vec<(LocalSpan<W>, RemoteSpan<W>)>) -> Self {
        let pairs = pairs.into_iter().map(|(from, to)| Pair { from, spare: None, to }).collect();
        Spans { pairs, posted: 0, handles: Vec::new() }
    }

    /// Put without waiting; whether all are complete.
    #[inline]
    fn put_now(&mut self, fabric: &Fabric) -> Result<bool> {
        for Pair { from, spare, to } in &mut self.pairs[self.posted..] {
            let from = spare.take().unwrap_or_else(|| from.clone());
            match fabric.try_post(Put { to, from, options: PutOptions::default() }) {
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
        if !self.handles.is_empty() {
            return Ok(false);
        }
        self.posted = 0;
        Ok(true)
    }

    async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        while let Some(Pair { from, to, .. }) = self.pairs.get(self.posted) {
            let handle = fabric.post(Put { to, from: from.clone(), options: PutOptions::default() }).await?;
            self.posted += 1;
            self.handles.push(handle);
        }
        while let Some(handle) = self.handles.last_mut() {
            let complete = handle.await;
            self.handles.pop();
            complete?;
        }
        self.posted = 0;
        Ok(())
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
    /// Nothing to put.
    pub fn empty() -> Self {
        Transfer::Eight(Spans::new(Vec::new()))
    }

    /// Whether there is nothing to put.
    pub fn is_empty(&self) -> bool {
        each!(self, spans => spans.pairs.is_empty())
    }

    /// Put as far as that takes no waiting; whether all of it is complete. To be called again, or [`Transfer::put`], until it is.
    ///
    /// # Errors
    /// As [`Fabric::try_put`].
    #[inline]
    pub fn put_now(&mut self, fabric: &Fabric) -> Result<bool> {
        each!(self, spans => spans.put_now(fabric))
    }

    /// Put what is not put yet, and wait until all of it is complete. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn put(&mut self, fabric: &Fabric) -> Result<()> {
        each!(self, spans => spans.put(fabric).await)
    }
}
