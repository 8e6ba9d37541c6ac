//! Operations under way: below, or several in place of one.

use super::spoiled::{Spoiled, word_bits};
use rdma_fabric::{
    Amo, RemoteAddr, Result,
    provider::{Posted, Sink, Token},
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// What is made of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Nothing,
    /// The word at this address was got.
    Got(RemoteAddr),
    /// The poster of this atomic is told.
    Told(RemoteAddr, Amo<u64>),
    /// The poster of an atomic is told 0.
    Zero,
}

pub(super) enum Operation {
    Below(Token, Then),
    Several(Pin<Box<dyn Future<Output = Result<u64>>>>),
    Over(Result<u64>),
}

impl Spoiled {
    /// What came of posting below, of which `then` is to be made when it is complete.
    pub(super) fn posted(&self, posted: Posted, then: Then, into: Sink<'_>) -> Posted {
        match posted {
            Posted::Over(word) => Posted::Over(self.made(then, word, into)),
            Posted::Pending(token) => Posted::Pending(self.under_way.add(Operation::Below(token, then))),
            refused => refused,
        }
    }

    pub(super) fn several(&self, run: impl Future<Output = Result<u64>> + 'static) -> Posted {
        Posted::Pending(self.under_way.add(Operation::Several(Box::pin(run))))
    }

    fn made(&self, then: Then, word: u64, into: Sink<'_>) -> u64 {
        match then {
            Then::Nothing => word,
            Then::Zero => 0,
            Then::Told(addr, asked) => {
                self.catch_up();
                self.mutation.result(addr, asked, word)
            }
            Then::Got(addr) => {
                if let Sink::Bytes(bytes) = into
                    && let Some(bits) = word_bits(bytes)
                {
                    bytes.copy_from_slice(&self.mutation.got(addr, bits).to_ne_bytes());
                }
                word
            }
        }
    }

    pub(super) fn result(&self, token: Token, mut into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let operation = self.under_way.take(token).expect("a completed operation was polled again");
        let pending = match operation {
            Operation::Over(result) => return Poll::Ready(result),
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
        self.under_way.put_back(token, pending);
        Poll::Pending
    }

    pub(super) fn is_complete(&self, token: Token) -> bool {
        let Some(operation) = self.under_way.take(token) else { return true };
        let (complete, operation) = match operation {
            Operation::Below(below, then) => (self.provider().test(&below), Operation::Below(below, then)),
            Operation::Several(mut run) => match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => (true, Operation::Over(result)),
                Poll::Pending => (false, Operation::Several(run)),
            },
            over => (true, over),
        };
        self.under_way.put_back(token, operation);
        complete
    }
}
