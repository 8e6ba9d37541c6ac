//! Operations in flight on the fabric below, sequences that replace one operation, and the mutation
//! of atomics.

use super::layer::{Mutated, word_bits};
use rdma_fabric::{
    Amo, Multicasts, Rank, RemoteAddr, Result,
    error::MulticastError,
    provider::{Multicast, Place, Posted, Sink, Source, Token},
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// The treatment of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Nothing,
    /// Mutate the value that a get of the word at this address found.
    Got(RemoteAddr),
    /// Mutate the result of this atomic.
    Atomic(RemoteAddr, Amo<u64>),
    /// Report 0 as an atomic's result.
    Zero,
}

pub(super) enum Operation {
    Below(Token, Then),
    Several(Pin<Box<dyn Future<Output = Result<u64>>>>),
    Complete(Result<u64>),
}

impl Mutated {
    /// Wraps the answer of the fabric below to a posted operation. `then` determines how the result
    /// is treated on completion.
    pub(super) fn posted(&self, posted: Posted, then: Then, into: Sink<'_>) -> Posted {
        match posted {
            Posted::Complete(word) => Posted::Complete(self.made(then, word, into)),
            Posted::Pending(token) => Posted::Pending(self.in_flight.add(Operation::Below(token, then))),
            refused => refused,
        }
    }

    pub(super) fn several(&self, run: impl Future<Output = Result<u64>> + 'static) -> Posted {
        Posted::Pending(self.in_flight.add(Operation::Several(Box::pin(run))))
    }

    fn made(&self, then: Then, word: u64, into: Sink<'_>) -> u64 {
        match then {
            Then::Nothing => word,
            Then::Zero => 0,
            Then::Atomic(addr, requested) => {
                self.catch_up();
                self.mutant.result(addr, requested, word)
            }
            Then::Got(addr) => {
                if let Sink::Bytes(bytes) = into
                    && let Some(bits) = word_bits(bytes)
                {
                    bytes.copy_from_slice(&self.mutant.got(addr, bits).to_ne_bytes());
                }
                word
            }
        }
    }

    pub(super) fn result(&self, token: Token, mut into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let operation = self.in_flight.take(token).expect("a completed operation was polled again");
        let pending = match operation {
            Operation::Complete(result) => return Poll::Ready(result),
            Operation::Several(mut run) => match run.as_mut().poll(cx) {
                Poll::Ready(result) => return Poll::Ready(result),
                Poll::Pending => Operation::Several(run),
            },
            Operation::Below(mut below, then) => {
                let again = match &mut into {
                    Sink::Bytes(bytes) => Sink::Bytes(bytes),
                    Sink::Place(place) => Sink::Place(place),
                };
                match self.provider().poll(&mut below, again, cx) {
                    Poll::Ready(result) => return Poll::Ready(result.map(|word| self.made(then, word, into))),
                    Poll::Pending => Operation::Below(below, then),
                }
            }
        };
        self.in_flight.put_back(token, pending);
        Poll::Pending
    }

    pub(super) fn is_complete(&self, token: Token) -> bool {
        let Some(operation) = self.in_flight.take(token) else { return true };
        let (complete, operation) = match operation {
            Operation::Below(below, then) => (self.provider().test(&below), Operation::Below(below, then)),
            Operation::Several(mut run) => match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => (true, Operation::Complete(result)),
                Poll::Pending => (false, Operation::Several(run)),
            },
            over => (true, over),
        };
        self.in_flight.put_back(token, operation);
        complete
    }
}

impl Multicast for Mutated {
    fn reaches(&self, members: &[Rank]) -> Result<()> {
        Multicasts::reach(&self.below, members)?;
        match self.mutant.reaches(members) {
            true => Ok(()),
            false => Err(MulticastError::NoBox { members: members.len() }.into()),
        }
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        let reached: Vec<_> = to.iter().filter(|to| self.mutant.multicasts_to(to.addr())).cloned().collect();
        if reached.is_empty() {
            return Posted::Complete(0);
        }
        let below = self.provider().multicast().expect("there are some");
        self.posted(below.multicast(&reached, from), Then::Nothing, Sink::none())
    }
}

/// The bytes of a word that mutants can change.
const WORD: usize = 8;

impl Mutated {
    pub(super) fn change(&self, word: &Place, requested: Amo<u64>) -> Result<Posted> {
        let addr = word.addr();
        if word.len() != WORD {
            return Ok(self.posted(self.provider().atomic(word, requested), Then::Nothing, Sink::none()));
        }
        let mutant = &self.mutant;
        if let Some((to, bits)) = mutant.puts(addr, requested) {
            self.post_word(to, bits)?;
        }
        if let Some(bits) = mutant.as_put(addr, requested) {
            let put = self.provider().put(word, Source::Bytes(&bits.to_ne_bytes()), None);
            return Ok(self.posted(put, Then::Zero, Sink::none()));
        }
        if let Amo::CompareSwap { expected, new } = requested
            && mutant.tears(addr, requested)
        {
            return self.torn(word, expected, new);
        }
        let first = mutant.first(addr, requested);
        let done = mutant.atomic(addr, requested);
        if first.is_some() || mutant.continues(addr, requested) {
            return self.one_of_several(word, requested, first, done);
        }
        let posted = self.provider().atomic(word, done);
        if matches!(posted, Posted::Complete(_) | Posted::Pending(_)) {
            self.release_held(addr);
        }
        Ok(self.posted(posted, Then::Atomic(addr, requested), Sink::none()))
    }

    /// Executes a compare-and-swap as a get and a put.
    fn torn(&self, word: &Place, expected: u64, new: u64) -> Result<Posted> {
        let (addr, requested) = (word.addr(), Amo::CompareSwap { expected, new });
        let (below, state) = (self.below.clone(), self.shared());
        let word = below.remote_word::<u64>(addr)?;
        Ok(self.several(async move {
            let old = below.get_word(&word).await?;
            if old == expected {
                below.put_word(&word, new).await?;
                below.flush(addr.rank).await?;
            }
            Ok(state.mutant.result(addr, requested, old))
        }))
    }

    /// Executes an atomic after the one in `first`, or before those that
    /// [`Mutant::then`](super::Mutant::then) names.
    fn one_of_several(
        &self,
        word: &Place,
        requested: Amo<u64>,
        first: Option<(RemoteAddr, Amo<u64>)>,
        done: Amo<u64>,
    ) -> Result<Posted> {
        let addr = word.addr();
        let (below, state) = (self.below.clone(), self.shared());
        let word = below.remote_word::<u64>(addr)?;
        let before = match first {
            Some((addr, amo)) => Some((below.remote_word::<u64>(addr)?, amo)),
            None => None,
        };
        Ok(self.several(async move {
            let comes_last = before.is_some();
            if let Some((word, amo)) = before {
                below.atomic(&word, amo).await?;
            }
            let mut old = below.atomic(&word, done).await?;
            let (mut last, mut found) = ((addr, requested), old);
            while !comes_last
                && state.mutant.continues(last.0, last.1)
                && let Some((to, amo)) = state.mutant.then(last.0, last.1, found)
            {
                found = below.atomic(&below.remote_word::<u64>(to)?, amo).await?;
                old = state.mutant.after(addr, requested, old, found);
                last = (to, amo);
            }
            Ok(state.mutant.result(addr, requested, old))
        }))
    }
}
