//! The notices to each rank, which are sent in order: a notice whose put is in flight holds back the
//! later ones.

use super::{core::Core, message::Head, outbox::SENT, remote_rank::QueuedNotice};

impl Core {
    /// Queues a notice to a rank behind the unsent ones.
    pub(super) fn queue(&mut self, rank: u32, notice: QueuedNotice) {
        self.remote(rank).notices += 1;
        self.queued.entry(rank).or_default().push_back(notice);
    }

    /// Sends the notices to a rank, up to the first one that is not ready.
    pub(super) fn send_notices(&mut self, rank: u32) {
        let Some(mut queued) = self.queued.remove(&rank) else { return };
        while let Some(front) = queued.pop_front() {
            if !front.ready {
                queued.push_front(front);
                self.queued.insert(rank, queued);
                return;
            }
            let QueuedNotice { id, head, bytes, .. } = front;
            self.send_soon(rank, id | SENT, Head { id, ..head }, bytes);
        }
    }

    /// Lets the notices behind one that will never be answered proceed.
    pub(super) fn give_up_notice(&mut self, rank: u32, id: u64) {
        let remote = self.remote(rank);
        remote.notices = remote.notices.saturating_sub(1);
        if let Some(queued) = self.queued.get_mut(&rank) {
            queued.retain(|queued| queued.id != id);
        }
        self.send_notices(rank);
    }
}
