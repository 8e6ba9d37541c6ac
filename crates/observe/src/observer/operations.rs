//! Operations, from posting until their end is known.

use super::Observer;
use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
};
use rdma_fabric::{
    FabricError, Result,
    provider::{Posted, Sink, Token},
};
use std::task::{Context, Poll};

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Operation {
    /// The operation's token in the provider below.
    token: Token,
    /// The event, without its end; `None` once the end is known and recorded.
    event: Option<Event>,
    /// The time at which a poll first found the operation pending.
    waiting_since: Option<u64>,
}

impl Observer {
    /// Counts an operation that was posted, or refused for lack of room. Records its end, or gives
    /// it a token.
    pub(super) fn posted(&self, posted: Posted, mut event: Event) -> Posted {
        {
            let counts = &mut self.recorder.lock().counts;
            match &posted {
                Posted::Complete(_) | Posted::Pending(_) => {
                    counts.note(event.kind, event.peer, 1, event.bytes);
                    if event.kind == EventKind::PutNotify {
                        event.notice = Some(counts.sent(event.peer, 1));
                    }
                }
                Posted::Full => counts.with(event.peer).full += 1,
                Posted::Failed(_) => {}
            }
        }
        match posted {
            Posted::Complete(word) => {
                self.completed(event, None);
                Posted::Complete(word)
            }
            Posted::Pending(token) => {
                let operation = Operation { token, event: Some(event), waiting_since: None };
                Posted::Pending(Token(self.operations.put(operation)))
            }
            refused => refused,
        }
    }

    fn completed(&self, event: Event, waiting_since: Option<u64>) {
        let end_ps = self.now_ps();
        let mut record = self.recorder.lock();
        if let Some(since) = waiting_since {
            record.waited(WaitKind::Operation, event.peer, since, end_ps);
        }
        record.happened(Event { end_ps, ..event });
    }

    fn token_below(&self, token: &Token) -> Option<Token> {
        self.operations.with(token.0.get(), |operation| operation.token)
    }

    pub(super) fn poll_operation(&self, token: &Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let Some(mut below) = self.token_below(token) else {
            return Poll::Ready(Err(FabricError::Unsupported { feature: &"an operation of another provider" }));
        };
        let stands = self.below.provider().poll(&mut below, into, cx);
        if stands.is_pending() {
            let now_ps = self.now_ps();
            self.operations.with(token.0.get(), |operation| {
                operation.token = below;
                operation.waiting_since.get_or_insert(now_ps);
            });
        } else {
            self.operation_ends(token);
        }
        stands
    }

    /// Removes an operation whose result is no longer requested. Returns its token in the provider
    /// below.
    fn operation_ends(&self, token: &Token) -> Option<Token> {
        let Operation { token, event, waiting_since } = self.operations.take(token.0.get())?;
        if let Some(event) = event {
            self.completed(event, waiting_since);
        }
        Some(token)
    }

    pub(super) fn test_operation(&self, token: &Token) -> bool {
        let completed = self.token_below(token).is_none_or(|below| self.below.provider().test(&below));
        let known = |operation: &mut Operation| operation.event.take().zip(Some(operation.waiting_since));
        if completed && let Some((event, since)) = self.operations.with(token.0.get(), known).flatten() {
            self.completed(event, since);
        }
        completed
    }

    pub(super) fn forget_operation(&self, token: &Token) {
        if let Some(below) = self.operation_ends(token) {
            self.below.provider().forget(below);
        }
    }
}
