//! The futures of a rank: its program, the futures that the program has detached, and its helpers.
//!
//! They take turns, and switch only where one of them waits. Between two waits of a future, no
//! other future of the same rank runs, though acts of other ranks do occur.

use crate::session::Session;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// A future as the explorer sees it.
pub(crate) type Task = Pin<Box<dyn Future<Output = Result<(), String>>>>;

/// A future that a rank runs.
pub(crate) struct Running {
    task: Task,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Program,
    /// The remaining work of a dropped future.
    Rest,
    Helper(&'static str),
}

impl Running {
    pub(crate) fn program(task: Task) -> Self {
        Running { task, kind: Kind::Program }
    }

    pub(crate) fn rest(task: Task) -> Self {
        Running { task, kind: Kind::Rest }
    }

    pub(crate) fn helper(name: &'static str, task: Task) -> Self {
        Running { task, kind: Kind::Helper(name) }
    }

    pub(crate) fn is_helper(&self) -> bool {
        matches!(self.kind, Kind::Helper(_))
    }

    /// Polls the future once. A future that is ready has ended, and so has a helper that waits
    /// after its program has returned.
    ///
    /// # Errors
    /// The error of the program, or that of a helper before its program returned.
    pub(crate) fn poll(&mut self, session: &Session) -> Poll<Result<(), String>> {
        let poll = self.task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match (self.kind, poll) {
            (Kind::Helper(_), _) if session.program_over.get() => Poll::Ready(Ok(())),
            (Kind::Helper(name), Poll::Ready(Err(error))) => Poll::Ready(Err(format!("helper {name:?}: {error}"))),
            (Kind::Program, Poll::Ready(done)) => {
                session.program_over.set(true);
                Poll::Ready(done)
            }
            (_, poll) => poll,
        }
    }
}
