//! Leaving, for oneself and for those who gave up: G1–G5.

use super::{
    Class, Core, READER, WRITER,
    guard::Held,
    link::{Next, Out, Said},
};
use crate::{error::Trouble, queue::NodeId};
use rdma_fabric::Fabric;

impl<F: Fabric> Core<F> {
    /// All of it.
    pub(super) async fn release(&self, held: Held) -> Result<(), Trouble> {
        let Held { node, class, woken } = held;
        self.publish(class.leaves(node))?;
        let own = self.adopt(node);
        let said = if class == Class::Reader { Said::Inside } else { Said::Nothing };
        let out = self.leave_queue(node, said).await?;
        let fresh = out == Out::Last && !woken;
        if fresh {
            self.unsay(node, said)?;
        } else {
            self.retire(node).await?;
        }
        let next = match class {
            Class::Reader => self.uncount(out).await?,
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

    /// G2: who is to be woken when a writer has left.
    async fn let_in(&self, out: Out) -> Result<Option<Next>, Trouble> {
        let Out::Before(node, class) = out else { return Ok(None) };
        if class == Class::Reader {
            self.fabric.fetch_add(&self.state, READER).await?;
        }
        Ok(Some((node, class)))
    }

    /// G3, G4: who is to be woken when a reader that was inside has left. A reader behind it is inside, too.
    async fn uncount(&self, out: Out) -> Result<Option<Next>, Trouble> {
        let writer = match out {
            Out::Before(writer, Class::Writer) => writer.bits(),
            _ => 0,
        };
        let less = (writer << WRITER).wrapping_sub(READER);
        let left = self.fabric.fetch_add(&self.state, less).await?.wrapping_add(less);
        let first = left >> WRITER;
        if left as u32 != 0 || first == 0 {
            return Ok(None);
        }
        // Nobody else has seen it with no reader beside it, and none can come before it.
        self.fabric.fetch_add(&self.state, (first << WRITER).wrapping_neg()).await?;
        Ok(self.decode("state", first)?.map(|writer| (writer, Class::Writer)))
    }

    /// Wake `node`. If it was given up, do what its owner would have done inside, which is to leave; that may lead to further nodes.
    pub(super) async fn wake_or_act_for(&self, mut node: NodeId, mut class: Class) -> Result<(), Trouble> {
        while !self.wake(node).await? {
            let out = self.leave_queue(node, Said::Nothing).await?;
            self.retire(node).await?;
            let next = match (class, out) {
                // Its count becomes the successor's.
                (Class::Reader, Out::Before(next, Class::Reader)) => Some((next, Class::Reader)),
                (Class::Reader, _) => self.uncount(out).await?,
                (Class::Writer, _) => self.let_in(out).await?,
            };
            let Some(next) = next else { break };
            (node, class) = next;
        }
        Ok(())
    }
}
