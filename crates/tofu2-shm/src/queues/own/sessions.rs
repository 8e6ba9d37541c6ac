//! The session queues of a rank, as the rank itself finds them.

use super::OwnQueues;
use crate::{
    memory::Mapping,
    queues::{config::Geometry, view::View},
};
use core::sync::atomic::Ordering::SeqCst;
use rdma_fabric::{RegionKey, control_queue::QueueId};

/// An open session queue of this rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSession {
    pub(crate) id: QueueId,
    pub(crate) geometry: Geometry,
    /// The key and the offset of its words.
    pub(crate) words: (RegionKey, usize),
    /// The offset of its table of tags.
    pub(crate) tags: usize,
}

impl OwnSession {
    /// Returns the queue in the rank's own `segment`.
    #[inline]
    pub(crate) fn view<'a>(&self, segment: &'a Mapping) -> Option<View<'a>> {
        View::own(segment, self.id, self.geometry, self.words, self.tags)
    }
}

impl OwnQueues {
    /// Records that a session queue is open.
    pub(crate) fn add_session(&self, session: OwnSession) {
        let mut state = self.lock();
        state.sessions.push(session.id);
        self.sessions.store(state.sessions.len(), SeqCst);
        drop(state);
        self.cached.lock().sessions.push(session);
    }

    /// Records that a session queue is no longer open, and waits until no thread
    /// holds [`Cached`](super::Cached).
    pub(crate) fn remove_session(&self, id: QueueId) {
        let mut state = self.lock();
        state.sessions.retain(|&other| other != id);
        self.sessions.store(state.sessions.len(), SeqCst);
        // A thread that holds the other lock may wait for this one.
        drop(state);
        let mut cached = self.cached.lock();
        cached.sessions.retain(|session| session.id != id);
        cached.known.forget(id);
    }
}
