//! The operations of a walk: how they are started, and the words that they access.

use super::{NodeId, Queue, Transition, layout::NodeWord, protocol::Protocol};
use crate::{error::Stopped, steps::Word};
use core::future::Future;
use rdma_fabric::{Amo, Fabric, FabricError, Handle, Refused, RemoteWord, provider::Boxed};
use std::borrow::Cow;

/// The current operation.
pub(super) enum Doing {
    Nothing,
    Complete(Result<u64, Stopped>),
    Atomic(Handle<u64>),
    Word(Handle<[u64; 1]>),
    /// Waiting for room, after which the operation is started again.
    Room(Boxed<'static, Result<(), FabricError>>),
    Later(Boxed<'static, Result<u64, Stopped>>),
}

impl Doing {
    pub(super) fn over(found: Result<u64, FabricError>) -> Self {
        Doing::Complete(found.map_err(Stopped::from))
    }

    pub(super) fn boxed(future: impl Future<Output = Result<u64, Stopped>> + Send + 'static) -> Self {
        Doing::Later(Box::pin(future))
    }

    /// Starts an operation again when there is room.
    pub(super) fn again<T>(fabric: &Fabric, refused: Refused<T>) -> Self {
        match refused {
            Refused::Failed(error, _) => Doing::over(Err(error)),
            Refused::Full(_) => {
                let fabric = fabric.clone();
                Doing::Room(Box::pin(async move { fabric.room(None).await }))
            }
        }
    }
}

/// Publishes a change, and notifies the lock.
pub(super) fn publish(core: &impl Protocol, step: Transition) -> Result<(), FabricError> {
    core.queue().publish(step)?;
    core.continued();
    Ok(())
}

/// Returns a word that is resolved.
#[inline(always)]
pub(super) fn resolved<P: Protocol>(core: &P, word: Word) -> Option<&RemoteWord<u64>> {
    match word {
        Word::Home(number) => core.home_now(number),
        Word::Wake(node) => core.queue().peer_cache(node, NodeWord::Wake).ok(),
        Word::Next(node) => core.queue().peer_cache(node, NodeWord::Next).ok(),
    }
}

pub(super) fn word_of<P: Protocol>(core: &P, word: Word) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
    match word {
        Word::Home(number) => core.home_word(number),
        Word::Wake(node) => core.queue().any_node(node, NodeWord::Wake),
        Word::Next(node) => core.queue().any_node(node, NodeWord::Next),
    }
}

/// The operations of a walk.
impl Queue {
    /// Returns a word of any rank's node; from the cache where caching is worthwhile.
    fn any_node(&self, node: NodeId, part: NodeWord) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
        if self.is_fast() {
            self.peer_cache(node, part).map(Cow::Borrowed)
        } else {
            self.node(node, part).map(Cow::Owned)
        }
    }

    pub(super) fn begin_atomic(&self, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<Doing, Refused<()>> {
        Ok(Doing::Atomic(self.fabric.try_atomic(word, amo)?))
    }

    pub(super) fn begin_get(&self, word: &RemoteWord<u64>) -> Doing {
        self.begun(self.fabric.try_get(&word.as_span(), [0]))
    }

    pub(super) fn begin_put(&self, word: &RemoteWord<u64>, bits: u64) -> Doing {
        self.begun(self.fabric.try_put(&word.as_span(), [bits], None))
    }

    fn begun(&self, handle: Result<Handle<[u64; 1]>, Refused<[u64; 1]>>) -> Doing {
        match handle {
            Ok(handle) => Doing::Word(handle),
            Err(refused) => Doing::again(&self.fabric, refused),
        }
    }

    pub(super) fn begin_retire(&self, node: NodeId) -> Result<Doing, FabricError> {
        let ready = node.ready();
        Ok(if node.rank() == self.me {
            Doing::over(self.fabric.store_unwaited(self.own(node.slot(), NodeWord::Wake)?, ready).map(|()| 0))
        } else if self.recoverable {
            // An atomic is used because the next flush would report a failed put.
            match self.begin_atomic(&*self.any_node(node, NodeWord::Wake)?, Amo::Swap(ready)) {
                Ok(begun) => begun,
                Err(refused) => Doing::again(&self.fabric, refused),
            }
        } else {
            self.begin_put(&*self.any_node(node, NodeWord::Wake)?, ready)
        })
    }

    /// Flushes the holder's puts, unless the fabric orders them.
    pub(super) fn begin_flush(&self) -> Doing {
        if self.ordered_everywhere {
            return Doing::Complete(Ok(0));
        }
        let fabric = self.fabric.clone();
        Doing::boxed(async move { Ok(fabric.flush_all().await.map(|()| 0)?) })
    }

    /// Stores into a word of this rank's node.
    pub(super) fn store(&self, word: Word, bits: u64) -> Result<(), FabricError> {
        let (node, part) = match word {
            Word::Wake(node) => (node, NodeWord::Wake),
            Word::Next(node) => (node, NodeWord::Next),
            Word::Home(_) => return Ok(()),
        };
        self.fabric.store_unwaited(self.own(node.slot(), part)?, bits)
    }
}
