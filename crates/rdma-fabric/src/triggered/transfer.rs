//! Puts of several spans, in cells of one width.

use crate::{Fabric, LocalSpan, OpHandle, Pod, PutOptions, Refused, RemoteSpan, Result, op::Put};
use core::fmt;

/// From where to where, in cells of one width: where memory is accessed through atomics, all accesses to a region have the same.
#[derive(Debug)]
pub enum Transfer<F: Fabric> {
    /// Bytes.
    One(Spans<F, u8>),
    /// Cells of two bytes.
    Two(Spans<F, u16>),
    /// Of four.
    Four(Spans<F, u32>),
    /// Of eight.
    Eight(Spans<F, u64>),
}

/// Pairs of spans, of the same length each, and how far they are put.
///
/// What was posted stays known when a future is dropped: nothing is posted again.
pub struct Spans<F: Fabric, W: Pod> {
    pairs: Vec<Pair<F, W>>,
    /// As many are posted.
    posted: usize,
    /// Of those that are not complete.
    handles: Vec<F::Handle<LocalSpan<F, W>>>,
}

struct Pair<F: Fabric, W: Pod> {
    from: LocalSpan<F, W>,
    /// The same, for puts that give it back at once: to count one more owner for each would wait for the stores before.
    spare: Option<LocalSpan<F, W>>,
    to: RemoteSpan<F, W>,
}

impl<F: Fabric, W: Pod> fmt::Debug for Spans<F, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spans({} of {} posted)", self.posted, self.pairs.len())
    }
}

impl<F: Fabric, W: Pod> Spans<F, W> {
    /// Of these pairs.
    pub fn new(pairs: Vec<(LocalSpan<F, W>, RemoteSpan<F, W>)>) -> Self {
        let pairs = pairs.into_iter().map(|(from, to)| Pair { from, spare: None, to }).collect();
        Spans { pairs, posted: 0, handles: Vec::new() }
    }

    /// Put without waiting; whether all are complete.
    #[inline]
    fn put_now(&mut self, fabric: &F) -> Result<bool> {
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

    async fn put(&mut self, fabric: &F) -> Result<()> {
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

impl<F: Fabric> Transfer<F> {
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
    pub fn put_now(&mut self, fabric: &F) -> Result<bool> {
        each!(self, spans => spans.put_now(fabric))
    }

    /// Put what is not put yet, and wait until all of it is complete. May be dropped and called again.
    ///
    /// # Errors
    /// As [`Fabric::put`].
    pub async fn put(&mut self, fabric: &F) -> Result<()> {
        each!(self, spans => spans.put(fabric).await)
    }
}
