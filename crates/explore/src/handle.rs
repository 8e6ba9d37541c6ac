//! Handles of posted operations.

use crate::{
    act::{Act, Answer, Slot},
    look::Look,
    session::Session,
};
use rdma_fabric::{FabricError, OpHandle, Result};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

/// An operation, on its way or done.
#[must_use = "a handle tells when the operation is complete; drop it only if nobody needs to know"]
pub struct ExploreHandle<T> {
    session: Rc<Session>,
    stage: Stage<T>,
}

/// Makes what the poster wants of what the world says.
type Finish<T> = Box<dyn FnOnce(&[u64]) -> T>;

enum Stage<T> {
    Complete(T),
    Posted(Slot, Look, Finish<T>),
    Taken,
}

impl<T> fmt::Debug for ExploreHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.stage {
            Stage::Complete(_) => write!(f, "ExploreHandle(complete)"),
            Stage::Posted(slot, ..) => write!(f, "ExploreHandle(operation {slot} of {})", self.session.rank),
            Stage::Taken => write!(f, "ExploreHandle(taken)"),
        }
    }
}

impl<T> ExploreHandle<T> {
    pub(crate) fn complete(session: &Rc<Session>, value: T) -> Self {
        ExploreHandle { session: session.clone(), stage: Stage::Complete(value) }
    }

    pub(crate) fn posted(session: &Rc<Session>, slot: Slot, finish: impl FnOnce(&[u64]) -> T + 'static) -> Self {
        ExploreHandle { session: session.clone(), stage: Stage::Posted(slot, Look::new(session), Box::new(finish)) }
    }

    fn take(&mut self) -> Option<Result<T>> {
        match std::mem::replace(&mut self.stage, Stage::Taken) {
            Stage::Complete(value) => Some(Ok(value)),
            Stage::Taken => None,
            Stage::Posted(slot, look, finish) => {
                let words = match self.session.ask(Act::Await(slot)) {
                    Some(Answer::Value(word)) => vec![word],
                    Some(Answer::Words(words)) => words.to_vec(),
                    Some(Answer::Done) => Vec::new(),
                    Some(Answer::Lost(rank)) => {
                        self.session.went_on();
                        self.session.free_slot(slot);
                        return Some(Err(FabricError::PeerLost { rank }));
                    }
                    Some(Answer::Stale(holding)) => {
                        self.session.went_on();
                        self.session.free_slot(slot);
                        return Some(Err(holding.stale()));
                    }
                    _ => {
                        look.not_ready();
                        self.stage = Stage::Posted(slot, look, finish);
                        return None;
                    }
                };
                self.session.went_on();
                self.session.free_slot(slot);
                Some(Ok(finish(&words)))
            }
        }
    }
}

impl<T> Drop for ExploreHandle<T> {
    fn drop(&mut self) {
        if let Stage::Posted(slot, ..) = self.stage {
            self.session.tell(Act::Forget(slot));
            self.session.free_slot(slot);
        }
    }
}

impl<T: Unpin> Future for ExploreHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T>> {
        assert!(!matches!(self.stage, Stage::Taken), "a completed operation was polled again");
        self.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T: Unpin + 'static> OpHandle<T> for ExploreHandle<T> {
    fn test(&mut self) -> bool {
        match self.stage {
            Stage::Posted(slot, ..) => {
                let complete = self.session.ask(Act::Test(slot)) == Some(Answer::Value(1));
                self.session.went_on();
                complete
            }
            _ => true,
        }
    }

    fn wait(mut self) -> Result<T> {
        if self.test()
            && let Some(value) = self.take()
        {
            return value;
        }
        Err(FabricError::Unsupported { feature: "blocking wait" })
    }
}
