//! Leaving, for this rank or for acquisitions that gave up: G1–G5.

use super::{
    Class, Core, READER, WRITER,
    guard::Held,
    link::{Next, Out, Said},
    short_path::{FairExit, NotOut},
};
use crate::{error::Stopped, in_place::Posting, queue::NodeId};

/// Returns whether a reader that left this state behind was the last one before a writer.
#[inline(always)]
pub(super) fn was_waited_for(left: u64) -> bool {
    left as u32 == 0 && left >> WRITER != 0
}

impl Core {
    /// G1–G5, from `exit` on.
    pub(super) async fn release(&self, held: Held, exit: NotOut) -> Result<(), Stopped> {
        let Held { node, class, woken } = held;
        let said = class.said();
        let (out, uncounting) = match exit.map(|exit| *exit) {
            None => {
                self.publish(class.leaves(node))?;
                (self.leave_queue(node, said).await?, None)
            }
            Some(FairExit::Tail(posting)) => (self.leave_queue_from(node, said, posting.result().await?).await?, None),
            Some(FairExit::Last) => (Out::Last, None),
            Some(FairExit::Uncount(posting)) => (Out::Last, Some(posting)),
        };
        let own = self.adopt(node);
        let fresh = out == Out::Last && !woken;
        if fresh {
            self.unsay(node, said)?;
        } else {
            self.retire(node).await?;
        }
        let next = match class {
            Class::Reader => self.uncount(out, uncounting).await?,
            Class::Writer => self.let_in(out).await?,
        };
        if let Some((node, class)) = next {
            self.wake_or_act_for(node, class).await?; // G5
        }
        self.publish(class.is_gone(node))?;
        if fresh {
            own.give_back_fresh();
        }
        Ok(())
    }

    /// G2: returns the next node to wake after a writer has left.
    async fn let_in(&self, out: Out) -> Result<Option<Next>, Stopped> {
        let Out::Before(node, class) = out else { return Ok(None) };
        if class == Class::Reader {
            self.fabric.fetch_add(&self.state, READER).await?;
        }
        Ok(Some((node, class)))
    }

    /// G3, already posted if `uncounting` is given, and G4: returns the next node to wake after a
    /// reader that was inside has left. A reader behind it is already inside.
    async fn uncount(&self, out: Out, uncounting: Option<Posting>) -> Result<Option<Next>, Stopped> {
        let writer = match out {
            Out::Before(writer, Class::Writer) => writer.bits(),
            _ => 0,
        };
        let less = (writer << WRITER).wrapping_sub(READER);
        let old = match uncounting {
            Some(posting) => posting.result().await?,
            None => self.fabric.fetch_add(&self.state, less).await?,
        };
        let left = old.wrapping_add(less);
        if !was_waited_for(left) {
            return Ok(None);
        }
        let first = left >> WRITER;
        // Nobody else has seen the writer with no reader left, and none can get in before it.
        self.fabric.fetch_add(&self.state, (first << WRITER).wrapping_neg()).await?;
        Ok(self.decode("state", first)?.map(|writer| (writer, Class::Writer)))
    }

    /// Wakes `node`. If it was given up, does what its owner would have done inside, which is to
    /// leave; that may lead to further nodes.
    pub(super) async fn wake_or_act_for(&self, mut node: NodeId, mut class: Class) -> Result<(), Stopped> {
        while !self.wake(node).await? {
            let out = self.leave_queue(node, Said::Nothing).await?;
            self.retire(node).await?;
            let next = match (class, out) {
                // Its count becomes the successor's.
                (Class::Reader, Out::Before(next, Class::Reader)) => Some((next, Class::Reader)),
                (Class::Reader, _) => self.uncount(out, None).await?,
                (Class::Writer, _) => self.let_in(out).await?,
            };
            let Some(next) = next else { break };
            (node, class) = next;
        }
        Ok(())
    }
}
