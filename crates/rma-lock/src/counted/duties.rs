//! Waking, and acting for those that gave up.
//!
//! A waiter whose deadline comes, or whose future is dropped, marks its own node abandoned and
//! goes. As with every node, exactly one rank will try to wake it. That rank finds the mark and
//! does what the waiter would have done with its grant: for a reader, it wakes the next reader and
//! leaves (if the reader is counted); for a writer, it leaves. That may lead to further nodes,
//! abandoned or not, so the duties form a loop.

use super::{Core, Scheme};
use crate::{error::Stopped, queue::NodeId};

/// What this rank still has to do for others, each exactly once.
#[derive(Debug, Default)]
pub(super) struct Duties {
    /// A reader to wake; it wakes the rest of its chain.
    pub(super) reader: Option<NodeId>,
    /// A writer to wake; the lock is already set active for it.
    pub(super) writer: Option<NodeId>,
    /// A writer that has given up the lock (X2, X3) and still has to pass on the queue (X4–X7).
    pub(super) departing: Option<Departing>,
    /// Readers that gave up and are still counted.
    pub(super) leaving: u32,
}

/// A writer on its way out of the queue.
#[derive(Debug)]
pub(super) struct Departing {
    pub(super) node: NodeId,
    pub(super) queue: Found,
}

/// What this rank knows about the queue behind a writer.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// A successor linked itself: its node's bits.
    Link(u64),
    /// What X4's compare-and-swap found in the tail.
    Tail(u64),
}

impl<S: Scheme> Core<S> {
    /// Does all duties, and those they lead to.
    ///
    /// Readers come first: they wait only for this rank. A departing writer's queue comes next,
    /// then the writer to let in, and last the departures of absent readers, which may let another
    /// writer in. Readers that have yet to leave are counted, so no writer gets in too early.
    pub(super) async fn do_duties(&self, duties: Duties) -> Result<(), Stopped> {
        match self.do_each(duties).await {
            // Any rank that waits for what is left undone also waits for the lost rank.
            Err(Stopped::Broken(lost)) if self.tolerates(&lost) => Ok(()),
            // A member may leave while it still has a node in the queue of an epoch that is over.
            Err(Stopped::Broken(lost)) if self.is_gone(&lost) => {
                if S::is_closed(self.fabric.get_word(&self.count).await?) { Ok(()) } else { Err(Stopped::Broken(lost)) }
            }
            done => done,
        }
    }

    async fn do_each(&self, mut duties: Duties) -> Result<(), Stopped> {
        loop {
            if let Some(reader) = duties.reader.take() {
                if !self.wake(reader).await? {
                    duties.reader = self.pop_abandoned(reader).await?;
                    duties.leaving += u32::from(S::WAITS_COUNTED);
                }
            } else if let Some(writer) = duties.departing.take() {
                duties.writer = self.pass_queue_on(writer).await?;
            } else if let Some(writer) = duties.writer.take() {
                if !self.wake(writer).await? {
                    self.writer_leaves(writer, &mut duties).await?;
                }
            } else if duties.leaving > 0 {
                duties.leaving -= 1;
                duties.writer = self.reader_leaves().await?;
            } else {
                return Ok(());
            }
        }
    }
}
